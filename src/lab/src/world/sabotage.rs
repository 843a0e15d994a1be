//! Deliberate defects for tests, which show that a fault campaign detects them.
//!
//! The places of the defects call this module; test builds alone contain it.

use std::sync::Arc;
use std::time::Duration;

use agent::{Input, Persist, VolumeLink};
use master::invariants::Breakage;
use master::{CallError, Config, ErrorKind, Message, Outgoing, RegistryOp};
use prost::Message as _;
use protos::mesos::TaskState;
use protos::mesos::executor::Event as Said;
use protos::mesos::internal::StatusUpdateRecord;
use protos::mesos::scheduler::Event;
use sdk::v1::scheduler::Call;

use super::event::{Event as Queued, ToScheduler};
use super::{Note, Observer, World};

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sabotage {
    /// The master ignores acknowledgements.
    Acknowledgements,
    /// All agents are offered under the same id.
    Agents,
    /// Masters do not count what an agent's tasks use.
    Books,
    /// Agents do not write the streams of updates down.
    Checkpoints,
    /// What agents write down of their tasks is damaged.
    Damage,
    /// Agents obey messages of every sender, also of a master that no longer leads.
    Deposed,
    /// Volumes are made on another agent, too.
    Doubles,
    /// Agents take executors for done once the end of their task is written down.
    Early,
    /// Every fifth task is reported as running once more after its end.
    Endings,
    /// Agents leave what is reserved by their flags out when they register again.
    Flags,
    /// Volumes go with their agent's process.
    Directories,
    /// Agents behave as if refused writes had succeeded.
    FullDisks,
    /// A master gives up when agents are not there at once after its start.
    GivesUp,
    /// Of every fifth group the last task fails unseen.
    Groups,
    /// All frameworks receive the same id.
    Ids,
    /// What is in the journal of checkpoints is not there for the next process.
    Journals,
    /// Every fifth launch reaches its executor twice.
    Launches,
    /// The allocator forgets quotas.
    Limits,
    /// Tasks keep running after their executors have reported their end.
    Lingering,
    /// Executors do not see the volumes of their tasks.
    Links,
    /// Every fifth message with offers reaches its scheduler twice.
    Offers,
    /// Every fifth change of reservations and volumes never gets to its agent, over a connection that holds.
    Operations,
    /// Every fifth update reaches another scheduler, too.
    Owners,
    /// Agents ignore acknowledgements.
    Receipts,
    /// What masters write down of quotas and weights is not there for the next one.
    Registry,
    /// Every fifth call is refused for no reason.
    Refusals,
    /// Volumes are made again when they are destroyed.
    Remade,
    /// Agents have fewer CPUs when they register again.
    Room,
    /// Schedulers do not write anything down.
    Saves,
    /// Agents ignore the shutdown of a framework.
    Shutdowns,
    /// What is reserved for one role is offered to another.
    Snatches,
    /// Agents create volumes without a request.
    Strangers,
    /// Every fifth task never gets to its agent, over a connection that holds.
    Tasks,
    /// Failover timeouts are lost on the way.
    Times,
    /// Agents are not notified that their disk accepts writes again.
    Unhealed,
    /// Agents are not notified that their disk refuses writes.
    Untold,
    /// Masters behave as if refused writes of the registry had succeeded.
    Unwritten,
    /// Every fifth update of a running task is acknowledged without being delivered.
    Updates,
    /// What is in volumes does not outlive an agent's process.
    Volumes,
}

impl<O: Observer> World<O> {
    /// Whether that is broken, in every fifth case.
    pub(super) fn spoils(&mut self, what: Sabotage) -> bool {
        self.sabotage == Some(what) && self.name().is_multiple_of(5)
    }

    /// The settings of a master that is about to be started.
    pub(super) fn spoiled_config(&self, config: Config) -> Config {
        match self.sabotage {
            Some(Sabotage::GivesUp) => {
                let agent_reregister_timeout = Duration::from_millis(1);
                Config { recovery_agent_removal_limit: 0.0, agent_reregister_timeout, ..config }
            }
            _ => config,
        }
    }

    /// The master that leads is about to handle a batch, or has.
    pub(super) fn spoil_master(&mut self) {
        let breakage = match self.sabotage {
            Some(Sabotage::Books) => Breakage::Used,
            Some(Sabotage::Limits) => Breakage::Quota,
            Some(Sabotage::Snatches) => Breakage::Reservation,
            _ => return,
        };
        if let Some(core) = &mut self.master.core {
            breakage.strike(core);
        }
    }

    /// Whether what a master sends to an agent is lost.
    pub(super) fn spoils_order(&mut self, message: &Outgoing) -> bool {
        match message {
            Outgoing::RunTask(_) => self.spoils(Sabotage::Tasks),
            Outgoing::CheckpointResources(_) | Outgoing::ApplyOperation(_) => self.spoils(Sabotage::Operations),
            Outgoing::ShutdownFramework(_) => self.sabotage == Some(Sabotage::Shutdowns),
            Outgoing::StatusUpdateAcknowledgement(_) => self.sabotage == Some(Sabotage::Receipts),
            _ => false,
        }
    }

    /// The directories of volumes that are deleted from and created on an agent's disk.
    pub(super) fn spoil_directories(&mut self, agent: u32, gone: &[&str], new: &mut Vec<String>) {
        match self.sabotage {
            Some(Sabotage::Doubles) => {
                let other = (agent + 1) % self.agents.len() as u32;
                let notes = new.iter().map(|directory| Note::VolumeMade { agent: other, directory });
                notes.for_each(|note| self.observer.noted(&note, self.now));
            }
            Some(Sabotage::Remade) => new.extend(gone.iter().map(|directory| (*directory).to_owned())),
            Some(Sabotage::Strangers) => new.push("/w/volumes/roles/a/stranger".to_owned()),
            _ => {}
        }
    }

    /// The volumes that an executor sees.
    pub(super) fn spoiled_links(&self, links: Vec<VolumeLink>) -> Vec<VolumeLink> {
        if self.sabotage == Some(Sabotage::Links) { Vec::new() } else { links }
    }

    /// A group of tasks for an executor.
    pub(super) fn spoiled_group(&mut self, executor: u32, mut said: Said) -> Said {
        if self.spoils(Sabotage::Groups)
            && let Some(task) = said.launch_group.as_mut().and_then(|group| group.task_group.tasks.pop())
        {
            self.make_update(executor, &task.task_id.value, TaskState::TaskFailed);
        }
        said
    }

    /// Makes inputs of an agent appear to come from the master that it follows.
    pub(super) fn spoil_order(&self, agent: u32, input: &mut Input) {
        let Input::Message { from, .. } = input else { return };
        let follows = self.agents[agent as usize].linked.as_ref();
        if let Some(pid) = follows.filter(|_| self.sabotage == Some(Sabotage::Deposed) && from.id() == "master") {
            *from = pid.clone();
        }
    }

    /// A message of an agent to a master.
    pub(super) fn spoil_report(&self, message: &mut Message) {
        let Message::ReregisterSlave(message) = message else { return };
        let resources = &mut message.slave.resources;
        match self.sabotage {
            Some(Sabotage::Flags) => {
                resources
                    .retain(|one| one.reservations.is_empty() && one.role.as_deref().is_none_or(|role| role == "*"));
            }
            Some(Sabotage::Room) => {
                let cpus = resources.iter_mut().find(|one| one.name == "cpus");
                cpus.and_then(|one| one.scalar.as_mut()).into_iter().for_each(|scalar| scalar.value = 1.0);
            }
            _ => {}
        }
    }

    /// What is durable of what a master has written.
    pub(super) fn spoiled_registry(&self, written: Vec<RegistryOp>) -> Vec<RegistryOp> {
        let lost = |op: &RegistryOp| matches!(op, RegistryOp::UpdateQuota(_) | RegistryOp::UpdateWeights(_));
        let spoils = self.sabotage == Some(Sabotage::Registry);
        written.into_iter().filter(|op| !(spoils && lost(op))).collect()
    }

    /// What a master answers to a call.
    pub(super) fn spoiled_answer(&mut self) -> Option<CallError> {
        let error = CallError { kind: ErrorKind::Unimplemented, text: String::new() };
        self.spoils(Sabotage::Refusals).then_some(error)
    }

    /// A scheduler's subscription.
    pub(super) fn spoiled_subscription(&self, call: &Call) -> Call {
        let mut call = call.clone();
        if let Some(subscribe) = call.subscribe.as_mut().filter(|_| self.sabotage == Some(Sabotage::Times)) {
            subscribe.framework_info.failover_timeout = None;
        }
        call
    }

    /// An event for a scheduler; `false` if it is dropped although it is answered.
    pub(super) fn spoil_event(&mut self, who: u32, connection: u64, event: &mut Arc<Event>) -> bool {
        if event.subscribed.is_some() && self.sabotage == Some(Sabotage::Ids) {
            let subscribed = Arc::make_mut(event).subscribed.as_mut();
            subscribed.into_iter().for_each(|part| part.framework_id.value = "m0-0000".into());
        }
        if event.offers.is_some() && self.sabotage == Some(Sabotage::Agents) {
            let offers = Arc::make_mut(event).offers.as_mut();
            offers.into_iter().flat_map(|part| &mut part.offers).for_each(|one| one.slave_id.value = "m0-S0".into());
        }
        if event.offers.is_some() && self.spoils(Sabotage::Offers) {
            let what = ToScheduler::Event(Arc::clone(event));
            self.queue.push(self.now, Queued::Scheduler { who, connection, what });
        }
        let Some(status) = event.update.as_ref().map(|update| &update.status) else { return true };
        let (state, made) = (status.state(), status.uuid.is_some());
        if made && self.spoils(Sabotage::Owners) {
            let who = (who + 1) % self.schedulers.len() as u32;
            let what = ToScheduler::Event(Arc::clone(event));
            if let Some(connection) = self.schedulers[who as usize].connection {
                self.queue.push(self.now, Queued::Scheduler { who, connection, what });
            }
        }
        if made && state == TaskState::TaskFinished && self.spoils(Sabotage::Endings) {
            let mut again = Arc::clone(event);
            if let Some(update) = Arc::make_mut(&mut again).update.as_mut() {
                (update.status.state, update.status.uuid) = (TaskState::TaskRunning as i32, None);
            }
            let what = ToScheduler::Event(again);
            self.queue.push(self.now, Queued::Scheduler { who, connection, what });
        }
        !(made && state == TaskState::TaskRunning && self.spoils(Sabotage::Updates))
    }
}

/// Whether an agent's core never gets an input.
pub(super) fn is_kept_from_agent(sabotage: Option<Sabotage>, input: &Input) -> bool {
    match input {
        Input::CheckpointsFailing { .. } => sabotage == Some(Sabotage::Untold),
        Input::CheckpointsWork => sabotage == Some(Sabotage::Unhealed),
        _ => false,
    }
}

/// What is durable of what an agent has written.
pub(super) fn spoiled_entries(sabotage: Option<Sabotage>, mut written: Vec<Persist>) -> Vec<Persist> {
    if sabotage == Some(Sabotage::Early) {
        written.extend(written.iter().filter_map(done_at_once).collect::<Vec<_>>());
    }
    let spoiled = |entry| match (sabotage, entry) {
        (Some(Sabotage::Checkpoints), Persist::Append { .. }) => None,
        (Some(Sabotage::Damage), Persist::Replace { path, mut bytes }) if path.ends_with("task.info") => {
            bytes.iter_mut().for_each(|byte| *byte = !*byte);
            Some(Persist::Replace { path, bytes })
        }
        (_, entry) => Some(entry),
    };
    written.into_iter().filter_map(spoiled).collect()
}

/// That an executor is done, if the end of a task of its is being written down.
fn done_at_once(entry: &Persist) -> Option<Persist> {
    let Persist::Append { path, bytes, .. } = entry else { return None };
    let (run, task) = path.split_once("/tasks/")?;
    // After the length.
    let record = StatusUpdateRecord::decode(bytes.get(4..)?).ok().filter(|_| task.ends_with("task.updates"))?;
    let state = record.update?.status.state();
    let is_over = !matches!(state, TaskState::TaskStarting | TaskState::TaskRunning);
    is_over.then(|| Persist::Replace { path: format!("{run}/executor.sentinel"), bytes: Vec::new() })
}
