//! What tests break on purpose, to see whether a fault campaign notices: each thing as code with a fault would do it.
//!
//! The places where it is done ask here; nothing of it is in a build that is no test.

use std::sync::Arc;

use agent::{Input, Persist};
use master::{Answer, Message, RegistryOp};
use protos::mesos::TaskState;
use protos::mesos::scheduler::Event;
use sdk::v1::scheduler::Call;

use super::event::{Event as Queued, ToScheduler};
use super::{Observer, World};

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sabotage {
    /// The master never hears of acknowledgements.
    Acknowledgements,
    /// Agents do not write the streams of updates down.
    Checkpoints,
    /// What agents write down of their tasks is damaged.
    Damage,
    /// Agents obey whoever speaks to them, also a master that does not lead any more.
    Deposed,
    /// Every fifth task is said to run once more when it has ended.
    Endings,
    /// Agents leave what is reserved by their flags out when they register again.
    Flags,
    /// Volumes go with their agent's process.
    Folders,
    /// Every fifth launch comes to its executor twice.
    Launches,
    /// Every fifth message with offers comes to its scheduler twice.
    Offers,
    /// Every fifth update comes to another scheduler, too.
    Owners,
    /// What masters write down of quotas and weights is not there for the next one.
    Registry,
    /// Every fifth call is refused for no reason.
    Refusals,
    /// Agents have fewer CPUs when they register again.
    Room,
    /// Schedulers do not write anything down.
    Saves,
    /// Every fifth task never gets to its agent, over a connection that holds.
    Tasks,
    /// How long frameworks want to be kept is lost on the way.
    Times,
    /// Every fifth update of a running task is acknowledged, and nobody has heard it.
    Updates,
    /// What is in volumes does not outlive an agent's process.
    Volumes,
}

impl<O: Observer> World<O> {
    /// Whether that is broken, in every fifth case.
    pub(super) fn spoils(&mut self, what: Sabotage) -> bool {
        self.sabotage == Some(what) && self.name().is_multiple_of(5)
    }

    /// What comes to an agent seems to come from the master that it follows.
    pub(super) fn spoil_order(&self, agent: u32, input: &mut Input) {
        let Input::Message { from, .. } = input else { return };
        let follows = self.agents[agent as usize].linked.as_ref();
        if let Some(pid) = follows.filter(|_| self.sabotage == Some(Sabotage::Deposed) && from.id() == "master") {
            *from = pid.clone();
        }
    }

    /// What an agent says to a master.
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
    pub(super) fn spoiled_answer(&mut self, answer: Answer) -> Answer {
        match self.spoils(Sabotage::Refusals) {
            true => Answer { status: 500, ..answer },
            false => answer,
        }
    }

    /// What a scheduler says of itself.
    pub(super) fn spoiled_subscription(&self, call: &Call) -> Call {
        let mut call = call.clone();
        if let Some(subscribe) = call.subscribe.as_mut().filter(|_| self.sabotage == Some(Sabotage::Times)) {
            subscribe.framework_info.failover_timeout = None;
        }
        call
    }

    /// What comes to a scheduler over a connection; false if nobody notices it, though it is answered.
    pub(super) fn spoil_event(&mut self, who: u32, connection: u64, event: &mut Arc<Event>) -> bool {
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

/// What is durable of what an agent has written.
pub(super) fn spoiled_entries(sabotage: Option<Sabotage>, written: Vec<Persist>) -> Vec<Persist> {
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
