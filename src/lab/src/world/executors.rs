//! Modelled processes: command executors, each with one task, which use the executor API v1.
//!
//! They outlive their agent's process, reconnect, and repeat unacknowledged updates, as real ones do. The default
//! executor of task groups runs all of its tasks in the same way.

use std::time::Duration;

use agent::{ContainerName, ContainerSpec, Input, Proof, RequestId, StreamId, VolumeLink};
use base::Time;
use protos::mesos::executor::{Call, Event as ExecutorEvent, call, event};
use protos::mesos::{self as pb, TaskState};

use super::event::{BoxedTask, Event, ToExecutor};
use super::network::OneWayConnection;
use super::view::RunningExecutor;
use super::{Note, Observer, World};
use crate::work::Work;

/// Wait status of a process that was ended by signal 9.
const KILLED: i32 = 9;
/// Time for which an executor tries to reconnect: the agent's `--recovery_timeout`.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// Interval of an executor's attempts to reconnect.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(500);
/// Time from the last acknowledgement to the end of an executor's process.
const LINGER: Duration = Duration::from_millis(5);

/// A task in an executor.
struct Running {
    task: BoxedTask,
    ended: bool,
    /// Whether none of the task's updates has been acknowledged.
    unseen: bool,
}

/// A process of an executor.
pub(super) struct Executor {
    serial: u64,
    agent: u32,
    container: ContainerName,
    framework: String,
    id: String,
    /// Whether the executor survives the loss of its agent.
    checkpoint: bool,
    /// Life number of the agent that monitors the process.
    watcher: u32,
    connection: Option<u64>,
    /// Whether the connection is broken and neither end has noticed it.
    broken: bool,
    subscribed: bool,
    lost_at: Time,
    tasks: Vec<Running>,
    /// Persistent volumes that the executor sees.
    volumes: Vec<VolumeLink>,
    /// Updates that are not acknowledged, and whether each was sent over the present connection.
    updates: Vec<(pb::TaskStatus, bool)>,
    calls: OneWayConnection,
    events: OneWayConnection,
}

impl Executor {
    fn call(&self, kind: call::Type) -> Call {
        Call {
            r#type: Some(kind as i32),
            framework_id: pb::FrameworkId { value: (&self.framework).into() },
            executor_id: pb::ExecutorId { value: (&self.id).into() },
            ..Call::default()
        }
    }

    /// Returns the executor's state for checkers.
    pub fn view(&self) -> RunningExecutor<'_> {
        let tasks = self.tasks.iter().filter(|running| !running.ended);
        RunningExecutor {
            framework: &self.framework,
            id: &self.id,
            tasks: tasks.map(|running| running.task.task_id.value.as_str()).collect(),
        }
    }

    fn is_over(&self) -> bool {
        !self.tasks.is_empty() && self.updates.is_empty() && self.tasks.iter().all(|running| running.ended)
    }
}

impl<O: Observer> World<O> {
    /// Launches a container for an agent.
    pub(super) fn launch_container(&mut self, agent: u32, container: ContainerName, spec: &ContainerSpec) {
        let variable = |name: &str| {
            let found = spec.environment.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let (serial, generation) = (self.next_id(), self.agents[agent as usize].generation);
        if let Some(left) = self.agents[agent as usize].failing.checked_sub(1) {
            self.agents[agent as usize].failing = left;
            let why = "the container cannot be started".to_owned();
            return self.agent_input_later(agent, Duration::ZERO, Input::ContainerStartFailed { container, why });
        }
        let refused = self.agent_disk_refuses(agent).map(|error| format!("the sandbox cannot be created: {error}"));
        if let Some(why) = refused.or_else(|| self.missing_volume(agent, &spec.volumes)) {
            return self.agent_input_later(agent, Duration::ZERO, Input::ContainerStartFailed { container, why });
        }
        let entry = Executor {
            serial,
            agent,
            container: container.clone(),
            framework: variable("MESOS_FRAMEWORK_ID"),
            id: variable("MESOS_EXECUTOR_ID"),
            checkpoint: variable("MESOS_CHECKPOINT") == "1",
            watcher: generation,
            connection: None,
            broken: false,
            subscribed: false,
            lost_at: self.now,
            tasks: Vec::new(),
            volumes: self.defective_volumes(spec.volumes.clone()),
            updates: Vec::new(),
            calls: OneWayConnection::default(),
            events: OneWayConnection::default(),
        };
        let executor = self.executors.insert(entry) as u32;
        self.agents[agent as usize].containers.insert(container, executor);
        let at = self.now + self.draw_duration(|model| &model.container_start);
        self.queue.push(at, Event::Executor { executor, serial, what: ToExecutor::Started { generation } });
    }

    /// Changes the volumes that a container sees.
    pub(super) fn link_volumes(
        &mut self,
        agent: u32,
        container: &ContainerName,
        added: Vec<VolumeLink>,
        removed: &[VolumeLink],
    ) {
        let added = self.defective_volumes(added);
        let refused = self.agent_disk_refuses(agent).filter(|_| !added.is_empty());
        let refused = refused.map(|error| format!("its volumes cannot be mounted: {error}"));
        if let Some(why) = refused.or_else(|| self.missing_volume(agent, &added)) {
            let container = container.clone();
            return self.agent_input_later(agent, Duration::ZERO, Input::ContainerUpdateFailed { container, why });
        }
        let executor = self.agents[agent as usize].containers.get(container).copied();
        let Some(entry) = executor.and_then(|executor| self.executors.get_mut(executor as usize)) else { return };
        entry.volumes.retain(|link| {
            !removed
                .iter()
                .any(|other| (&other.container_path, &other.directory) == (&link.container_path, &link.directory))
        });
        entry.volumes.extend(added);
    }

    /// Makes an agent monitor a container that an earlier process of it has launched.
    pub(super) fn reattach_container(&mut self, agent: u32, container: ContainerName) {
        let host = &self.agents[agent as usize];
        let input = match host.containers.get(&container).copied() {
            Some(executor) => {
                self.executors[executor as usize].watcher = host.generation;
                Input::ContainerStarted { container, pid: executor + 1000 }
            }
            None => Input::ContainerExited { container, status: None },
        };
        self.agent_input(agent, input);
    }

    /// Destroys a container for an agent.
    pub(super) fn destroy_container(&mut self, agent: u32, container: &ContainerName) {
        match self.agents[agent as usize].containers.get(container).copied() {
            Some(executor) => self.end_executor(executor, KILLED),
            None => self.agent_input(agent, Input::ContainerExited { container: container.clone(), status: None }),
        }
    }

    /// Ends an executor's process, and notifies its agent.
    pub(super) fn end_executor(&mut self, executor: u32, status: i32) {
        let Some(entry) = self.executors.try_remove(executor as usize) else { return };
        let note = Note::ExecutorEnds { agent: entry.agent, framework: &entry.framework, id: &entry.id, status };
        self.observer.noted(&note, self.now);
        let host = &mut self.agents[entry.agent as usize];
        host.containers.remove(&entry.container);
        for running in entry.tasks.iter().filter(|running| !running.ended) {
            self.observer.ended(&entry.framework, &running.task.task_id.value, self.now);
        }
        if host.generation == entry.watcher && host.runs() {
            if let Some(stream) = entry.connection {
                host.streams.remove(&stream);
                self.agent_input(entry.agent, Input::ExecutorStreamClosed { stream: StreamId(stream) });
            }
            self.agent_input(entry.agent, Input::ContainerExited { container: entry.container, status: Some(status) });
        }
    }

    /// Breaks the connections of an agent's executors when its process ends.
    pub(super) fn break_executors(&mut self, agent: u32) {
        for executor in self.executors_of(agent) {
            self.break_executor(executor);
        }
    }

    /// Returns the running executors on an agent's host, in a fixed order.
    pub(super) fn executors_of(&self, agent: u32) -> Vec<u32> {
        let mut executors: Vec<u32> = self.agents[agent as usize].containers.values().copied().collect();
        executors.sort_unstable();
        executors
    }

    /// Breaks the connection between an executor and its agent. Both notice it after a while.
    pub(super) fn break_executor(&mut self, executor: u32) {
        let Some(entry) = self.executors.get_mut(executor as usize) else { return };
        let Some(connection) = entry.connection.filter(|_| !entry.broken) else { return };
        entry.calls.cut();
        entry.events.cut();
        entry.broken = true;
        let (agent, serial, later) = (entry.agent, entry.serial, Duration::from_millis(10));
        let what = ToExecutor::Closed { connection };
        self.queue.push(self.now + later, Event::Executor { executor, serial, what });
        self.agents[agent as usize].streams.remove(&connection);
        self.agent_input_later(agent, later, Input::ExecutorStreamClosed { stream: StreamId(connection) });
    }

    /// Sends a message to an executor.
    pub(super) fn tell_executor(&mut self, executor: u32, what: ToExecutor) {
        // Both are on one host, so there is no modelled latency.
        if let Some(entry) = self.executors.get_mut(executor as usize)
            && !entry.broken
            && let Some(at) = entry.events.send(self.now, self.now)
        {
            self.queue.push(at, Event::Executor { executor, serial: entry.serial, what });
        }
    }

    /// Handles a message for an executor.
    pub(super) fn executor_arrival(&mut self, executor: u32, serial: u64, what: ToExecutor) {
        let Some(entry) = self.executors.get(executor as usize).filter(|entry| entry.serial == serial) else { return };
        let current = |connection: u64| entry.connection == Some(connection);
        let whole = !entry.broken;
        match what {
            ToExecutor::Started { generation } => self.executor_started(executor, generation),
            ToExecutor::Subscribe => self.subscribe_executor(executor),
            ToExecutor::Event { connection, event } if whole && current(connection) => {
                self.executor_event(executor, std::sync::Arc::unwrap_or_clone(event));
            }
            ToExecutor::Refused { connection } | ToExecutor::Closed { connection } if current(connection) => {
                self.executor_lost(executor);
            }
            ToExecutor::TaskEnds(state) => self.end_tasks(executor, None, state),
            ToExecutor::Exit(status) => self.end_executor(executor, status),
            _ => {}
        }
    }

    fn executor_started(&mut self, executor: u32, generation: u32) {
        let entry = &self.executors[executor as usize];
        let (agent, container, serial) = (entry.agent, entry.container.clone(), entry.serial);
        if self.agents[agent as usize].generation == generation {
            self.agent_input(agent, Input::ContainerStarted { container, pid: executor + 1000 });
        }
        self.queue.push(self.now, Event::Executor { executor, serial, what: ToExecutor::Subscribe });
    }

    /// Subscribes an executor that has no connection, or ends it if it has tried for too long.
    fn subscribe_executor(&mut self, executor: u32) {
        let entry = &self.executors[executor as usize];
        if entry.connection.is_some() {
            return;
        }
        if self.now.since(entry.lost_at) > RECOVERY_TIMEOUT {
            return self.end_executor(executor, 0);
        }
        let (agent, serial) = (entry.agent, entry.serial);
        if !self.agents[agent as usize].runs() {
            let at = self.now + RECONNECT_INTERVAL;
            return self.queue.push(at, Event::Executor { executor, serial, what: ToExecutor::Subscribe });
        }
        let (connection, request) = (self.next_id(), self.next_id());
        let entry = &mut self.executors[executor as usize];
        (entry.connection, entry.broken, entry.subscribed) = (Some(connection), false, false);
        let unseen = entry.tasks.iter().filter(|running| running.unseen);
        let subscribe = call::Subscribe {
            unacknowledged_tasks: unseen.map(|running| (*running.task).clone()).collect(),
            unacknowledged_updates: entry
                .updates
                .iter()
                .map(|(status, _)| call::Update { status: status.clone() })
                .collect(),
        };
        entry.updates.iter_mut().for_each(|(_, sent)| *sent = true);
        let call = Call { subscribe: Some(subscribe), ..entry.call(call::Type::Subscribe) };
        let input = Input::ExecutorSubscribe {
            stream: StreamId(connection),
            request: RequestId(request),
            call: Box::new(call),
            proof: Proof::Connection,
        };
        self.agents[agent as usize].streams.insert(connection, executor);
        self.executor_calls(executor, request, connection, input);
    }

    fn executor_calls(&mut self, executor: u32, request: u64, connection: u64, input: Input) {
        let entry = &mut self.executors[executor as usize];
        let host = &mut self.agents[entry.agent as usize];
        if !entry.broken
            && let Some(at) = entry.calls.send(self.now, self.now)
        {
            host.requests.insert(request, (executor, connection));
            let event = Event::Agent { agent: entry.agent, generation: host.generation, epoch: None, input };
            self.queue.push(at, event);
        }
    }

    /// Handles the loss of an executor's connection.
    fn executor_lost(&mut self, executor: u32) {
        let entry = &mut self.executors[executor as usize];
        entry.connection = None;
        if std::mem::take(&mut entry.subscribed) {
            entry.lost_at = self.now;
            if !entry.checkpoint {
                return self.end_executor(executor, KILLED);
            }
        }
        let (serial, at) = (entry.serial, self.now + RECONNECT_INTERVAL);
        self.queue.push(at, Event::Executor { executor, serial, what: ToExecutor::Subscribe });
    }

    /// Handles an event of an executor's stream.
    fn executor_event(&mut self, executor: u32, event: ExecutorEvent) {
        match event.r#type() {
            event::Type::Subscribed => {
                self.executors[executor as usize].subscribed = true;
                self.send_updates(executor);
            }
            event::Type::Launch => {
                if let Some(launch) = event.launch {
                    if self.injects(super::Defect::DoubleLaunches) {
                        self.run_task(executor, launch.task.clone());
                    }
                    self.run_task(executor, launch.task);
                }
            }
            event::Type::LaunchGroup => {
                let event = self.defective_group(executor, event);
                for task in event.launch_group.into_iter().flat_map(|group| group.task_group.tasks) {
                    self.run_task(executor, task);
                }
            }
            event::Type::Kill => {
                let task = event.kill.as_ref().map(|kill| kill.task_id.value.as_str());
                self.end_tasks(executor, task, TaskState::TaskKilled);
            }
            event::Type::Acknowledged => {
                if let Some(acknowledged) = &event.acknowledged {
                    self.update_confirmed(executor, &acknowledged.uuid);
                }
            }
            event::Type::Shutdown => {
                self.end_tasks(executor, None, TaskState::TaskKilled);
                let serial = self.executors[executor as usize].serial;
                let at = self.now + Duration::from_millis(500);
                self.queue.push(at, Event::Executor { executor, serial, what: ToExecutor::Exit(0) });
            }
            _ => {}
        }
    }

    fn run_task(&mut self, executor: u32, task: pb::TaskInfo) {
        let entry = &mut self.executors[executor as usize];
        let (framework, serial, id) = (entry.framework.clone(), entry.serial, task.task_id.value.clone());
        let agent = entry.agent;
        let work = Work::of(&task);
        entry.tasks.push(Running { task: Box::new(task), ended: false, unseen: true });
        self.observer.started(&framework, &id, self.now);
        self.use_volumes(executor);
        self.create_update(executor, &id, TaskState::TaskStarting);
        self.create_update(executor, &id, TaskState::TaskRunning);
        if let Some((span, state)) = self.task_span(agent, &framework, &id, work) {
            self.queue.push(self.now + span, Event::Executor { executor, serial, what: ToExecutor::TaskEnds(state) });
        }
    }

    /// Makes the last task of an executor read its volumes and write its name into them.
    fn use_volumes(&mut self, executor: u32) {
        let entry = &self.executors[executor as usize];
        let Some(task) = entry.tasks.last() else { return };
        let (agent, framework, task) = (entry.agent, entry.framework.as_str(), &task.task);
        for resource in &task.resources {
            let Some(disk) = &resource.disk else { continue };
            let (Some(persistence), Some(volume)) = (&disk.persistence, &disk.volume) else { continue };
            let directory = entry
                .volumes
                .iter()
                .find(|link| link.container_path == volume.container_path)
                .map(|link| &link.directory);
            let data = directory.and_then(|directory| self.agents[agent as usize].volumes.get_mut(directory));
            let note = Note::VolumeUsed {
                agent,
                framework,
                task: &task.task_id.value,
                id: &persistence.id,
                shared: resource.shared.is_some(),
                data: data.as_deref(),
            };
            self.observer.noted(&note, self.now);
            if let Some(data) = data {
                data.insert(format!("{framework}/{}", task.task_id.value));
            }
        }
    }

    /// Ends a task of an executor, unless it has ended; all tasks if `task` is `None`.
    fn end_tasks(&mut self, executor: u32, task: Option<&str>, state: TaskState) {
        let entry = &mut self.executors[executor as usize];
        let mut ended = Vec::new();
        for running in &mut entry.tasks {
            let id = &running.task.task_id.value;
            if task.is_none_or(|task| task == id) && !std::mem::replace(&mut running.ended, true) {
                ended.push(id.clone());
            }
        }
        let framework = entry.framework.clone();
        for id in ended {
            if self.defect == Some(super::Defect::LingeringTasks) {
                self.create_update(executor, &id, state);
                continue;
            }
            self.observer.ended(&framework, &id, self.now);
            self.create_update(executor, &id, state);
        }
    }

    pub(super) fn create_update(&mut self, executor: u32, task: &str, state: TaskState) {
        let uuid = base::uuid_from(u128::from(self.next_id()).to_be_bytes()).to_vec();
        let entry = &self.executors[executor as usize];
        let shown = self.agents[entry.agent as usize].clock.show(self.now);
        let note = Note::UpdateCreated { framework: &entry.framework, task, state, uuid: &uuid };
        self.observer.noted(&note, self.now);
        let status = pb::TaskStatus {
            task_id: pb::TaskId { value: task.into() },
            state: state as i32,
            source: Some(pb::task_status::Source::Executor as i32),
            uuid: Some(uuid),
            timestamp: Some(shown.as_secs_f64()),
            ..pb::TaskStatus::default()
        };
        self.executors[executor as usize].updates.push((status, false));
        self.send_updates(executor);
    }

    fn send_updates(&mut self, executor: u32) {
        let entry = &self.executors[executor as usize];
        let Some(connection) = entry.connection.filter(|_| entry.subscribed) else { return };
        for index in 0..entry.updates.len() {
            let entry = &mut self.executors[executor as usize];
            if std::mem::replace(&mut entry.updates[index].1, true) {
                continue;
            }
            let update = Some(call::Update { status: entry.updates[index].0.clone() });
            let call = Box::new(Call { update, ..entry.call(call::Type::Update) });
            let request = self.next_id();
            let input = Input::ExecutorCall { request: RequestId(request), call, proof: Proof::Connection };
            self.executor_calls(executor, request, connection, input);
        }
    }

    fn update_confirmed(&mut self, executor: u32, uuid: &[u8]) {
        let entry = &mut self.executors[executor as usize];
        let Some(at) = entry.updates.iter().position(|(status, _)| status.uuid.as_deref() == Some(uuid)) else {
            return;
        };
        let (status, _) = entry.updates.remove(at);
        self.observer.noted(&Note::UpdateAcknowledged { framework: &entry.framework, uuid }, self.now);
        if let Some(running) = entry.tasks.iter_mut().find(|running| running.task.task_id == status.task_id) {
            running.unseen = false;
        }
        if entry.is_over() {
            let (serial, at) = (entry.serial, self.now + LINGER);
            self.queue.push(at, Event::Executor { executor, serial, what: ToExecutor::Exit(0) });
        }
    }
}
