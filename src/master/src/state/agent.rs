//! State of an agent in the master.
//!
//! `agents/` adds, changes and removes agents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{AgentId, ExecutorId, Pid, Time};
use protos::mesos;
use resources::Resources;

use super::{AgentCapabilities, FrameworkKey};

/// An executor that runs on an agent. A master does not know the executors that agents generate for command tasks.
#[derive(Clone, Debug)]
pub struct Executor {
    /// Framework of the executor.
    pub framework: FrameworkKey,
    /// `ExecutorInfo` of the executor.
    pub info: Arc<mesos::ExecutorInfo>,
    /// Resources of the executor, without those of its tasks.
    pub resources: Resources,
}

/// A resource provider on an agent.
#[derive(Clone, Debug)]
pub struct ResourceProvider {
    /// Info of the provider, as the agent has sent it.
    pub info: mesos::ResourceProviderInfo,
    /// Resources of the provider, which are part of the agent's total.
    pub total: Resources,
    /// Version of the provider's resources, which operations must name.
    pub version: mesos::Uuid,
    /// UUIDs of the operations that were open at the provider's last report: their results are not in `total` yet.
    pub(crate) undone: BTreeSet<Vec<u8>>,
}

/// Name of the attribute of an unhealthy agent; its text is the reason.
pub const UNHEALTHY: &str = "unhealthy";

/// A registered agent.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Id of the agent.
    pub id: AgentId,
    /// `SlaveInfo` of the agent; `id` is set.
    pub info: Arc<mesos::SlaveInfo>,
    /// Process of the agent.
    pub pid: Pid,
    /// Semantic version of the agent.
    pub version: String,
    /// Capabilities of the agent.
    pub capabilities: AgentCapabilities,
    /// Time at which the agent registered with this master.
    pub registered: Time,
    /// Time of the last reregistration; `None` before the first.
    pub reregistered: Option<Time>,
    /// Whether the agent is connected.
    pub connected: bool,
    /// Whether an operator has deactivated the agent.
    pub deactivated: bool,
    /// State and configuration of the agent's drain; `None` if it does not drain.
    pub drain: Option<mesos::DrainInfo>,
    /// Time at which the drain started, as far as this master knows.
    pub drain_start: Option<Time>,
    /// Maintenance window of the agent's machine.
    pub unavailability: Option<mesos::Unavailability>,
    /// Answers of frameworks to inverse offers of this agent.
    pub inverse_answers: BTreeMap<FrameworkKey, mesos::allocator::InverseOfferStatus>,
    /// All resources of the agent: its own, those of its providers, and oversubscribed ones.
    pub total: Resources,
    /// Resources that tasks and executors use.
    pub used: Resources,
    /// Resources that are offered.
    pub offered: Resources,
    /// Dynamic reservations and volumes, for agents that must receive all of them at once.
    pub checkpointed: Resources,
    /// Version of the agent's own resources.
    pub resource_version: Option<mesos::Uuid>,
    /// Resource providers of the agent, by id.
    pub providers: BTreeMap<String, ResourceProvider>,
    /// Executors of the agent, by framework. Frameworks without executors have no entry.
    pub executors: BTreeMap<FrameworkKey, BTreeMap<ExecutorId, Arc<Executor>>>,
}

impl Agent {
    /// Returns whether the agent's resources may be offered.
    pub fn active(&self) -> bool {
        self.connected && !self.deactivated && self.unhealthy().is_none()
    }

    /// Returns why the agent is unhealthy: the attribute `unhealthy`, with which an agent registers while its disk
    /// refuses checkpoints.
    pub fn unhealthy(&self) -> Option<&str> {
        let named = self.info.attributes.iter().find(|attribute| attribute.name == UNHEALTHY);
        Some(named?.text.as_ref()?.value.as_str())
    }

    /// Returns whether the agent drains and is not empty yet.
    pub fn is_draining(&self) -> bool {
        self.drain.is_some_and(|drain| drain.state() == mesos::DrainState::Draining)
    }

    /// Returns an executor of the agent.
    pub fn executor(&self, framework: FrameworkKey, id: &str) -> Option<&Arc<Executor>> {
        self.executors.get(&framework)?.get(id)
    }

    /// Returns the id as a message.
    pub fn proto_id(&self) -> mesos::SlaveId {
        mesos::SlaveId { value: (&self.id).into() }
    }
}
