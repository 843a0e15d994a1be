//! Tests an executor that sends more than its readers accept: the memory of the cluster stays bounded, and the cluster
//! keeps running.
//!
//! The test is both ends: a scheduler that stops reading, and an executor that never stops sending. The limits of
//! output are tested where it is rotated.

use std::fs;

use serde_json::{Value, json};

use crate::connection::Connection;
use crate::support::{Cluster, call, until, wait_for};

/// Subscribes a scheduler and returns its connection and its framework's id.
fn subscribe(cluster: &Cluster) -> (Connection, Value) {
    let mut scheduler = Connection::open(&cluster.master, "/api/v1/scheduler");
    let info = json!({ "user": "root", "name": "floods", "roles": ["*"], "failover_timeout": 600.0,
        "capabilities": [{ "type": "MULTI_ROLE" }] });
    scheduler.send(&json!({ "type": "SUBSCRIBE", "subscribe": { "framework_info": info } }));
    assert_eq!(scheduler.status(), 200);
    let subscribed = scheduler.event().unwrap();
    let id = subscribed["subscribed"]["framework_id"].clone();
    (scheduler, id)
}

/// An executor in the test's process: the command that the agent starts only writes its environment to a file.
struct Executor {
    agent: String,
    framework: Value,
    /// Subscription of the executor, which must last as long as the executor.
    _stream: Connection,
    calls: Connection,
}

impl Executor {
    fn start(cluster: &Cluster, scheduler: &mut Connection, framework: &Value) -> Executor {
        let offer = loop {
            let event = scheduler.event().unwrap();
            if event["type"] == "OFFERS" {
                break event["offers"]["offers"][0].clone();
            }
        };
        let (part, whole) = (cluster.directory.join("env.part"), cluster.directory.join("env"));
        let command = format!("env > {part}; mv {part} {whole}; exec sleep 1000");
        let scalar = |name: &str, value: f64| json!({ "name": name, "type": "SCALAR", "scalar": { "value": value }, "allocation_info": { "role": "*" } });
        let executor = json!({ "type": "CUSTOM", "executor_id": { "value": "e" }, "command": { "value": command },
            "resources": [scalar("cpus", 0.1), scalar("mem", 32.0)] });
        let task = json!({ "name": "t", "task_id": { "value": "t" }, "agent_id": offer["agent_id"], "executor": executor,
            "resources": [scalar("cpus", 0.1), scalar("mem", 32.0)] });
        let launch = json!({ "type": "LAUNCH", "launch": { "task_infos": [task] } });
        let accept = json!({ "type": "ACCEPT", "framework_id": framework,
            "accept": { "offer_ids": [offer["id"]], "operations": [launch], "filters": { "refuse_seconds": 1000.0 } } });
        let mut calls = Connection::open(&cluster.master, "/api/v1/scheduler");
        calls.stream_id.clone_from(&scheduler.stream_id);
        calls.send(&accept);
        assert_eq!(calls.status(), 202);
        let text = wait_for("the executor's process has started", || fs::read_to_string(&whole).ok());
        let variable = |name: &str| {
            let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            found.unwrap_or_default().to_owned()
        };
        let agent = variable("MESOS_AGENT_ENDPOINT");
        let mut stream = Connection::open(&agent, "/api/v1/executor");
        stream.send(&json!({ "type": "SUBSCRIBE", "framework_id": framework, "executor_id": { "value": "e" },
            "subscribe": {} }));
        assert_eq!(stream.status(), 200);
        assert_eq!(stream.event().unwrap()["type"], "SUBSCRIBED");
        assert_eq!(stream.event().unwrap()["type"], "LAUNCH");
        let calls = Connection::open(&agent, "/api/v1/executor");
        Executor { agent, framework: framework.clone(), _stream: stream, calls }
    }

    fn call(&mut self, mut call: Value) -> u16 {
        call["framework_id"] = self.framework.clone();
        call["executor_id"] = json!({ "value": "e" });
        self.calls.send(&call);
        self.calls.status()
    }

    fn update(&mut self, task: &str, state: &str, number: u32) -> u16 {
        // 16 bytes in base64, of version 4.
        let uuid = format!("00000000Q02{number:010}A==");
        self.call(json!({ "type": "UPDATE", "update": { "status": { "task_id": { "value": task }, "state": state,
            "source": "SOURCE_EXECUTOR", "uuid": uuid } } }))
    }

    /// Returns a counter of the agent.
    fn counter(&self, name: &str) -> u64 {
        call(&self.agent, "GET", "/metrics/snapshot").and_then(|all| all[name].as_f64()).unwrap_or_default() as u64
    }
}

#[test]
fn unread_messages_are_bounded() {
    const MEGABYTES: usize = 320;
    let cluster = Cluster::start("flood-messages", 1, "cpus:1;mem:128;disk:64");
    let (mut scheduler, framework) = subscribe(&cluster);
    let mut executor = Executor::start(&cluster, &mut scheduler, &framework);
    let before = cluster.resident();
    // Base64 of 768 KiB is a megabyte.
    let data = "A".repeat(1 << 20);
    let mut most = 0;
    for _ in 0..MEGABYTES {
        assert_eq!(executor.call(json!({ "type": "MESSAGE", "message": { "data": data } })), 202);
        most = most.max(cluster.resident());
    }
    let grown = most.saturating_sub(before) >> 20;
    println!("{MEGABYTES} MB were said, the cluster grew by {grown} MB at most");
    // The agent's queue to the master, and the scheduler's stream: 64 MiB each, while they are copied.
    assert!(grown < 260, "{grown} MB");
    // The scheduler is disconnected, and other clients are not delayed.
    until("the cluster answers", || call(&cluster.master, "GET", "/state").is_some());
    until("the scheduler is not connected", || {
        let state = call(&cluster.master, "GET", "/state").unwrap_or_default();
        state["frameworks"][0]["connected"] == false
    });
}

#[test]
fn unacknowledged_updates_are_bounded() {
    const UPDATES: u32 = 11_000;
    let cluster = Cluster::start("flood-updates", 1, "cpus:1;mem:128;disk:64");
    let (mut scheduler, framework) = subscribe(&cluster);
    let mut executor = Executor::start(&cluster, &mut scheduler, &framework);
    let refused = |executor: &Executor| executor.counter("slave/invalid_status_updates");
    for number in 0..UPDATES {
        assert_eq!(executor.update("t", "TASK_RUNNING", number), 202);
    }
    until("what is too much is refused", || refused(&executor) >= 1000);
    for number in 0..UPDATES {
        assert_eq!(executor.update(&format!("x{number}"), "TASK_RUNNING", UPDATES + number), 202);
    }
    until("what is of no task is refused, too", || refused(&executor) >= 2000);
    // A task's terminal update is always accepted.
    let taken = executor.counter("slave/valid_status_updates");
    assert_eq!(executor.update("t", "TASK_FINISHED", 2 * UPDATES), 202);
    until("the end is taken", || executor.counter("slave/valid_status_updates") > taken);
    until("the cluster answers", || call(&cluster.master, "GET", "/state").is_some());
}
