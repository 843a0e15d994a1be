//! Modelled processes: command executors, each with one task, which speak the v1 executor protocol with their agent.
//!
//! They outlive their agent's process, look for it again, and repeat what it has not confirmed, as real ones do.

use std::time::Duration;

use agent::{ContainerName, ContainerSpec, Input, RequestId, StreamId};
use base::Time;
use protos::mesos::executor::{Call, Event as Said, call, event};
use protos::mesos::{self as pb, TaskState};

use crate::network::Channel;
use crate::world::{Event, ToExecutor, World};

/// How long an executor looks for its agent: the agent's `--recovery_timeout`.
const RECOVERY: Duration = Duration::from_secs(15 * 60);

/// The wait status of a process that signal 9 has ended.
pub const KILLED: i32 = 9;

/// An executor's process.
pub struct Executor {
    pub agent: usize,
    container: ContainerName,
    pub framework: String,
    pub id: String,
    /// Whether it outlives the loss of its agent.
    checkpoint: bool,
    /// The life of the agent that watches the process.
    watcher: u64,
    pub dead: bool,
    connection: Option<u64>,
    /// Whether the connection is broken and the executor has not noticed.
    cut: bool,
    subscribed: bool,
    lost_at: Time,
    pub task: Option<pb::TaskInfo>,
    /// Whether its task has ended.
    pub ended: bool,
    /// The task, as long as none of its updates was confirmed.
    unseen: Vec<pb::TaskInfo>,
    /// What was not confirmed, and whether it went out over the present connection.
    updates: Vec<(pb::TaskStatus, bool)>,
}

impl World {
    /// An agent starts a container.
    pub fn launch_container(&mut self, agent: usize, container: ContainerName, spec: &ContainerSpec) {
        let variable = |name: &str| {
            let found = spec.environment.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let life = self.agents[agent].life;
        if self.rng.one_in(30) {
            let why = "the disk is full".to_owned();
            return self.agent_later(agent, Input::ContainerStartFailed { container, why });
        }
        let executor = Executor {
            agent,
            container,
            framework: variable("MESOS_FRAMEWORK_ID"),
            id: variable("MESOS_EXECUTOR_ID"),
            checkpoint: variable("MESOS_CHECKPOINT") == "1",
            watcher: life,
            dead: false,
            connection: None,
            cut: false,
            subscribed: false,
            lost_at: self.now,
            task: None,
            ended: false,
            unseen: Vec::new(),
            updates: Vec::new(),
        };
        self.executors.push(executor);
        let (executor, delay) = (self.executors.len() - 1, self.rng.below(100));
        self.note(|| format!("agent {agent} launches executor {executor}"));
        self.after(delay, Event::Executor { executor, what: ToExecutor::Started { life } });
    }

    /// An agent watches a container that an earlier life of its has started.
    pub fn reattach_container(&mut self, agent: usize, container: &ContainerName) {
        let life = self.agents[agent].life;
        let found = self.executors.iter_mut().position(|e| e.agent == agent && e.container == *container && !e.dead);
        let input = match found {
            Some(executor) => {
                self.executors[executor].watcher = life;
                Input::ContainerStarted { container: container.clone(), pid: executor as u32 + 1000 }
            }
            None => Input::ContainerExited { container: container.clone(), status: None },
        };
        self.agent_later(agent, input);
    }

    /// An agent ends a container.
    pub fn destroy_container(&mut self, agent: usize, container: &ContainerName) {
        match self.executors.iter().position(|e| e.agent == agent && e.container == *container && !e.dead) {
            Some(executor) => self.end_executor(executor, KILLED),
            None => self.agent_later(agent, Input::ContainerExited { container: container.clone(), status: None }),
        }
    }

    /// A process ends, and whoever watches it is told.
    pub fn end_executor(&mut self, executor: usize, status: i32) {
        let entry = &mut self.executors[executor];
        if std::mem::replace(&mut entry.dead, true) {
            return;
        }
        let (agent, container, watcher) = (entry.agent, entry.container.clone(), entry.watcher);
        let connection = entry.connection.take().filter(|_| !entry.cut);
        self.note(|| format!("executor {executor} ends with {status}"));
        self.net.break_channel(Channel::ExecutorCalls(executor));
        self.net.break_channel(Channel::ExecutorEvents(executor));
        if self.agents[agent].life == watcher {
            if let Some(stream) = connection {
                self.agent_later(agent, Input::ExecutorStreamClosed { stream: StreamId(stream) });
            }
            self.agent_later(agent, Input::ContainerExited { container, status: Some(status) });
        }
    }

    /// The connection between an executor and its agent breaks; both notice later.
    pub fn cut_executor(&mut self, executor: usize) {
        let entry = &mut self.executors[executor];
        let Some(connection) = entry.connection.filter(|_| !entry.cut) else { return };
        entry.cut = true;
        let agent = entry.agent;
        self.net.break_channel(Channel::ExecutorCalls(executor));
        self.net.break_channel(Channel::ExecutorEvents(executor));
        self.agent_later(agent, Input::ExecutorStreamClosed { stream: StreamId(connection) });
        let delay = self.rng.below(200);
        self.after(delay, Event::Executor { executor, what: ToExecutor::Closed { connection } });
    }

    /// An agent's process has ended: its executors lose their connections.
    pub fn agent_is_lost(&mut self, agent: usize) {
        for executor in 0..self.executors.len() {
            if self.executors[executor].agent == agent {
                self.cut_executor(executor);
            }
        }
    }

    /// Something has happened to an executor.
    pub fn executor_input(&mut self, executor: usize, what: ToExecutor) {
        let entry = &self.executors[executor];
        if entry.dead {
            return;
        }
        let current = |connection: u64| entry.connection == Some(connection);
        match what {
            ToExecutor::Started { life } => self.executor_started(executor, life),
            ToExecutor::Subscribe => self.subscribe_executor(executor),
            ToExecutor::Event { connection, event } => {
                if current(connection) && !entry.cut {
                    self.executor_event(executor, &event);
                }
            }
            ToExecutor::Answer { connection, taken } => {
                if current(connection) && !taken {
                    self.cut_executor(executor);
                }
            }
            ToExecutor::Closed { connection } => {
                if current(connection) {
                    self.executor_lost(executor);
                }
            }
            ToExecutor::TaskEnds { finished } => {
                let state = if finished { TaskState::TaskFinished } else { TaskState::TaskFailed };
                self.end_task(executor, state);
            }
            ToExecutor::Exit { status } => self.end_executor(executor, status),
        }
    }

    fn executor_started(&mut self, executor: usize, life: u64) {
        let (agent, container) = (self.executors[executor].agent, self.executors[executor].container.clone());
        if self.agents[agent].life == life {
            self.agent_input(agent, Input::ContainerStarted { container, pid: executor as u32 + 1000 });
        } else if self.rng.one_in(2) {
            // The agent ended before it had started the process.
            return self.end_executor(executor, KILLED);
        }
        self.after(10, Event::Executor { executor, what: ToExecutor::Subscribe });
    }

    fn subscribe_executor(&mut self, executor: usize) {
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

    fn executor_lost(&mut self, executor: usize) {
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

    fn executor_event(&mut self, executor: usize, said: &Said) {
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

    fn end_task(&mut self, executor: usize, state: TaskState) {
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
