//! Tests events of containers that `perf` counts. Requires root, the hierarchy `perf_event` of cgroups v1, and `perf`.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::one_agent::{OneAgent, can_isolate, end};
use crate::process::ToItsEnd;
use crate::support::{call, wait_for};

#[test]
fn events_are_counted() {
    let mounted = fs::read_to_string("/proc/self/mountinfo").is_ok_and(|text| text.contains("perf_event"));
    let perf = Command::new("sh").args(["-c", "perf stat -e task-clock true"]).run().status.success();
    if !can_isolate() || !mounted || !perf {
        return println!("not run: it needs root, perf, and cgroups v1 with perf_event");
    }
    let flags = [
        "--isolation=cgroups/cpu,cgroups/mem,cgroups/perf_event".to_owned(),
        "--perf_events=task-clock,context-switches".to_owned(),
        "--perf_interval=1secs".to_owned(),
        "--perf_duration=300ms".to_owned(),
    ];
    let cluster = OneAgent::start("perf", &flags);
    let task =
        cluster.start_task("busy", json!({"value": "echo up; while :; do sleep 0.01; done"}), json!({"type": "MESOS"}));
    let perf = wait_for("the task's events are told", || {
        let told = call(&cluster.agent_address(), "GET", "/monitor/statistics")?;
        let perf = told[0]["statistics"]["perf"].clone();
        (perf["task_clock"].as_f64()? > 0.0).then_some(perf)
    });
    assert!(perf["context_switches"].as_u64().unwrap() > 0 && perf["duration"] == 0.3, "{perf}");
    assert!(perf["timestamp"].as_f64().unwrap() > 1e9, "{perf}");
    end(task);
}
