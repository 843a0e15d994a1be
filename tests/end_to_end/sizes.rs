//! Tests the limits of what frameworks report about themselves: a master refuses what is too large and names the limit,
//! and its documents stay small.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::{Daemon, Directory, get, request, until};

fn master(directory: &Directory) -> (Daemon, String) {
    let words = ["master", "--ip=127.0.0.1", "--port=0", "--registry=in_memory"].map(str::to_owned);
    let words: Vec<String> = words.into_iter().chain([format!("--work_dir={}", directory.join("m"))]).collect();
    let mut master = Daemon::start(&directory.path().join("m.log"), &words, &[]);
    let address = master.address().expect("the master runs");
    (master, address)
}

/// Returns a SUBSCRIBE of a framework with these fields of FrameworkInfo and these constraints.
fn subscription(more: Value, constraints: Value) -> Value {
    let mut info = json!({"user": "nobody", "name": "f", "capabilities": [{"type": "MULTI_ROLE"}]});
    info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"type": "SUBSCRIBE", "subscribe": {"framework_info": info, "offer_constraints": constraints}})
}

fn matching(number: usize) -> Value {
    let constraint = |n: usize| json!({"selector": {"attribute_name": "a"}, "predicate": {"text_matches": {"regex": format!("x{n}")}}});
    let groups: Vec<Value> = (0..number).map(|n| json!({"attribute_constraints": [constraint(n)]})).collect();
    json!({"role_constraints": {"r": {"groups": groups}}})
}

fn roles(number: usize) -> Value {
    json!({"roles": (0..number).map(|n| format!("r{n}")).collect::<Vec<_>>()})
}

#[test]
fn a_subscription_that_is_too_large_is_refused_with_the_limit() {
    let directory = Directory::new("sizes");
    let (_master, address) = master(&directory);
    for (call, words) in [
        (
            subscription(json!({}), matching(200_000)),
            "'offer_constraints' has 200000 constraints, and the limit is 10000",
        ),
        (
            subscription(json!({}), matching(1_001)),
            "'offer_constraints' has 1001 different regular expressions, and the limit is 1000",
        ),
        (subscription(roles(100_000), json!({})), "'FrameworkInfo.roles' has 100000 roles, and the limit is 10000"),
        (
            subscription(json!({"name": "x".repeat(20_000_000)}), json!({})),
            "'FrameworkInfo.name' has 20000000 bytes, and the limit is 8192",
        ),
    ] {
        let told = request(&address, "POST", "/api/v1/scheduler", &call.to_string()).expect("the master answers");
        assert!(told.starts_with("HTTP/1.1 400 "), "{words}: {told}");
        assert!(told.ends_with(&format!("Failed to validate scheduler::Call: {words}")), "{told}");
    }
}

#[test]
fn metrics_of_roles_are_bounded() {
    let directory = Directory::new("sizes-metrics");
    let (_master, address) = master(&directory);
    let call = subscription(roles(5_000), json!({})).to_string();
    let mut stream = TcpStream::connect(&address).unwrap();
    let head =
        "POST /api/v1/scheduler HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: application/json\r\n";
    stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{call}", call.len()).as_bytes()).unwrap();
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).unwrap();
    assert_eq!(&begin, b"HTTP/1.1 200");
    until("the roles are there", || {
        let told = get(&address, "/metrics/snapshot").expect("the master answers");
        let metrics: Value = serde_json::from_str(&told).unwrap();
        let of_roles = metrics.as_object().unwrap().keys().filter(|name| name.contains("/roles/r")).count();
        assert!(of_roles <= 30_000 && told.len() < 4 << 20, "{of_roles} metrics, {} bytes", told.len());
        metrics["allocator/mesos/roles_left_out"] == json!(4_000.0) && of_roles > 1_000
    });
    let text = get(&address, "/metrics").expect("the master answers");
    assert!(text.contains("tepui_allocator_roles_left_out 4000.0") && text.len() < 16 << 20, "{}", text.len());
}
