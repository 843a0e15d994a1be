//! Tests checks and health checks of Docker tasks: commands inside the container, requests in its network.
use std::fs;
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::docker::{Dockerd, docker_image};
use crate::one_agent::{OneAgent, a_little, end};
use crate::process::Process;
use crate::support::{until, wait_for};

const PORT: u16 = 31007;

pub fn run(cluster: &OneAgent, dockerd: &Dockerd) {
    commands_run_inside(cluster);
    an_ill_task_is_killed(cluster);
    what_takes_too_long_is_ended(cluster);
    requests_are_made_in_the_containers_network(cluster);
    wait_for("nothing is left", || dockerd.running().trim().is_empty().then_some(()));
}

/// Starts a task that runs until it is killed, with the fields `more`, and waits until it runs.
fn start(cluster: &OneAgent, id: &str, more: Value) -> Process {
    let command =
        json!({"value": "echo up; sleep 1000", "environment": {"variables": [{"name": "WORD", "value": "one"}]}});
    let mut task = json!({"name": id, "task_id": {"value": id}, "resources": a_little(), "command": command,
        "container": docker_image(json!({}))});
    // The first process of a container ignores SIGTERM.
    task["kill_policy"] = json!({"grace_period": {"nanoseconds": 0}});
    task.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    let mut child = Process::start(&mut cluster.execute(&task));
    child.wait_for("it runs", || cluster.latest(id).filter(|status| status["state"] == "TASK_RUNNING"));
    child
}

fn of_check(kind: &str, what: Value) -> Value {
    let mut check = json!({"type": kind.to_uppercase(), "delay_seconds": 0, "interval_seconds": 0.1});
    check[kind] = what;
    json!({"check": check})
}

fn of_health_check(script: &str, more: Value) -> Value {
    let mut check = json!({"type": "COMMAND", "delay_seconds": 0, "interval_seconds": 0.1, "grace_period_seconds": 0,
        "command": {"value": script}});
    check.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    json!({"health_check": check})
}

/// Waits until the check of a task has this result.
fn told(cluster: &OneAgent, id: &str, kind: &str, result: Value) {
    until(&format!("{id}: {result}"), || {
        cluster.latest(id).is_some_and(|status| status["check_status"][kind] == result)
    });
}

fn commands_run_inside(cluster: &OneAgent) {
    // The command's root is the image's, which has no /etc; its variables are the task's, and the check's own.
    let script = "[ -e /etc/passwd ] && exit 1; echo $WORD > $MESOS_SANDBOX/word; [ -e $MESOS_SANDBOX/ill ] && exit 9; \
        exit $CODE";
    let command = json!({"value": script, "environment": {"variables": [{"name": "CODE", "value": "5"}]}});
    let task = start(cluster, "inside", of_check("command", json!({"command": command})));
    told(cluster, "inside", "command", json!({"exit_code": 5}));
    let sandbox = cluster.sandbox("inside").unwrap();
    // The file is written repeatedly.
    until("it has the task's variable", || fs::read_to_string(sandbox.join("word")).unwrap() == "one\n");
    fs::write(sandbox.join("ill"), "").unwrap();
    told(cluster, "inside", "command", json!({"exit_code": 9}));
    end(task);
    let command = json!({"shell": false, "value": "/bin/sh", "arguments": ["-c", "exit $1", "sh", "3"]});
    let task = start(cluster, "words", of_check("command", json!({"command": command})));
    told(cluster, "words", "command", json!({"exit_code": 3}));
    end(task);
    let command = json!({"shell": false, "value": "/no/such/program"});
    let task = start(cluster, "missing", of_check("command", json!({"command": command})));
    wait_for("it cannot be run", || {
        let code = cluster.latest("missing")?["check_status"]["command"]["exit_code"].as_i64()?;
        (code != 0).then_some(())
    });
    end(task);
}

fn an_ill_task_is_killed(cluster: &OneAgent) {
    let script = "[ ! -e $MESOS_SANDBOX/ill ]";
    let task = start(cluster, "ill", of_health_check(script, json!({"consecutive_failures": 2})));
    wait_for("it is well", || cluster.latest("ill").filter(|status| status["healthy"] == true));
    fs::write(cluster.sandbox("ill").unwrap().join("ill"), "").unwrap();
    let output = task.output();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("TASK_KILLED"), "{told}");
}

/// Asserts that a command that hangs is ended with all processes that it has started, and counts as a failure; the task
/// continues.
fn what_takes_too_long_is_ended(cluster: &OneAgent) {
    let seconds = seconds();
    let script = format!("sleep {seconds} & (sleep {seconds} &); sleep {seconds}");
    // All processes must have started by then, also on a busy machine.
    let more = json!({"timeout_seconds": 15, "interval_seconds": 1000, "consecutive_failures": 1000});
    let task = start(cluster, "hangs", of_health_check(&script, more));
    until("all of it runs", || hanging() == 3);
    wait_for("that is a failure", || cluster.latest("hangs").filter(|status| status["healthy"] == false));
    until("nothing of it is left", || hanging() == 0);
    assert_eq!(cluster.latest("hangs").unwrap()["state"], "TASK_RUNNING");
    end(task);
}

/// Returns a duration for sleep(1) that no other process has.
fn seconds() -> u32 {
    100_000_000 + std::process::id()
}

/// Returns the number of processes that only the test above can have started.
fn hanging() -> usize {
    let wanted = format!("sleep\0{}\0", seconds());
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.filter(|entry| fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == wanted.as_bytes())).count()
}

/// Server on its own loopback device, which no other network namespace can reach.
const SERVER: &str = r#"
use Socket;
socket(S, PF_INET, SOCK_STREAM, 0) or die;
bind(S, sockaddr_in(31007, INADDR_LOOPBACK)) or die;
listen(S, 9) or die;
$| = 1; print "up\n";
while (accept(C, S)) {
    sysread(C, $r, 4096);
    syswrite(C, $r =~ m{^GET /to } ? "HTTP/1.0 302 x\r\nLocation: /gone\r\nContent-Length: 0\r\n\r\n"
        : $r =~ m{^GET /gone } ? "HTTP/1.0 410 x\r\nContent-Length: 0\r\n\r\n" : "HTTP/1.0 204 x\r\n\r\n");
    close C;
}"#;

fn requests_are_made_in_the_containers_network(cluster: &OneAgent) {
    let mut container = docker_image(json!({"network": "NONE"}));
    container["volumes"] = json!([{"mode": "RO", "container_path": "/usr", "host_path": "/usr"}]);
    let command = json!({"shell": false, "value": "/usr/bin/perl", "arguments": ["-e", SERVER]});
    for (id, kind, what, result) in [
        ("tcp", "tcp", json!({"port": PORT}), json!({"succeeded": true})),
        ("http", "http", json!({"port": PORT, "path": "/"}), json!({"status_code": 204})),
        // The target of a redirection is requested in that network, too.
        ("to", "http", json!({"port": PORT, "path": "/to"}), json!({"status_code": 410})),
        ("closed", "tcp", json!({"port": PORT + 1}), json!({"succeeded": false})),
    ] {
        let mut task = of_check(kind, what);
        (task["container"], task["command"]) = (container.clone(), command.clone());
        let task = start(cluster, id, task);
        told(cluster, id, kind, result);
        assert!(TcpStream::connect(("127.0.0.1", PORT)).is_err(), "it is reached from outside");
        end(task);
    }
}
