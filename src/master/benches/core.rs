//! CPU time of the master's core alone: per agent that registers, per task from ACCEPT to the last acknowledgement, per
//! offer that is declined, per snapshot of 10,000 agents with 100,000 tasks, and per agent with ten tasks that
//! reregisters with a new master.
//!
//! Sockets, encoding and decoding are not included, except that the last one decodes. Run with `cargo bench -p master`;
//! `-- failover` measures the last one alone.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![allow(missing_docs)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::{Pid, Time};
use cores::Core;
use master::{Config, Input, Master, Message, Outbox, Output, RequestId, StreamId};
use prost::Message as _;
use protos::mesos::internal::{
    RegisterSlaveMessage, Registry, ReregisterSlaveMessage, StatusUpdate, StatusUpdateMessage, registry,
};
use protos::mesos::offer::{Operation, operation};
use protos::mesos::scheduler::{Call, call};
use protos::mesos::{self, framework_info, slave_info, value};

struct Bench {
    master: Master,
    out: Outbox,
    now: Time,
    requests: u64,
}

impl Bench {
    fn new() -> Bench {
        Bench::with(&Registry::default())
    }

    fn with(registry: &Registry) -> Bench {
        let info = mesos::MasterInfo { id: "11111111-2222-3333-4444-555555555555".to_owned(), ..Default::default() };
        let now = Time::from_secs(1_000_000);
        Bench {
            master: Master::new(Config::default(), info, registry, 1, now),
            out: Outbox::default(),
            now,
            requests: 0,
        }
    }

    fn feed(&mut self, input: Input) {
        self.master.handle(input, self.now, &mut self.out);
    }

    /// Ends the batch and returns its outputs.
    fn end(&mut self) -> Vec<Output> {
        self.master.end_batch(self.now, &mut self.out);
        let outputs = std::mem::take(&mut self.out.outputs);
        self.out.clear();
        outputs
    }

    fn call(&mut self, id: &str, call: Call) {
        self.requests += 1;
        let call = Box::new(Call { framework_id: Some(mesos::FrameworkId { value: id.into() }), ..call });
        let request = RequestId(self.requests);
        let stream_id = Some(format!("stream-{id}").into());
        self.feed(Input::SchedulerCall { request, stream_id, call, principal: None });
    }

    /// Subscribes a framework with a given id.
    fn subscribe(&mut self, id: &str, role: &str) {
        self.requests += 1;
        let subscribe = call::Subscribe { framework_info: framework(id, role), ..Default::default() };
        let call = Call {
            r#type: Some(call::Type::Subscribe as i32),
            subscribe: Some(Box::new(subscribe)),
            ..Call::default()
        };
        self.feed(Input::Subscribe {
            request: RequestId(self.requests),
            stream: StreamId(self.requests),
            stream_text: Arc::from(format!("stream-{id}")),
            call: Box::new(call),
            principal: None,
        });
    }
}

fn framework(id: &str, role: &str) -> mesos::FrameworkInfo {
    let kinds = [framework_info::capability::Type::MultiRole, framework_info::capability::Type::ReservationRefinement];
    mesos::FrameworkInfo {
        user: "root".to_owned(),
        name: id.to_owned(),
        id: Some(mesos::FrameworkId { value: id.into() }),
        roles: vec![role.to_owned()],
        capabilities: kinds.map(|kind| framework_info::Capability { r#type: Some(kind as i32) }).to_vec(),
        ..Default::default()
    }
}

fn scalar(name: &str, amount: f64) -> mesos::Resource {
    let mut resource = mesos::Resource { name: name.into(), ..Default::default() };
    resource.set_type(value::Type::Scalar);
    resource.scalar = Some(value::Scalar { value: amount });
    resource
}

fn agent_pid(number: u32) -> Pid {
    Pid::new("slave(1)", std::net::SocketAddrV4::new(std::net::Ipv4Addr::from(0x0a00_0000 + number), 5051))
}

fn registration(number: u32) -> Input {
    let resources = vec![scalar("cpus", 64.0), scalar("mem", 65536.0), scalar("disk", 100_000.0)];
    let slave = mesos::SlaveInfo {
        hostname: format!("host-{number}"),
        port: Some(5051),
        resources,
        checkpoint: Some(true),
        ..Default::default()
    };
    let message = RegisterSlaveMessage {
        slave,
        version: Some("1.11.0".to_owned()),
        agent_capabilities: (1..=8).map(|kind| slave_info::Capability { r#type: Some(kind) }).collect(),
        resource_version_uuid: Some(mesos::Uuid { value: base::uuid_from([1; 16]).to_vec() }),
        ..Default::default()
    };
    Input::Message { from: agent_pid(number), message: Message::RegisterSlave(Box::new(message)) }
}

fn offers_of(outputs: &[Output]) -> Vec<mesos::Offer> {
    let events = outputs.iter().filter_map(|output| match output {
        Output::SchedulerEvent { event, .. } => event.offers.as_ref(),
        _ => None,
    });
    events.flat_map(|offers| offers.offers.iter().cloned()).collect()
}

fn task(offer: &mesos::Offer, id: String) -> mesos::TaskInfo {
    mesos::TaskInfo {
        name: id.clone(),
        task_id: mesos::TaskId { value: id.into() },
        slave_id: offer.slave_id.clone(),
        resources: vec![scalar("cpus", 0.1), scalar("mem", 32.0)],
        command: Some(mesos::CommandInfo { value: Some("true".to_owned()), ..Default::default() }),
        ..Default::default()
    }
}

fn accept(offer: &mesos::Offer, tasks: Vec<mesos::TaskInfo>) -> Call {
    let launch = Operation {
        r#type: Some(operation::Type::Launch as i32),
        launch: Some(operation::Launch { task_infos: tasks }),
        ..Operation::default()
    };
    let filters = Some(mesos::Filters { refuse_seconds: Some(1e6) });
    let accept = call::Accept { offer_ids: vec![offer.id.clone()], operations: vec![launch], filters };
    Call { r#type: Some(call::Type::Accept as i32), accept: Some(accept), ..Call::default() }
}

fn update(framework: &str, task: &mesos::TaskInfo, state: mesos::TaskState, mark: u8) -> Input {
    let status = mesos::TaskStatus {
        task_id: task.task_id.clone(),
        state: state as i32,
        uuid: Some(base::uuid_from([mark; 16]).to_vec()),
        ..Default::default()
    };
    let update = StatusUpdate {
        framework_id: mesos::FrameworkId { value: framework.into() },
        slave_id: Some(task.slave_id.clone()),
        status,
        uuid: Some(base::uuid_from([mark; 16]).to_vec()),
        latest_state: Some(state as i32),
        ..Default::default()
    };
    let pid = Some("slave(1)@10.0.0.1:5051".to_owned());
    let message = Message::StatusUpdate(Box::new(StatusUpdateMessage { update, pid }));
    Input::Message { from: agent_pid(1), message }
}

fn acknowledge(task: &mesos::TaskInfo, mark: u8) -> Call {
    let body = call::Acknowledge {
        slave_id: task.slave_id.clone(),
        task_id: task.task_id.clone(),
        uuid: base::uuid_from([mark; 16]).to_vec(),
    };
    Call { r#type: Some(call::Type::Acknowledge as i32), acknowledge: Some(body), ..Call::default() }
}

fn report(what: &str, count: u32, took: Duration) {
    println!("{what}: {:.2} us", took.as_secs_f64() * 1e6 / f64::from(count));
}

const AGENTS: u32 = 10_000;

/// Returns the messages of agents with ten running tasks each, and the registry that has these agents.
fn returning() -> (Vec<Vec<u8>>, Registry) {
    let mut registry = Registry::default();
    let messages = (0..AGENTS).map(|number| {
        let Input::Message { message: Message::RegisterSlave(registration), .. } = registration(number) else {
            unreachable!("it is one")
        };
        let id = mesos::SlaveId { value: format!("11111111-2222-3333-4444-555555555555-S{number}").as_str().into() };
        let slave = mesos::SlaveInfo { id: Some(id.clone()), ..registration.slave };
        let row = registry::Slave { info: slave.clone(), ..Default::default() };
        registry.slaves.get_or_insert_default().slaves.push(row);
        let message = ReregisterSlaveMessage {
            slave,
            tasks: (0..10).map(|task| running(number * 10 + task, &id)).collect(),
            frameworks: vec![framework("f", "r")],
            version: registration.version,
            agent_capabilities: registration.agent_capabilities,
            resource_version_uuid: registration.resource_version_uuid,
            ..Default::default()
        };
        message.encode_to_vec()
    });
    let messages = messages.collect();
    (messages, registry)
}

/// Returns a running task as its agent lists it.
fn running(number: u32, agent: &mesos::SlaveId) -> mesos::Task {
    let task_id = mesos::TaskId { value: format!("task-{number}").as_str().into() };
    let status = mesos::TaskStatus {
        task_id: task_id.clone(),
        state: mesos::TaskState::TaskRunning as i32,
        source: Some(mesos::task_status::Source::Executor as i32),
        slave_id: Some(agent.clone()),
        timestamp: Some(1.0),
        ..Default::default()
    };
    let allocated = |name, amount| {
        let mut resource = scalar(name, amount);
        resource.allocation_info = Some(mesos::resource::AllocationInfo { role: Some("r".into()) });
        resource
    };
    mesos::Task {
        name: format!("task-{number}"),
        task_id,
        framework_id: mesos::FrameworkId { value: "f".into() },
        slave_id: agent.clone(),
        state: mesos::TaskState::TaskRunning as i32,
        resources: vec![allocated("cpus", 0.1), allocated("mem", 32.0)],
        statuses: vec![status],
        status_update_state: Some(mesos::TaskState::TaskRunning as i32),
        ..Default::default()
    }
}

/// Measures all agents that reregister with a new master, which has their framework already.
fn failover() {
    let (messages, registry) = returning();
    let start = Instant::now();
    let decoded: Vec<Input> = (0..)
        .zip(&messages)
        .map(|(number, body)| {
            let message = Message::decode("master", "mesos.internal.ReregisterSlaveMessage", body);
            Input::Message { from: agent_pid(number), message: message.unwrap().unwrap() }
        })
        .collect();
    report("an agent with ten tasks registers again: decoding", AGENTS, start.elapsed());
    let mut bench = Bench::with(&registry);
    bench.subscribe("f", "r");
    bench.end();
    let (start, mut offers) = (Instant::now(), 0);
    for (number, input) in decoded.into_iter().enumerate() {
        bench.feed(input);
        if number % 10 == 9 {
            offers += offers_of(&bench.end()).len();
        }
    }
    report("    and the core, with an offer", AGENTS, start.elapsed());
    assert_eq!(offers, AGENTS as usize);
}

fn main() {
    if std::env::args().all(|argument| argument != "failover") {
        life();
    }
    failover();
}

/// Measures agents that register, and tasks on them.
fn life() {
    let mut bench = Bench::new();
    let registrations: Vec<Input> = (0..AGENTS).map(registration).collect();
    let start = Instant::now();
    for (number, input) in registrations.into_iter().enumerate() {
        bench.feed(input);
        if number % 10 == 9 {
            bench.end();
        }
    }
    report("an agent registers", AGENTS, start.elapsed());

    bench.subscribe("f", "r");
    let start = Instant::now();
    let offers = offers_of(&bench.end());
    report("an offer is made", AGENTS, start.elapsed());
    assert_eq!(offers.len(), AGENTS as usize);

    let start = Instant::now();
    for offer in &offers {
        let filters = Some(mesos::Filters { refuse_seconds: Some(1.0) });
        let decline = call::Decline { offer_ids: vec![offer.id.clone()], filters };
        let kind = Some(call::Type::Decline as i32);
        bench.call("f", Call { r#type: kind, decline: Some(decline), ..Call::default() });
        bench.end();
    }
    report("an offer is declined", AGENTS, start.elapsed());

    bench.now = bench.now + Duration::from_secs(2);
    let start = Instant::now();
    let offers = offers_of(&bench.end());
    report("an offer is made again", AGENTS, start.elapsed());
    assert_eq!(offers.len(), AGENTS as usize);

    // Ten tasks on each agent, which keep running.
    let launches: Vec<(Call, Vec<mesos::TaskInfo>)> = offers
        .iter()
        .map(|offer| {
            let ids = (0..10).map(|number| format!("task-{}-{number}", offer.slave_id.value));
            let tasks: Vec<_> = ids.map(|id| task(offer, id)).collect();
            (accept(offer, tasks.clone()), tasks)
        })
        .collect();
    let mut running = Vec::new();
    let start = Instant::now();
    for (call, tasks) in launches {
        bench.call("f", call);
        bench.end();
        running.extend(tasks);
    }
    report("a task is launched", AGENTS * 10, start.elapsed());
    let (updates, acks): (Vec<Input>, Vec<Call>) =
        running.iter().map(|task| (update("f", task, mesos::TaskState::TaskRunning, 1), acknowledge(task, 1))).unzip();
    let start = Instant::now();
    for (update, ack) in updates.into_iter().zip(acks) {
        bench.feed(update);
        bench.end();
        bench.call("f", ack);
        bench.end();
    }
    report("an update and its acknowledgement", AGENTS * 10, start.elapsed());

    let start = Instant::now();
    let mut snapshots = Vec::new();
    for task in running.iter().take(100) {
        snapshots.push(bench.master.snapshot());
        bench.feed(update("f", task, mesos::TaskState::TaskRunning, 1));
        bench.end();
    }
    report("a snapshot and an update after it", 100, start.elapsed());
    let start = Instant::now();
    for _ in 0..1000 {
        snapshots.push(bench.master.snapshot());
    }
    report("a snapshot where nothing has changed", 1000, start.elapsed());

    let (updates, acks): (Vec<Input>, Vec<Call>) =
        running.iter().map(|task| (update("f", task, mesos::TaskState::TaskFinished, 2), acknowledge(task, 2))).unzip();
    let start = Instant::now();
    for (update, ack) in updates.into_iter().zip(acks) {
        bench.feed(update);
        bench.end();
        bench.call("f", ack);
        bench.end();
    }
    report("a task's last update and its acknowledgement", AGENTS * 10, start.elapsed());
}
