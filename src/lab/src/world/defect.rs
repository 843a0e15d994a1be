//! Deliberate defects of a world, which show that a fault campaign detects such defects.
//!
//! In a world without a defect, everything passes unchanged.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use agent::{Input, Persist, RemovedVolume, VolumeLink};
use master::invariants::Breakage;
use master::{CallError, Config, ErrorKind, Message, Outgoing, RegistryOp};
use prost::Message as _;
use protos::mesos::TaskState;
use protos::mesos::executor::Event as ExecutorEvent;
use protos::mesos::internal::StatusUpdateRecord;
use protos::mesos::scheduler::Event;
use sdk::v1::scheduler::Call;

use super::event::{Event as Queued, ToScheduler};
use super::{Note, Observer, World};

/// The deliberate defects. In text their names are in kebab-case, such as `lost-tasks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Defect {
    /// Agents write damaged `task.info` files.
    DamagedCheckpoints,
    /// Agents obey every sender, including a master that no longer leads.
    DeposedMasterObeyed,
    /// Every fifth launch reaches its executor twice.
    DoubleLaunches,
    /// Every fifth OFFERS event reaches its scheduler twice.
    DoubleOffers,
    /// Agents write an executor's sentinel with the final update of its task.
    EarlySentinel,
    /// Volumes are empty after a restart of the agent.
    EmptiedVolumes,
    /// Agents have fewer CPUs when they reregister.
    FewerCpus,
    /// Executors do not see the volumes of their tasks.
    HiddenVolumes,
    /// The allocator ignores quotas.
    IgnoredQuota,
    /// Agents behave as if refused writes had succeeded.
    IgnoredRefusals,
    /// Masters behave as if refused writes of the registry had succeeded.
    IgnoredRegistryRefusals,
    /// Resources reserved for one role are offered to another.
    IgnoredReservations,
    /// Tasks keep running after their executors have reported their end.
    LingeringTasks,
    /// The master ignores acknowledgements.
    LostAcknowledgements,
    /// Subscriptions lose their failover timeout.
    LostFailoverTimeouts,
    /// Agents omit the reservations of their flags when they reregister.
    LostFlagReservations,
    /// The next process does not find the journal of checkpoints.
    LostJournal,
    /// Every fifth change of reservations and volumes is lost on a connection that holds.
    LostOperations,
    /// The registry loses quotas and weights.
    LostQuota,
    /// Schedulers do not save their state.
    LostSchedulerState,
    /// Agents do not receive the shutdown of a framework.
    LostShutdowns,
    /// Every fifth task is lost on a connection that holds.
    LostTasks,
    /// Agents do not checkpoint status updates.
    LostUpdateStreams,
    /// Volumes are deleted when the agent's process ends.
    LostVolumes,
    /// A master removes agents that do not reregister at once after its start.
    MasterGivesUp,
    /// Every fifth update reaches another scheduler, too.
    MisroutedUpdates,
    /// Every fifth call is rejected without a reason.
    RefusedCalls,
    /// Agents never receive acknowledgements.
    RepeatedUpdates,
    /// Every fifth task is reported as running once more after its end.
    RunningAfterEnd,
    /// Offers name all agents by the same id.
    SameAgentIds,
    /// All frameworks receive the same id.
    SameFrameworkIds,
    /// The last task of every fifth group fails before it reaches the executor.
    SplitGroups,
    /// The master does not count the resources of an agent's tasks.
    UncountedUse,
    /// Every fifth update of a running task is acknowledged without being delivered.
    UndeliveredUpdates,
    /// Agents are not notified that their disk refuses writes.
    UnreportedDiskErrors,
    /// Agents are not notified that their disk accepts writes again.
    UnreportedDiskRepairs,
    /// Agents create volumes without a request.
    UnrequestedVolumes,
    /// Destroyed volumes are created again.
    VolumesMadeAgain,
    /// Volumes are created on another agent, too.
    VolumesOnTwoAgents,
}

impl<O: Observer> World<O> {
    /// Sets the defect of the world; `None` removes it.
    pub fn set_defect(&mut self, defect: Option<Defect>) {
        self.defect = defect;
    }

    /// Returns whether the world has this defect, in every fifth case.
    pub(super) fn injects(&mut self, what: Defect) -> bool {
        self.defect == Some(what) && self.next_id().is_multiple_of(5)
    }

    /// Returns the settings with which a master is started.
    pub(super) fn defective_config(&self, config: Config) -> Config {
        match self.defect {
            Some(Defect::MasterGivesUp) => {
                let agent_reregister_timeout = Duration::from_millis(1);
                Config { recovery_agent_removal_limit: 0.0, agent_reregister_timeout, ..config }
            }
            _ => config,
        }
    }

    /// Applies defects of the leading master's state, before and after each batch.
    pub(super) fn corrupt_master(&mut self) {
        let breakage = match self.defect {
            Some(Defect::UncountedUse) => Breakage::Used,
            Some(Defect::IgnoredQuota) => Breakage::Quota,
            Some(Defect::IgnoredReservations) => Breakage::Reservation,
            _ => return,
        };
        if let Some(core) = &mut self.master.core {
            breakage.strike(core);
        }
    }

    /// Returns whether a message of a master to an agent is lost.
    pub(super) fn loses_message(&mut self, message: &Outgoing) -> bool {
        match message {
            Outgoing::RunTask(_) => self.injects(Defect::LostTasks),
            Outgoing::CheckpointResources(_) | Outgoing::ApplyOperation(_) => self.injects(Defect::LostOperations),
            Outgoing::ShutdownFramework(_) => self.defect == Some(Defect::LostShutdowns),
            Outgoing::StatusUpdateAcknowledgement(_) => self.defect == Some(Defect::RepeatedUpdates),
            _ => false,
        }
    }

    /// Changes the volumes that are created on an agent's disk.
    pub(super) fn corrupt_directories(&mut self, agent: u32, gone: &[RemovedVolume], new: &mut Vec<String>) {
        match self.defect {
            Some(Defect::VolumesOnTwoAgents) => {
                let other = (agent + 1) % self.agents.len() as u32;
                let notes = new.iter().map(|directory| Note::VolumeCreated { agent: other, directory });
                notes.for_each(|note| self.observer.noted(&note, self.now));
            }
            Some(Defect::VolumesMadeAgain) => new.extend(gone.iter().map(|volume| volume.path.clone())),
            Some(Defect::UnrequestedVolumes) => new.push("/w/volumes/roles/a/stranger".to_owned()),
            _ => {}
        }
    }

    /// Returns the volumes that an executor sees.
    pub(super) fn defective_volumes(&self, links: Vec<VolumeLink>) -> Vec<VolumeLink> {
        if self.defect == Some(Defect::HiddenVolumes) { Vec::new() } else { links }
    }

    /// Returns the event that launches a group of tasks, as the executor receives it.
    pub(super) fn defective_group(&mut self, executor: u32, mut event: ExecutorEvent) -> ExecutorEvent {
        if self.injects(Defect::SplitGroups)
            && let Some(task) = event.launch_group.as_mut().and_then(|group| group.task_group.tasks.pop())
        {
            self.create_update(executor, &task.task_id.value, TaskState::TaskFailed);
        }
        event
    }

    /// Returns an input as the agent receives it. With a defect, its sender appears to be the master that the agent
    /// follows.
    pub(super) fn forge_sender(&self, agent: u32, mut input: Input) -> Input {
        if let Input::Message { from, .. } = &mut input
            && self.defect == Some(Defect::DeposedMasterObeyed)
            && from.id() == "master"
            && let Some(pid) = &self.agents[agent as usize].linked
        {
            *from = pid.clone();
        }
        input
    }

    /// Changes a message of an agent to a master.
    pub(super) fn corrupt_reregistration(&self, message: &mut Message) {
        let Message::ReregisterSlave(message) = message else { return };
        let resources = &mut message.slave.resources;
        match self.defect {
            Some(Defect::LostFlagReservations) => {
                resources
                    .retain(|one| one.reservations.is_empty() && one.role.as_deref().is_none_or(|role| role == "*"));
            }
            Some(Defect::FewerCpus) => {
                let cpus = resources.iter_mut().find(|one| one.name == "cpus");
                cpus.and_then(|one| one.scalar.as_mut()).into_iter().for_each(|scalar| scalar.value = 1.0);
            }
            _ => {}
        }
    }

    /// Returns the part of a master's writes that becomes durable.
    pub(super) fn defective_registry_write(&self, written: Vec<RegistryOp>) -> Vec<RegistryOp> {
        let lost = |op: &RegistryOp| matches!(op, RegistryOp::UpdateQuota(_) | RegistryOp::UpdateWeights(_));
        if self.defect != Some(Defect::LostQuota) {
            return written;
        }
        written.into_iter().filter(|op| !lost(op)).collect()
    }

    /// Returns the error with which a call is answered; `None` without the defect.
    pub(super) fn defective_answer(&mut self) -> Option<CallError> {
        let error = CallError::new(ErrorKind::Unimplemented, "");
        self.injects(Defect::RefusedCalls).then_some(error)
    }

    /// Returns a scheduler's subscription as the master receives it.
    pub(super) fn defective_subscription<'a>(&self, call: &'a Call) -> Cow<'a, Call> {
        let mut call = Cow::Borrowed(call);
        if self.defect == Some(Defect::LostFailoverTimeouts)
            && let Some(subscribe) = &mut call.to_mut().subscribe
        {
            subscribe.framework_info.failover_timeout = None;
        }
        call
    }

    /// Changes an event for a scheduler. Returns `false` if the observer must not see it, as if it had not been
    /// delivered.
    pub(super) fn corrupt_event(&mut self, scheduler: u32, connection: u64, event: &mut Arc<Event>) -> bool {
        if self.defect.is_none() {
            return true;
        }
        if event.subscribed.is_some() && self.defect == Some(Defect::SameFrameworkIds) {
            let subscribed = Arc::make_mut(event).subscribed.as_mut();
            subscribed.into_iter().for_each(|part| part.framework_id.value = "m0-0000".into());
        }
        if event.offers.is_some() && self.defect == Some(Defect::SameAgentIds) {
            let offers = Arc::make_mut(event).offers.as_mut();
            offers.into_iter().flat_map(|part| &mut part.offers).for_each(|one| one.slave_id.value = "m0-S0".into());
        }
        if event.offers.is_some() && self.injects(Defect::DoubleOffers) {
            let what = ToScheduler::Event(Arc::clone(event));
            self.queue.push(self.now, Queued::Scheduler { scheduler, connection, what });
        }
        let Some(status) = event.update.as_ref().map(|update| &update.status) else { return true };
        let (state, made) = (status.state(), status.uuid.is_some());
        if made && self.injects(Defect::MisroutedUpdates) {
            let scheduler = (scheduler + 1) % self.schedulers.len() as u32;
            let what = ToScheduler::Event(Arc::clone(event));
            if let Some(connection) = self.schedulers[scheduler as usize].connection {
                self.queue.push(self.now, Queued::Scheduler { scheduler, connection, what });
            }
        }
        if made && state == TaskState::TaskFinished && self.injects(Defect::RunningAfterEnd) {
            let mut again = Arc::clone(event);
            if let Some(update) = Arc::make_mut(&mut again).update.as_mut() {
                (update.status.state, update.status.uuid) = (TaskState::TaskRunning as i32, None);
            }
            let what = ToScheduler::Event(again);
            self.queue.push(self.now, Queued::Scheduler { scheduler, connection, what });
        }
        !(made && state == TaskState::TaskRunning && self.injects(Defect::UndeliveredUpdates))
    }
}

/// Returns whether an input does not reach an agent's core.
pub(super) fn is_kept_from_agent(defect: Option<Defect>, input: &Input) -> bool {
    match input {
        Input::CheckpointsFailing { .. } => defect == Some(Defect::UnreportedDiskErrors),
        Input::CheckpointsWork => defect == Some(Defect::UnreportedDiskRepairs),
        _ => false,
    }
}

/// Returns the part of an agent's writes that becomes durable.
pub(super) fn defective_checkpoints(defect: Option<Defect>, mut written: Vec<Persist>) -> Vec<Persist> {
    if defect == Some(Defect::EarlySentinel) {
        written.extend(written.iter().filter_map(done_at_once).collect::<Vec<_>>());
    }
    if defect.is_none() {
        return written;
    }
    let spoiled = |entry| match (defect, entry) {
        (Some(Defect::LostUpdateStreams), Persist::Append { .. }) => None,
        (Some(Defect::DamagedCheckpoints), Persist::Replace { path, mut bytes }) if path.ends_with("task.info") => {
            bytes.iter_mut().for_each(|byte| *byte = !*byte);
            Some(Persist::Replace { path, bytes })
        }
        (_, entry) => Some(entry),
    };
    written.into_iter().filter_map(spoiled).collect()
}

/// Returns an executor's sentinel, if the entry is the final update of a task.
fn done_at_once(entry: &Persist) -> Option<Persist> {
    let Persist::Append { path, bytes, .. } = entry else { return None };
    let (run, task) = path.split_once("/tasks/")?;
    // Skips the length of the record.
    let record = StatusUpdateRecord::decode(bytes.get(4..)?).ok().filter(|_| task.ends_with("task.updates"))?;
    let state = record.update?.status.state();
    let is_over = !matches!(state, TaskState::TaskStarting | TaskState::TaskRunning);
    is_over.then(|| Persist::Replace { path: format!("{run}/executor.sentinel"), bytes: Vec::new() })
}
