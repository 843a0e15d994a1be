//! The command executor's protocol: subscribing, running its one task, and telling what becomes of it.
//!
//! Its process is in `containers.rs`.

use std::time::Duration;

use agent::{Input, RequestId, StreamId};
use protos::mesos::executor::{Call, Event as Said, call, event};
use protos::mesos::{self as pb, TaskState};

use crate::containers::{Executor, KILLED};
use crate::network::Channel;
use crate::world::{Event, ToExecutor, World};

/// How long an executor looks for its agent: the agent's `--recovery_timeout`.
const RECOVERY: Duration = Duration::from_secs(15 * 60);

impl World {
    /// An executor without a connection subscribes, or gives up.
    /// An executor without a connection subscribes, or gives up.
    pub fn subscribe_executor(&mut self, executor: usize) {
        let entry = &mut self.executors[executor];
        if entry.connection.is_some() {
            return;
        }
        if self.now.since(entry.lost_at) > RECOVERY {
            return self.end_executor(executor, 0);
        }
        let agent = entry.agent;
        if self.agents[agent].core.is_none() {
            let delay = 100 + self.rng.below(900);
            return self.after(delay, Event::Executor { executor, what: ToExecutor::Subscribe });
        }
        let (connection, request) = (self.id(), self.id());
        let entry = &mut self.executors[executor];
        (entry.connection, entry.cut, entry.subscribed) = (Some(connection), false, false);
        let updates = entry.updates.iter().map(|(status, _)| call::Update { status: status.clone() }).collect();
        entry.updates.iter_mut().for_each(|(_, sent)| *sent = true);
        let subscribe = call::Subscribe { unacknowledged_tasks: entry.unseen.clone(), unacknowledged_updates: updates };
        let mut call = entry.call(call::Type::Subscribe);
        call.subscribe = Some(subscribe);
        let input = Input::ExecutorSubscribe {
            stream: StreamId(connection),
            request: RequestId(request),
            call: Box::new(call),
        };
        self.agents[agent].streams.insert(connection, executor);
        self.executor_request(executor, request, connection, input);
    }

    fn executor_request(&mut self, executor: usize, request: u64, connection: u64, input: Input) {
        let agent = self.executors[executor].agent;
        self.agents[agent].requests.insert(request, (executor, connection));
        let life = self.agents[agent].life;
        self.post(Channel::ExecutorCalls(executor), Event::Agent { agent, life, input });
    }

    /// An executor has lost its connection.
    pub fn executor_lost(&mut self, executor: usize) {
        let now = self.now;
        let entry = &mut self.executors[executor];
        entry.connection = None;
        if std::mem::take(&mut entry.subscribed) {
            entry.lost_at = now;
            if !entry.checkpoint {
                return self.end_executor(executor, KILLED);
            }
        }
        let delay = 100 + self.rng.below(900);
        self.after(delay, Event::Executor { executor, what: ToExecutor::Subscribe });
    }

    /// An event of its stream has come to an executor.
    pub fn executor_event(&mut self, executor: usize, said: &Said) {
        match said.r#type() {
            event::Type::Subscribed => {
                self.executors[executor].subscribed = true;
                self.send_updates(executor);
            }
            event::Type::Launch => {
                if let Some(launch) = &said.launch {
                    self.run_task(executor, launch.task.clone());
                }
            }
            event::Type::Kill => self.end_task(executor, TaskState::TaskKilled),
            event::Type::Acknowledged => {
                if let Some(acknowledged) = &said.acknowledged {
                    self.update_confirmed(executor, &acknowledged.uuid);
                }
            }
            event::Type::Shutdown => {
                self.end_task(executor, TaskState::TaskKilled);
                self.after(500, Event::Executor { executor, what: ToExecutor::Exit { status: 0 } });
            }
            _ => {}
        }
    }

    fn run_task(&mut self, executor: usize, task: pb::TaskInfo) {
        let (framework, id) = (self.executors[executor].framework.clone(), task.task_id.value.clone());
        self.note(|| format!("executor {executor} runs {framework}/{id}"));
        self.task_started(&framework, &id);
        self.executors[executor].task = Some(task.clone());
        self.executors[executor].unseen.push(task);
        self.make_update(executor, TaskState::TaskStarting);
        self.make_update(executor, TaskState::TaskRunning);
        if !self.rng.one_in(8) {
            let (span, finished) = (self.rng.below(60_000), !self.rng.one_in(4));
            self.after(span, Event::Executor { executor, what: ToExecutor::TaskEnds { finished } });
        }
    }

    /// An executor's task ends, if it has not.
    pub fn end_task(&mut self, executor: usize, state: TaskState) {
        let entry = &mut self.executors[executor];
        if entry.task.is_none() || std::mem::replace(&mut entry.ended, true) {
            return;
        }
        self.make_update(executor, state);
    }

    fn make_update(&mut self, executor: usize, state: TaskState) {
        let uuid = u128::from(self.id()).to_be_bytes().to_vec();
        let now = self.now;
        let entry = &mut self.executors[executor];
        let Some(task) = &entry.task else { return };
        let status = pb::TaskStatus {
            task_id: task.task_id.clone(),
            state: state as i32,
            source: Some(pb::task_status::Source::Executor as i32),
            uuid: Some(uuid.clone()),
            timestamp: Some(now.as_secs_f64()),
            ..pb::TaskStatus::default()
        };
        let (framework, task) = (entry.framework.clone(), task.task_id.value.clone());
        entry.updates.push((status, false));
        self.update_made(&framework, &task, uuid);
        self.send_updates(executor);
    }

    fn send_updates(&mut self, executor: usize) {
        let entry = &mut self.executors[executor];
        let Some(connection) = entry.connection.filter(|_| entry.subscribed && !entry.cut) else { return };
        let mut calls = Vec::new();
        for index in 0..entry.updates.len() {
            if !std::mem::replace(&mut entry.updates[index].1, true) {
                let mut call = entry.call(call::Type::Update);
                call.update = Some(call::Update { status: entry.updates[index].0.clone() });
                calls.push(call);
            }
        }
        for call in calls {
            let request = self.id();
            let input = Input::ExecutorCall { request: RequestId(request), call: Box::new(call) };
            self.executor_request(executor, request, connection, input);
        }
    }

    fn update_confirmed(&mut self, executor: usize, uuid: &[u8]) {
        let entry = &mut self.executors[executor];
        entry.updates.retain(|(status, _)| status.uuid.as_deref() != Some(uuid));
        entry.unseen.clear();
        let over = entry.ended && entry.updates.is_empty();
        self.truth.confirmed.insert(uuid.to_vec());
        if over {
            self.after(100, Event::Executor { executor, what: ToExecutor::Exit { status: 0 } });
        }
    }
}

impl Executor {
    fn call(&self, kind: call::Type) -> Call {
        Call {
            r#type: Some(kind as i32),
            framework_id: pb::FrameworkId { value: self.framework.clone() },
            executor_id: pb::ExecutorId { value: self.id.clone() },
            ..Call::default()
        }
    }
}
