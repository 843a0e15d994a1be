//! Adds an agent to the cluster.
//!
//! `messages/register_slave.rs` and `messages/reregister_slave.rs` check whether the agent may be added.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{AgentId, FrameworkId, Pid, Time};
use protos::mesos;
use protos::mesos::internal::MasterSlaveConnection;
use resources::Resources;

use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::state::{Agent, AgentCapabilities, AgentKey, FrameworkKey};

/// Properties that an agent states when it registers or reregisters.
pub(crate) struct AgentRegistration {
    pub info: mesos::SlaveInfo,
    pub pid: Pid,
    pub version: String,
    pub capabilities: AgentCapabilities,
    pub checkpointed: Resources,
    pub total: Resources,
    pub resource_version: Option<mesos::Uuid>,
}

impl Master {
    /// Adds an agent, links to it and pings it. The allocator does not know the agent until [`Master::offer_agent`] is
    /// called.
    pub(crate) fn add_agent(
        &mut self,
        id: AgentId,
        registration: AgentRegistration,
        reregistered: Option<Time>,
        out: &mut Outbox,
    ) -> AgentKey {
        let pid = registration.pid.clone();
        let agent = Agent {
            id,
            unavailability: None,
            info: Arc::new(registration.info),
            pid: pid.clone(),
            version: registration.version,
            capabilities: registration.capabilities,
            registered: self.now,
            reregistered,
            connected: true,
            deactivated: false,
            drain: None,
            drain_start: None,
            inverse_answers: BTreeMap::new(),
            total: registration.total,
            used: Resources::new(),
            offered: Resources::new(),
            checkpointed: registration.checkpointed,
            resource_version: registration.resource_version,
            providers: BTreeMap::new(),
            executors: BTreeMap::new(),
        };
        out.push(Output::Link { pid });
        let key = self.agents.insert(agent, self.now, &mut self.timers);
        self.apply_machine_maintenance(key, out);
        key
    }

    /// Sums the resources that the tasks and executors of an agent use, and adds the agent to the allocator.
    pub(crate) fn offer_agent(&mut self, key: AgentKey) {
        let Some(agent) = self.agents.get(key) else { return };
        let mut used: BTreeMap<FrameworkKey, Resources> = BTreeMap::new();
        for (framework, task) in self.agents.tasks(key) {
            if let Some(task) = self.frameworks.task(framework, task).filter(|task| !task.released) {
                *used.entry(framework).or_default() += &*task.resources;
            }
        }
        for (framework, executors) in &agent.executors {
            for executor in executors.values() {
                *used.entry(*framework).or_default() += &executor.resources;
            }
        }
        let mut all = Resources::new();
        used.values().for_each(|used| all += used);
        self.agents.set_used(key, all);
        let Some(agent) = self.agents.get(key) else { return };
        let named = |(key, used)| Some((self.frameworks.get(key)?.id.clone(), used));
        let used: BTreeMap<FrameworkId, Resources> = used.into_iter().filter_map(named).collect();
        self.allocation.add_agent(agent, &used);
        if self.agents.is_task_list_uncertain(key) {
            self.allocation.set_agent_active(&agent.id, false);
        }
    }

    /// Tells the allocator whether the resources of an agent may be offered. Call it when that has changed.
    pub(crate) fn update_activity(&mut self, key: AgentKey) {
        let Some(agent) = self.agents.get(key) else { return };
        self.allocation.set_agent_active(&agent.id, self.agents.is_offerable(key));
    }

    /// Returns the ping settings that an admitted agent is sent.
    pub(crate) fn slave_connection(&self) -> MasterSlaveConnection {
        let timeout = self.config.total_ping_timeout().as_secs_f64();
        MasterSlaveConnection { total_ping_timeout_seconds: Some(timeout) }
    }
}
