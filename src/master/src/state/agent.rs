//! An agent as the master knows it, and the core's own book about it.
//!
//! It does not decide when an agent comes or goes; see `agents/`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{AgentId, ExecutorId, Pid, TaskId, Time};
use protos::mesos;
use resources::Resources;

use super::{AgentCapabilities, FrameworkKey, TaskKey};
use crate::timers::Token;

/// An executor that runs on an agent. Those that agents make up for command tasks are not known to a master.
#[derive(Clone, Debug)]
pub struct Executor {
    /// Whose it is.
    pub framework: FrameworkKey,
    /// What the framework said of it.
    pub info: Arc<mesos::ExecutorInfo>,
    /// What it takes, beside its tasks.
    pub resources: Resources,
}

/// A resource provider on an agent.
#[derive(Clone, Debug)]
pub struct ResourceProvider {
    /// What the agent said of it.
    pub info: mesos::ResourceProviderInfo,
    /// What it provides; part of the agent's total.
    pub total: Resources,
    /// The version of its resources, which operations must name.
    pub version: mesos::Uuid,
    /// Operations, by uuid, that were open when it last reported: what they make is not in `total` yet.
    pub(crate) undone: BTreeSet<Vec<u8>>,
}

/// The attribute of an agent that wants no tasks; its text says why.
pub const UNHEALTHY: &str = "unhealthy";

/// A registered agent.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Its id.
    pub id: AgentId,
    /// What it says of itself; `id` is set.
    pub info: Arc<mesos::SlaveInfo>,
    /// Its process.
    pub pid: Pid,
    /// Its version; a semantic one.
    pub version: String,
    /// What it can do.
    pub capabilities: AgentCapabilities,
    /// When it registered with this master.
    pub registered: Time,
    /// When it last reregistered.
    pub reregistered: Option<Time>,
    /// Whether its connection lives.
    pub connected: bool,
    /// Whether an operator has taken it out of use.
    pub deactivated: bool,
    /// Whether and how it is being drained.
    pub drain: Option<mesos::DrainInfo>,
    /// When this master believes that the draining began.
    pub drain_start: Option<Time>,
    /// When it is not to be counted on: its machine's maintenance.
    pub unavailability: Option<mesos::Unavailability>,
    /// What frameworks have answered when they were asked to leave it.
    pub inverse_answers: BTreeMap<FrameworkKey, mesos::allocator::InverseOfferStatus>,
    /// All it has: its own, its providers', and oversubscribed resources.
    pub total: Resources,
    /// What tasks and executors take.
    pub used: Resources,
    /// What is offered.
    pub offered: Resources,
    /// Dynamic reservations and volumes, for agents that must be told all of them at once.
    pub checkpointed: Resources,
    /// The version of its own resources.
    pub resource_version: Option<mesos::Uuid>,
    /// Its resource providers, by id.
    pub providers: BTreeMap<String, ResourceProvider>,
    /// Operations that are not done with, by uuid.
    pub operations: BTreeMap<Vec<u8>, Arc<mesos::Operation>>,
    /// Its executors, by framework; no framework without any.
    pub executors: BTreeMap<FrameworkKey, BTreeMap<ExecutorId, Arc<Executor>>>,
}

impl Agent {
    /// Whether it is offered to anybody.
    pub fn active(&self) -> bool {
        self.connected && !self.deactivated && self.unhealthy().is_none()
    }

    /// Why it wants no tasks for the time being: the attribute `unhealthy`, with which an agent registers while its disk
    /// refuses checkpoints.
    pub fn unhealthy(&self) -> Option<&str> {
        let named = self.info.attributes.iter().find(|attribute| attribute.name == UNHEALTHY);
        Some(named?.text.as_ref()?.value.as_str())
    }

    /// One of its executors.
    pub fn executor(&self, framework: FrameworkKey, id: &str) -> Option<&Arc<Executor>> {
        self.executors.get(&framework)?.get(id)
    }

    /// The id as a message.
    pub fn proto_id(&self) -> mesos::SlaveId {
        mesos::SlaveId { value: (&self.id).into() }
    }
}

/// What is known of an agent that has come back after it was given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// What it has listed is what there is.
    #[default]
    None,
    /// What it has listed may be old, or lack tasks that were still on their way to it. It is told by ping that it is not connected,
    /// so that it lists all once more.
    Lists,
    /// It has answered such a ping at this time: all that was sent before is with it, and what it lists from then on is true.
    Answered(Time),
}

/// What the core keeps about an agent for itself.
#[derive(Debug, Default)]
pub(crate) struct AgentBook {
    /// Tasks that run there or whose end is not acknowledged.
    pub tasks: BTreeSet<(FrameworkKey, TaskKey)>,
    /// Kills that came while it was disconnected.
    pub killed: BTreeSet<(FrameworkKey, TaskId)>,
    /// The number of its `slave-observer`.
    pub observer: u64,
    /// Pings in a row without a pong.
    pub missed: u32,
    /// Whether what it listed when it was taken back may be out of date.
    pub doubt: Doubt,
    /// Whether the last ping was answered.
    pub ponged: bool,
    /// The next ping.
    pub ping: Option<Token>,
    /// The end of its time to reregister.
    pub reregister: Option<Token>,
    /// Counts its registrations.
    pub epoch: u64,
    /// Whether it waits for a permit to become unreachable.
    pub removal_scheduled: bool,
}
