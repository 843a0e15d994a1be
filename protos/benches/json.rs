//! Measures Mesos's JSON of a big state: writing, reading, decoding.
//!
//! Prints one line for each direction: megabytes, milliseconds of the best of several rounds, megabytes per second. The
//! time is the CPU time of this thread, so other work on the machine matters little; the release of memory is not
//! included. It asserts nothing; the promises are in SPECIFICATION.md.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]

use std::hint::black_box;

use prost::Message;
use protos::json::{Dialect, FromJson, ToJson, Value};
use protos::mesos::master::{Response, response};
use protos::mesos::{self, value};

const AGENTS: usize = 2_000;
const TASKS: usize = 20_000;
const ROUNDS: usize = 7;

fn main() {
    let state = state();
    let json = state.json(Dialect::V1);
    let binary = state.encode_to_vec();
    println!("GET_STATE with {AGENTS} agents and {TASKS} tasks");
    println!("{:<28} {:>8} {:>9} {:>8}", "", "MB", "ms", "MB/s");
    let mut out = Vec::with_capacity(json.len() + 1024);
    for (name, dialect) in [("write v0", Dialect::V0), ("write v1", Dialect::V1), ("write evolved", Dialect::Evolved)] {
        let mut size = 0;
        let ms = best(|| {
            out.clear();
            state.to_json(dialect, &mut out);
            size = out.len();
            black_box(&out);
        });
        line(name, size, ms);
    }
    let ms = best(|| Response::from_json(&json, Dialect::V1).expect("just written"));
    line("read v1", json.len(), ms);
    let sorted = Value::parse(&json).expect("just written").to_string();
    let ms = best(|| Response::from_json(sorted.as_bytes(), Dialect::V1).expect("just written"));
    line("read v1, keys sorted", sorted.len(), ms);
    let ms = best(|| Value::parse(&json).expect("just written"));
    line("read as any JSON", json.len(), ms);
    let ms = best(|| protos::decode::<Response>(&binary).expect("just encoded"));
    line("decode binary, strict", binary.len(), ms);
    let ms = best(|| Response::decode(&*binary).expect("just encoded"));
    line("decode binary, prost alone", binary.len(), ms);
    let ms = best(|| state.encode_to_vec());
    line("encode binary", binary.len(), ms);
}

fn line(name: &str, bytes: usize, ms: f64) {
    #[expect(clippy::cast_precision_loss, reason = "a size in megabytes")]
    let megabytes = bytes as f64 / 1e6;
    println!("{name:<28} {megabytes:>8.1} {ms:>9.1} {:>8.0}", megabytes / ms * 1e3);
}

/// Returns the milliseconds of the fastest round.
fn best<T>(mut work: impl FnMut() -> T) -> f64 {
    let round = |_| {
        let start = processor_ms();
        let result = black_box(work());
        let spent = processor_ms() - start;
        drop(result);
        spent
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

/// Returns the CPU time of this thread so far, in milliseconds.
fn processor_ms() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux with scheduler statistics");
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).expect("nanoseconds come first") / 1e6
}

const MASTER: &str = "d02d22d0-0af6-47a2-a968-e8b9f2a6f6a1";

fn scalar(name: &str, amount: f64) -> mesos::Resource {
    mesos::Resource {
        name: name.into(),
        r#type: value::Type::Scalar as i32,
        scalar: Some(value::Scalar { value: amount }),
        allocation_info: Some(mesos::resource::AllocationInfo { role: Some("engineering".into()) }),
        ..Default::default()
    }
}

fn agent(i: usize) -> response::get_agents::Agent {
    let id = mesos::SlaveId { value: format!("{MASTER}-S{i}").into() };
    let total = vec![scalar("cpus", 64.0), scalar("mem", 262_144.0), scalar("disk", 1_000_000.0)];
    let ip = format!("10.0.{}.{}", i / 250, i % 250);
    response::get_agents::Agent {
        agent_info: mesos::SlaveInfo {
            hostname: format!("node-{i}.example.com"),
            port: Some(5051),
            resources: total.clone(),
            id: Some(id),
            checkpoint: Some(true),
            ..Default::default()
        },
        active: true,
        version: "1.11.0".into(),
        pid: Some(format!("slave(1)@{ip}:5051")),
        registered_time: Some(mesos::TimeInfo { nanoseconds: 1_700_000_000_123_456_789 }),
        total_resources: total.clone(),
        allocated_resources: total,
        ..Default::default()
    }
}

fn task(i: usize) -> mesos::Task {
    let agent = mesos::SlaveId { value: format!("{MASTER}-S{}", i % AGENTS).into() };
    let id = mesos::TaskId { value: format!("job-{i}.5a6c0a1e").into() };
    let status = mesos::TaskStatus {
        task_id: id.clone(),
        state: mesos::TaskState::TaskRunning as i32,
        source: Some(mesos::task_status::Source::Executor as i32),
        slave_id: Some(agent.clone()),
        executor_id: Some(mesos::ExecutorId { value: id.value.clone() }),
        timestamp: Some(1_700_000_000.123_45 + i as f64 / 1024.0),
        uuid: Some((0..16).map(|b| b * 13 + 7).collect()),
        container_status: Some(mesos::ContainerStatus {
            container_id: Some(mesos::ContainerId { value: format!("5f3a9b2e-0000-4000-8000-{i:012}"), parent: None }),
            network_infos: vec![mesos::NetworkInfo {
                ip_addresses: vec![mesos::network_info::IpAddress {
                    ip_address: Some("10.0.0.7".into()),
                    ..Default::default()
                }],
                ..Default::default()
            }],
            ..Default::default()
        }),
        ..Default::default()
    };
    mesos::Task {
        name: format!("job-{i}"),
        task_id: id.clone(),
        framework_id: mesos::FrameworkId { value: format!("{MASTER}-0003").into() },
        executor_id: Some(mesos::ExecutorId { value: "".into() }),
        slave_id: agent,
        state: mesos::TaskState::TaskRunning as i32,
        resources: vec![scalar("cpus", 0.1), scalar("mem", 32.0)],
        statuses: vec![status],
        status_update_state: Some(mesos::TaskState::TaskRunning as i32),
        labels: Some(mesos::Labels {
            labels: vec![mesos::Label { key: "team".into(), value: Some("search \"alpha\"".into()) }],
        }),
        ..Default::default()
    }
}

fn state() -> Response {
    Response {
        r#type: Some(response::Type::GetState as i32),
        get_state: Some(response::GetState {
            get_tasks: Some(response::GetTasks { tasks: (0..TASKS).map(task).collect(), ..Default::default() }),
            get_agents: Some(response::GetAgents { agents: (0..AGENTS).map(agent).collect(), ..Default::default() }),
            ..Default::default()
        }),
        ..Default::default()
    }
}
