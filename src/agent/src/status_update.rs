//! Handles status updates of executors, and those that the agent itself makes.
//!
//! An update is checkpointed (if the framework checkpoints), queued in its task's stream, and acknowledged to the
//! executor. The stream decides when it is forwarded.

use std::sync::Arc;

use base::{ExecutorId, FrameworkId, InvalidUuid, TaskId, Time};
use cores::Level;
use protos::mesos::internal::{StatusUpdate, StatusUpdateAcknowledgementMessage, StatusUpdateMessage};
use protos::mesos::{self as pb, TaskState, executor as api};

use crate::agent::Agent;
use crate::disk::{frame, frame_update, paths};
use crate::output::{Outbox, Output, Persist};
use crate::state::{
    Executor, ExecutorLink, ExecutorState, FrameworkState, GeneratedStatus, Queued, Received, is_terminal, note_status,
    update_of,
};

/// Returns the UUID of a received update.
fn uuid_of(update: &StatusUpdate) -> Result<[u8; 16], InvalidUuid> {
    base::valid_uuid(update.uuid.as_deref().or(update.status.uuid.as_deref()).unwrap_or_default())
}

impl Agent {
    /// Handles a status update of an executor.
    pub(crate) fn executor_update(&mut self, mut update: StatusUpdate, now: Time, out: &mut Outbox) {
        let Some(known) = self.frameworks.get(update.framework_id.value.as_str()) else {
            return self.invalid_update("its framework is unknown", out);
        };
        if known.state == FrameworkState::Terminating {
            return self.update_while_shutting_down(&update, out);
        }
        let other_agent = update.slave_id.as_ref().is_some_and(|id| *id != self.slave_id());
        if other_agent {
            return self.invalid_update("it is for another agent", out);
        }
        let Ok(uuid) = uuid_of(&update) else {
            return self.invalid_update("it has no valid uuid", out);
        };
        let Ok(task) = TaskId::of(&update.status.task_id.value) else {
            return self.invalid_update("its task id is invalid", out);
        };
        let named = update.executor_id.as_ref().and_then(|id| known.executors.get(id.value.as_str()));
        let Some(executor) = named.filter(|executor| executor.has_task(&task)).or_else(|| known.executor_of(&task))
        else {
            let (framework, executor) = (known.id.clone(), named.cloned());
            return self.update_without_task(&framework, executor.as_deref(), &task, uuid, update, now, out);
        };
        let (framework, executor_id) = (known.id.clone(), executor.id.clone());
        if update.status.state == TaskState::TaskStaging as i32 {
            self.invalid_update("its state is TASK_STAGING, which executors may not send", out);
            return self.shut_down_executor(&framework, executor_id.as_str(), now, out);
        }
        let queued = executor.queued_task(&task).is_some();
        if queued && !is_terminal(update.status.state) {
            return self.invalid_update("its task was not sent to the executor yet", out);
        }
        self.complete_update(&mut update, executor, uuid);
        let before = self.streams.state_of(&framework, &task, &uuid);
        if before.is_full && !is_terminal(update.status.state) {
            return self.invalid_update("too many updates of its task are unacknowledged", out);
        }
        let ended = executor.terminated.contains_key(&task);
        let link = executor.link.clone();
        if !ended && !before.is_duplicate {
            self.apply_update((&framework, &executor_id, &task), uuid, update, now, out);
        }
        self.acknowledge_to_executor(&framework, &link, &task, uuid, out);
    }

    /// Queues an update that the agent itself makes. `executor` is the one that the task was meant for, if there is
    /// one.
    pub(crate) fn report(
        &mut self,
        framework: &FrameworkId,
        executor: Option<&ExecutorId>,
        task: &str,
        generated: &GeneratedStatus,
        now: Time,
        out: &mut Outbox,
    ) {
        let uuid = self.random.uuid();
        let mut update = update_of(generated, framework, executor, self.id.as_ref(), task, uuid, now);
        let Ok(task) = TaskId::new(task) else {
            return self.report_once(update, out);
        };
        let owner = executor.and_then(|id| self.executor(framework.as_str(), id.as_str()));
        match owner.filter(|executor| executor.has_task(&task)) {
            Some(executor) if !executor.terminated.contains_key(&task) => {
                self.complete_container_status(&mut update.status, executor);
                let ending = executor.ending.as_ref().map(|ending| ending.reason);
                if !executor.limitation.is_empty() && ending == Some(generated.reason) {
                    let resources = executor.limitation.clone();
                    update.status.limitation = Some(pb::TaskResourceLimitation { resources });
                }
                let executor = executor.id.clone();
                self.apply_update((framework, &executor, &task), uuid, update, now, out);
            }
            Some(_) => {}
            None => self.queue_update((framework, &task), uuid, update, None, now, out),
        }
    }

    /// Sends an update about a task whose id is invalid. It is not queued, because no acknowledgement can be stored for
    /// it.
    fn report_once(&self, mut update: StatusUpdate, out: &mut Outbox) {
        update.latest_state = Some(update.status.state);
        let pid = Some(self.texts.pid.clone());
        self.send_to_master(StatusUpdateMessage { update, pid }, out);
    }

    /// Handles an update of a task that its executor does not have. It is forwarded, because the framework may know the
    /// task.
    #[allow(clippy::too_many_arguments)]
    fn update_without_task(
        &mut self,
        framework: &FrameworkId,
        executor: Option<&Executor>,
        task: &TaskId,
        uuid: [u8; 16],
        mut update: StatusUpdate,
        now: Time,
        out: &mut Outbox,
    ) {
        let Some(executor) = executor else {
            return self.invalid_update("its executor is unknown", out);
        };
        let is_completed = executor.completed.iter().any(|completed| completed.task_id.value == task.as_str());
        if !is_completed {
            if self.streams.state_of(framework, task, &uuid).is_full || self.streams.has_too_many_tasks() {
                return self.invalid_update("too many updates of unknown tasks are unacknowledged", out);
            }
            self.complete_update(&mut update, executor, uuid);
            self.queue_update((framework, task), uuid, update, None, now, out);
        }
        self.acknowledge_to_executor(framework, &executor.link, task, uuid, out);
    }

    /// Handles an update of a framework that is being shut down. Such updates are expected and not forwarded; they are
    /// acknowledged, because an executor may wait for that before it ends.
    fn update_while_shutting_down(&mut self, update: &StatusUpdate, out: &mut Outbox) {
        self.counters.invalid_status_updates += 1;
        out.log(Level::Debug, "Dropped a status update of a framework that is being shut down");
        let Some(known) = self.frameworks.get(update.framework_id.value.as_str()) else { return };
        let executor = update.executor_id.as_ref().and_then(|id| known.executors.get(id.value.as_str()));
        let uuid = uuid_of(update);
        if let (Some(executor), Ok(uuid), Ok(task)) = (executor, uuid, TaskId::of(&update.status.task_id.value)) {
            self.acknowledge_to_executor(&known.id, &executor.link, &task, uuid, out);
        }
    }

    fn invalid_update(&mut self, why: &str, out: &mut Outbox) {
        self.counters.invalid_status_updates += 1;
        out.warn(format!("Dropped a status update: {why}"));
    }

    /// Sets the fields of an update that the agent knows better than the executor.
    fn complete_update(&self, update: &mut StatusUpdate, executor: &Executor, uuid: [u8; 16]) {
        update.uuid = Some(uuid.to_vec());
        update.slave_id = Some(self.slave_id());
        update.executor_id = Some(pb::ExecutorId { value: (&executor.id).into() });
        let status = &mut update.status;
        status.uuid.clone_from(&update.uuid);
        status.slave_id.clone_from(&update.slave_id);
        status.executor_id.clone_from(&update.executor_id);
        status.source = Some(pb::task_status::Source::Executor as i32);
        status.timestamp.get_or_insert(update.timestamp);
        self.complete_container_status(status, executor);
    }

    fn complete_container_status(&self, status: &mut pb::TaskStatus, executor: &Executor) {
        let container = status.container_status.get_or_insert_default();
        if container.container_id.is_none() {
            container.container_id = Some(executor.container.to_proto());
        }
        if container.executor_pid.is_none() {
            container.executor_pid = executor.pid;
        }
        if let Some(info) = executor.cgroup_info() {
            container.cgroup_info = Some(info);
        }
        if !executor.networks.is_empty() {
            container.network_infos.clone_from(&executor.networks);
        }
        let has_address = container.network_infos.iter().any(|network| !network.ip_addresses.is_empty());
        if !has_address {
            let address = pb::network_info::IpAddress {
                ip_address: Some(self.texts.ip.clone()),
                ..pb::network_info::IpAddress::default()
            };
            if container.network_infos.is_empty() {
                container.network_infos.push(pb::NetworkInfo::default());
            }
            container.network_infos[0].ip_addresses.push(address);
        }
    }

    /// Applies an update to a task of this executor, and queues it.
    fn apply_update(
        &mut self,
        (framework, executor, task): (&FrameworkId, &ExecutorId, &TaskId),
        uuid: [u8; 16],
        mut update: StatusUpdate,
        now: Time,
        out: &mut Outbox,
    ) {
        let Some(known) = self.frameworks.get(framework.as_str()) else { return };
        let Some(owner) = known.executors.get(executor) else { return };
        self.explain_by_draining(&known.info, &mut update);
        let run = known.checkpoints().then(|| Arc::clone(&owner.run));
        if let (Some(run), Some(queued)) = (&run, owner.queued_task(task)) {
            // The next agent process cannot use updates without their task.
            let record = crate::state::task_of(queued, owner);
            self.checkpoint(paths::task_file(run, task, "task.info"), frame(&record), out);
        }
        let (volumes, lives) = (!owner.volumes.is_empty(), owner.state != ExecutorState::Terminated);
        let ended = self.change_task(framework, executor, task, &update.status);
        if ended && volumes && lives {
            self.update_volumes(framework.as_str(), executor.as_str(), out);
        }
        if ended && lives {
            self.resize(framework.as_str(), executor.as_str(), out);
        }
        self.queue_update((framework, task), uuid, update, run, now, out);
    }

    /// Adds an update to its stream, and to the stream's file. A new stream has a file if `run`, the directory of the
    /// executor's run, is set.
    fn queue_update(
        &mut self,
        key: (&FrameworkId, &TaskId),
        uuid: [u8; 16],
        update: StatusUpdate,
        run: Option<Arc<str>>,
        now: Time,
        out: &mut Outbox,
    ) {
        let update = Arc::new(update);
        let file = || run.as_ref().map(|run| Arc::from(paths::task_file(run, key.1, paths::UPDATES)));
        let Received::New { file: own } = self.streams.receive(key, uuid, Arc::clone(&update), file, now) else {
            return;
        };
        self.counters.valid_status_updates += 1;
        if let Some(file) = own.or_else(file) {
            out.persist.push(Persist::Append { path: file.to_string(), at: None, bytes: frame_update(&update) });
        }
    }

    /// Changes the task's record; an ended task waits for the acknowledgement of its last update. Returns whether the
    /// update ends the task.
    fn change_task(
        &mut self,
        framework: &FrameworkId,
        executor: &ExecutorId,
        task: &TaskId,
        status: &pb::TaskStatus,
    ) -> bool {
        let ended = is_terminal(status.state);
        if ended && let Ok(state) = TaskState::try_from(status.state) {
            *self.counters.tasks.entry(counter_of(state)).or_default() += 1;
        }
        let Some(executor) = self.executor_mut(framework.as_str(), executor.as_str()) else { return ended };
        let mut record = match executor.launched.remove(task) {
            Some(record) => record,
            None => match remove_queued_task(executor, task) {
                Some(queued) => Arc::new(crate::state::task_of(&queued, executor)),
                None => return ended,
            },
        };
        note_status(Arc::make_mut(&mut record), status);
        let target = if ended { &mut executor.terminated } else { &mut executor.launched };
        target.insert(task.clone(), record);
        ended
    }

    /// Acknowledges an update to its executor. The update is durable before the acknowledgement is sent.
    fn acknowledge_to_executor(
        &self,
        framework: &FrameworkId,
        link: &ExecutorLink,
        task: &TaskId,
        uuid: [u8; 16],
        out: &mut Outbox,
    ) {
        let task_id = pb::TaskId { value: task.into() };
        match link {
            ExecutorLink::Pid(pid) => {
                let message = StatusUpdateAcknowledgementMessage {
                    slave_id: self.slave_id(),
                    framework_id: pb::FrameworkId { value: framework.into() },
                    task_id,
                    uuid: uuid.to_vec(),
                };
                self.send(pid, message, out);
            }
            _ => {
                let event = api::Event {
                    r#type: Some(api::event::Type::Acknowledged as i32),
                    acknowledged: Some(api::event::Acknowledged { task_id, uuid: uuid.to_vec() }),
                    ..api::Event::default()
                };
                self.event(link, event, out);
            }
        }
    }

    /// Sends the updates that are due to the master.
    pub(crate) fn forward_updates(&mut self, now: Time, out: &mut Outbox) {
        if self.streams.paused() {
            return;
        }
        let due = self.streams.take_due(now);
        let refused = std::mem::take(&mut self.refused);
        if due.is_empty() {
            return;
        }
        for (update, latest_state) in due {
            let (framework, task) = (&update.framework_id.value, &update.status.task_id.value);
            let is_refused =
                refused.iter().any(|(f, t)| f.as_str() == framework.as_str() && t.as_str() == task.as_str());
            let mut update = StatusUpdate::clone(&update);
            update.latest_state = Some(latest_state);
            let message = StatusUpdateMessage { update, pid: Some(self.texts.pid.clone()) };
            match &self.master {
                // A refused task has no effects, so its update need not wait for a disk that cannot be written.
                Some(master) if is_refused => {
                    out.at_once.push(Output::Send { to: master.clone(), message: Arc::new(message.into()) });
                }
                _ => self.send_to_master(message, out),
            }
        }
    }
}

/// Removes one task from an executor's queue; the rest of its group stays.
fn remove_queued_task(executor: &mut Executor, task: &TaskId) -> Option<Arc<pb::TaskInfo>> {
    let index = executor.queued.iter().position(|q| q.tasks().iter().any(|t| t.task_id.value == task.as_str()))?;
    match &mut executor.queued[index] {
        Queued::Task(_) => executor.queued.remove(index).tasks().first().cloned(),
        Queued::Group(tasks) => {
            let position = tasks.iter().position(|t| t.task_id.value == task.as_str())?;
            let taken = tasks.remove(position);
            if tasks.is_empty() {
                executor.queued.remove(index);
            }
            Some(taken)
        }
    }
}

/// Returns the name under which an ended task is counted.
fn counter_of(state: TaskState) -> &'static str {
    match state {
        TaskState::TaskFinished => "finished",
        TaskState::TaskFailed => "failed",
        TaskState::TaskKilled => "killed",
        TaskState::TaskGone | TaskState::TaskGoneByOperator => "gone",
        TaskState::TaskError => "error",
        _ => "lost",
    }
}
