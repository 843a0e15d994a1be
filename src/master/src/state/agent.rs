//! An agent as the master knows it.
//!
//! When an agent is added, changed or removed is decided in `agents/`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{AgentId, ExecutorId, Pid, Time};
use protos::mesos;
use resources::Resources;

use super::{AgentCapabilities, FrameworkKey};

/// An executor that runs on an agent. Those that agents make up for command tasks are not known to a master.
#[derive(Clone, Debug)]
pub struct Executor {
    /// Its framework.
    pub framework: FrameworkKey,
    /// Its `ExecutorInfo`.
    pub info: Arc<mesos::ExecutorInfo>,
    /// What it takes, beside its tasks.
    pub resources: Resources,
}

/// A resource provider on an agent.
#[derive(Clone, Debug)]
pub struct ResourceProvider {
    /// Its info, as the agent has sent it.
    pub info: mesos::ResourceProviderInfo,
    /// What it provides; part of the agent's total.
    pub total: Resources,
    /// The version of its resources, which operations must name.
    pub version: mesos::Uuid,
    /// Operations, by uuid, that were open when it last reported: what they make is not in `total` yet.
    pub(crate) undone: BTreeSet<Vec<u8>>,
}

/// The attribute of an unhealthy agent; its text is the reason.
pub const UNHEALTHY: &str = "unhealthy";

/// A registered agent.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Its id.
    pub id: AgentId,
    /// Its `SlaveInfo`; `id` is set.
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
    /// Dynamic reservations and volumes, for agents that must receive all of them at once.
    pub checkpointed: Resources,
    /// The version of its own resources.
    pub resource_version: Option<mesos::Uuid>,
    /// Its resource providers, by id.
    pub providers: BTreeMap<String, ResourceProvider>,
    /// Its executors, by framework; no framework without any.
    pub executors: BTreeMap<FrameworkKey, BTreeMap<ExecutorId, Arc<Executor>>>,
}

impl Agent {
    /// Whether it is offered.
    pub fn active(&self) -> bool {
        self.connected && !self.deactivated && self.unhealthy().is_none()
    }

    /// Why it is unhealthy: the attribute `unhealthy`, with which an agent registers while its disk refuses
    /// checkpoints.
    pub fn unhealthy(&self) -> Option<&str> {
        let named = self.info.attributes.iter().find(|attribute| attribute.name == UNHEALTHY);
        Some(named?.text.as_ref()?.value.as_str())
    }

    /// Whether it is being drained, and is not empty yet.
    pub fn is_draining(&self) -> bool {
        self.drain.is_some_and(|drain| drain.state() == mesos::DrainState::Draining)
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
