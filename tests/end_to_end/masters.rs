//! Tests masters behind ZooKeeper: the events that end a leader, and the errors that prevent a master from leading.

use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use crate::support::{Daemon, Directory, call, free_port, request, until};
use crate::zookeeper::ZooKeeper;

const SHORT: Duration = Duration::from_secs(2);
const LONG: Duration = Duration::from_secs(20);

fn master(directory: &Directory, name: &str, url: &str, session: Duration, more: &[&str]) -> (Daemon, String) {
    let words = ["master", "--ip=127.0.0.1", "--registry=in_memory", "--hostname=127.0.0.1"].map(str::to_owned);
    let own = [
        format!("--port={}", free_port()),
        format!("--work_dir={}", directory.join(name)),
        format!("--zk={url}"),
        format!("--zk_session_timeout={}secs", session.as_secs()),
    ];
    let more = more.iter().map(|word| (*word).to_owned());
    let words: Vec<String> = words.into_iter().chain(own).chain(more).collect();
    let mut master = Daemon::start(&directory.path().join(format!("{name}.log")), &words, &[]);
    let address = master.address().expect("the master runs");
    (master, address)
}

fn leads(address: &str) -> bool {
    call(address, "GET", "/state").is_some_and(|state| state["leader"] == format!("master@{address}"))
}

fn log(directory: &Directory, name: &str) -> String {
    std::fs::read_to_string(directory.path().join(format!("{name}.log"))).unwrap()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a session is over when real time has passed")]
fn a_leader_that_was_stopped_for_longer_than_its_session_does_not_act_any_more() {
    let (directory, runtime) = (Directory::new("masters-stopped"), Runtime::new().unwrap());
    let zookeeper = runtime.block_on(ZooKeeper::start(free_port()));
    let (mut first, first_at) = master(&directory, "m1", &zookeeper.url(), SHORT, &[]);
    until("the first master leads", || leads(&first_at));
    let (_second, second_at) = master(&directory, "m2", &zookeeper.url(), SHORT, &[]);
    until("the second one knows it", || {
        request(&second_at, "GET", "/state", "")
            .is_some_and(|answer| answer.contains(&format!("//{first_at}/master/state")))
    });

    first.signal("-STOP");
    let began = Instant::now();
    // ZooKeeper has not ended the session: the master must detect by itself that it may be over.
    let asked = first_at.clone();
    let call = r#"{"type": "SUBSCRIBE", "subscribe": {"framework_info": {"user": "u", "name": "n"}}}"#;
    let answer = std::thread::spawn(move || request(&asked, "POST", "/api/v1/scheduler", call));
    until("the session is over", || began.elapsed() > SHORT + Duration::from_millis(100));
    first.signal("-CONT");
    let answer = answer.join().unwrap().unwrap_or_default();
    assert!(answer.is_empty(), "{answer}");
    until("the first master ends", || first.ended());
    assert!(log(&directory, "m1").contains("has lost leadership"));
    // By now ZooKeeper would have ended the session.
    zookeeper.forget_sessions();
    until("the second one leads", || leads(&second_at));
}

#[test]
fn a_leader_outlives_an_outage_that_its_session_outlives() {
    let (directory, runtime) = (Directory::new("masters-outage"), Runtime::new().unwrap());
    let mut zookeeper = runtime.block_on(ZooKeeper::start(free_port()));
    let (mut master, address) = master(&directory, "m", &zookeeper.url(), LONG, &[]);
    until("it leads", || leads(&address));
    let before = zookeeper.members();
    runtime.block_on(zookeeper.turn_away(8));
    until("it is connected again", || log(&directory, "m").contains("within the session timeout"));
    assert!(leads(&address) && !master.ended());
    assert_eq!(zookeeper.members(), before);
}

#[test]
fn masters_of_a_group_are_in_one_region() {
    let (directory, runtime) = (Directory::new("masters-regions"), Runtime::new().unwrap());
    let zookeeper = runtime.block_on(ZooKeeper::start(free_port()));
    let domain = |region: &str, zone: &str| {
        format!(r#"--domain={{"fault_domain":{{"region":{{"name":"{region}"}},"zone":{{"name":"{zone}"}}}}}}"#)
    };
    let (_first, first_at) = master(&directory, "m1", &zookeeper.url(), LONG, &[&domain("here", "a")]);
    until("the first master leads", || leads(&first_at));
    let (mut near, near_at) = master(&directory, "m2", &zookeeper.url(), LONG, &[&domain("here", "b")]);
    let (_any, any_at) = master(&directory, "m3", &zookeeper.url(), LONG, &[]);
    let (mut far, _) = master(&directory, "m4", &zookeeper.url(), LONG, &[&domain("there", "a")]);
    until("the one in another region ends", || far.ended());
    assert!(log(&directory, "m4").contains("is in the region 'here', and this one in 'there'"));
    for follower in [&near_at, &any_at] {
        until("a follower knows the leader", || {
            request(follower, "GET", "/redirect", "").is_some_and(|answer| answer.contains(&format!("//{first_at}")))
        });
    }
    assert!(!near.ended());
}
