//! Modelled processes: command executors, each with one task. What they say to their agent is in `executors.rs`.
//!
//! They outlive their agent's process, look for it again, and repeat what it has not confirmed, as real ones do.

use agent::{ContainerName, ContainerSpec, Input, StreamId};
use base::Time;
use protos::mesos::{self as pb, TaskState};

use crate::network::Channel;
use crate::world::{Event, ToExecutor, World};

/// The wait status of a process that signal 9 has ended.
pub const KILLED: i32 = 9;

/// An executor's process.
pub struct Executor {
    pub agent: usize,
    container: ContainerName,
    pub framework: String,
    pub id: String,
    /// Whether it outlives the loss of its agent.
    pub checkpoint: bool,
    /// The life of the agent that watches the process.
    pub watcher: u64,
    pub dead: bool,
    pub connection: Option<u64>,
    /// Whether the connection is broken and the executor has not noticed.
    pub cut: bool,
    pub subscribed: bool,
    pub lost_at: Time,
    pub task: Option<pb::TaskInfo>,
    /// Whether its task has ended.
    pub ended: bool,
    /// The task, as long as none of its updates was confirmed.
    pub unseen: Vec<pb::TaskInfo>,
    /// What was not confirmed, and whether it went out over the present connection.
    pub updates: Vec<(pb::TaskStatus, bool)>,
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
}
