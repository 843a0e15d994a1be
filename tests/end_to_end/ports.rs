//! Tests tasks that listen on ports of their host, both allocated and other ones; and the agent's metrics of them for
//! Prometheus.
//!
//! Requires root and control groups; without them no test runs.

use std::fs;

use serde_json::json;

use crate::one_agent::{OneAgent, can_isolate};
use crate::support::{get, request, until};

/// Checks that the metrics for Prometheus show the usage of a running task.
fn metrics(cluster: &OneAgent, task: &str) {
    let text = get(&cluster.agent_address(), "/metrics").unwrap();
    let label = format!("executor_id=\"{task}\"");
    for name in ["cpu_user_seconds_total", "memory_rss_bytes", "processes", "memory_soft_limit_bytes"] {
        let name = format!("tepui_container_{name}{{");
        let own = text.lines().find(|line| line.starts_with(&name) && line.contains(&label));
        let value = own.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        assert!(value.is_some_and(|value| value >= 0.0), "{name}: {own:?}");
    }
    assert!(text.contains("\ntepui_agent_tasks_running 1.0\n"), "{text}");
}

/// Returns a script that prints the port of 127.0.0.1 (0: any) that it listens on, listens, and ends when there is a
/// file `end`. It may be ended as soon as it listens.
fn listen(port: u16) -> String {
    format!(
        "python3 -c 'import os, socket, time\nlistener = socket.socket()\nlistener.setsockopt(socket.SOL_SOCKET, \
         socket.SO_REUSEADDR, 1)\nlistener.bind((\"127.0.0.1\", {port}))\nprint(listener.getsockname()[1], flush=True)\n\
         listener.listen()\nwhile not os.path.exists(\"end\"): time.sleep(0.05)'"
    )
}

/// Checks that a container of no framework is examined, too.
fn by_itself(cluster: &OneAgent) {
    let id = json!({"value": "alone"});
    let call = |body: serde_json::Value| request(&cluster.agent_address(), "POST", "/api/v1", &body.to_string());
    let launched = call(json!({"type": "LAUNCH_CONTAINER", "launch_container": {"container_id": id,
        "command": {"value": listen(0)}, "resources": [{"name": "cpus", "type": "SCALAR", "scalar": {"value": 0.1}}]}}));
    assert!(launched.is_some_and(|answer| answer.starts_with("HTTP/1.1 20")));
    let ended = call(json!({"type": "WAIT_CONTAINER", "wait_container": {"container_id": id}})).unwrap();
    assert!(ended.contains("is listening on unallocated port(s)"), "{ended}");
}

#[test]
fn containers_that_listen_elsewhere_are_ended() {
    if !can_isolate() {
        return println!("not run: it needs root, and cgroups v1");
    }
    let flags = [
        "--isolation=cgroups/cpu,network/ports",
        "--container_ports_watch_interval=200ms",
        "--enforce_container_ports",
    ];
    let cluster = OneAgent::start("ports", &flags.map(str::to_owned));
    let nothing = json!({"type": "MESOS"});
    // A port that no other process listens on.
    let mut all = (0..5).map(|number| 31000 + (std::process::id() as u16).wrapping_add(number) % 5);
    let free = all.find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap();
    let ports = json!({"name": "ports", "type": "RANGES", "ranges": {"range": [{"begin": free, "end": free}]}});
    let good = cluster.start_task_with("good", json!({"value": listen(free)}), nothing.clone(), &[ports]);
    until("it listens", || std::net::TcpStream::connect(("127.0.0.1", free)).is_ok());
    // The task that is ended was examined after the other one started to listen.
    let (told, written) = cluster.run("elsewhere", json!({"value": listen(0)}), nothing);
    let port = written.trim();
    let words = format!("is listening on unallocated port(s): [{port}-{port}]");
    assert!(told.contains("TASK_FAILED") && told.contains("REASON_CONTAINER_LIMITATION"), "{told}");
    assert!(told.contains(&words), "'{words}' is not in {told}");
    // One container of a pod is ended, and with it the others, by the rule for failures.
    let told = cluster.run_pod(&[("quiet", "sleep 1000".to_owned()), ("loud", listen(0))]);
    let loud = told.split("Received").find(|part| part.contains("TASK_FAILED")).unwrap_or_default();
    assert!(loud.contains("'loud'") && loud.contains("is listening on unallocated port(s)"), "{told}");
    assert!(loud.contains("REASON_CONTAINER_LIMITATION") && told.contains("TASK_KILLED for task 'quiet'"), "{told}");
    by_itself(&cluster);
    metrics(&cluster, "good");
    fs::write(cluster.sandbox("good").unwrap().join("end"), "").unwrap();
    let told = String::from_utf8_lossy(&good.output().stdout).into_owned();
    assert!(told.contains("TASK_FINISHED"), "{told}");
}
