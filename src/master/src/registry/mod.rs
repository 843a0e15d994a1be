//! Persistent state of the master: operations on the registry (docs/mesos/high-availability.md).
//!
//! It writes nothing; the shell stores the registry that [`RegistryOp::apply`] changes.

mod maintenance;
mod quota;

pub(crate) use maintenance::without;

use protos::mesos;
use protos::mesos::internal::{Registry, registry};
use protos::mesos::maintenance::Schedule;
use protos::mesos::quota::QuotaConfig;

/// A change of the registry. All changes of a batch are applied in order and stored at once.
#[derive(Clone, Debug, PartialEq)]
pub enum RegistryOp {
    /// Record that this master leads.
    Recover(Box<mesos::MasterInfo>),
    /// Add a new agent.
    AdmitAgent(Box<mesos::SlaveInfo>),
    /// Replace the info of an admitted agent.
    UpdateAgent(Box<mesos::SlaveInfo>),
    /// Mark an agent as unreachable.
    MarkAgentUnreachable {
        /// Id of the agent.
        id: mesos::SlaveId,
        /// Time at which it became unreachable.
        time: mesos::TimeInfo,
    },
    /// Mark an agent that was unreachable or unknown as admitted.
    MarkAgentReachable(Box<mesos::SlaveInfo>),
    /// Remove an agent.
    RemoveAgent(mesos::SlaveId),
    /// Mark an agent as gone.
    MarkAgentGone {
        /// Id of the agent.
        id: mesos::SlaveId,
        /// Time at which it was marked.
        time: mesos::TimeInfo,
    },
    /// Remove unreachable and gone agents.
    Prune {
        /// Ids of the unreachable agents to remove.
        unreachable: Vec<mesos::SlaveId>,
        /// Ids of the gone agents to remove.
        gone: Vec<mesos::SlaveId>,
    },
    /// Start to drain an agent.
    DrainAgent {
        /// Id of the agent.
        id: mesos::SlaveId,
        /// Configuration of the drain.
        config: mesos::DrainConfig,
    },
    /// Mark a draining agent as drained.
    MarkAgentDrained(mesos::SlaveId),
    /// Deactivate an agent.
    DeactivateAgent(mesos::SlaveId),
    /// Reactivate an agent, and end its drain.
    ReactivateAgent(mesos::SlaveId),
    /// Set weights of roles. A later weight of a role replaces an earlier one.
    UpdateWeights(Vec<mesos::WeightInfo>),
    /// Replace the quotas of roles. A quota without guarantees and limits is removed.
    UpdateQuota(Vec<QuotaConfig>),
    /// Replace the maintenance schedule.
    UpdateMaintenanceSchedule(Schedule),
    /// Take scheduled machines down.
    StartMaintenance(Vec<mesos::MachineId>),
    /// Bring machines up that are down, and remove them from the schedule.
    StopMaintenance(Vec<mesos::MachineId>),
}

/// Capability that the registry requires of later masters once an agent is drained or deactivated.
const DRAINING: &str = "AGENT_DRAINING";

impl RegistryOp {
    /// Applies the change. Applying it twice has the same result as applying it once.
    pub fn apply(&self, registry: &mut Registry) {
        match self {
            RegistryOp::Recover(info) => registry.master = Some(registry::Master { info: (**info).clone() }),
            RegistryOp::AdmitAgent(info) | RegistryOp::UpdateAgent(info) => admit(registry, info, None, false),
            RegistryOp::MarkAgentUnreachable { id, time } => mark_unreachable(registry, id, time),
            RegistryOp::MarkAgentReachable(info) => mark_reachable(registry, info),
            RegistryOp::RemoveAgent(id) => {
                take_admitted(registry, id);
            }
            RegistryOp::MarkAgentGone { id, time } => mark_gone(registry, id, time),
            RegistryOp::Prune { unreachable, gone } => {
                if let Some(list) = &mut registry.unreachable {
                    list.slaves.retain(|agent| !unreachable.contains(&agent.id));
                }
                if let Some(list) = &mut registry.gone {
                    list.slaves.retain(|agent| !gone.contains(&agent.id));
                }
            }
            RegistryOp::DrainAgent { id, config } => {
                let drain = mesos::DrainInfo { state: mesos::DrainState::Draining as i32, config: *config };
                set_drain(registry, id, Some(drain), true);
                require(registry, DRAINING);
            }
            RegistryOp::MarkAgentDrained(id) => {
                for agent in admitted(registry).iter_mut().filter(|agent| agent.info.id.as_ref() == Some(id)) {
                    if let Some(drain) = &mut agent.drain_info {
                        drain.state = mesos::DrainState::Drained as i32;
                    }
                }
            }
            RegistryOp::DeactivateAgent(id) => {
                let drain = drain_of(registry, id);
                set_drain(registry, id, drain, true);
                require(registry, DRAINING);
            }
            RegistryOp::ReactivateAgent(id) => set_drain(registry, id, None, false),
            RegistryOp::UpdateWeights(weights) => update_weights(registry, weights),
            RegistryOp::UpdateQuota(configs) => quota::update(registry, configs),
            RegistryOp::UpdateMaintenanceSchedule(schedule) => maintenance::update_schedule(registry, schedule),
            RegistryOp::StartMaintenance(machines) => maintenance::start(registry, machines),
            RegistryOp::StopMaintenance(machines) => maintenance::stop(registry, machines),
        }
    }
}

fn admitted(registry: &mut Registry) -> &mut Vec<registry::Slave> {
    &mut registry.slaves.get_or_insert_default().slaves
}

fn take_admitted(registry: &mut Registry, id: &mesos::SlaveId) -> Option<registry::Slave> {
    let list = admitted(registry);
    let at = list.iter().position(|agent| agent.info.id.as_ref() == Some(id))?;
    Some(list.remove(at))
}

/// Adds an agent, or replaces its info if it is admitted already.
fn admit(registry: &mut Registry, info: &mesos::SlaveInfo, drain: Option<mesos::DrainInfo>, deactivated: bool) {
    let list = admitted(registry);
    match list.iter_mut().find(|agent| agent.info.id == info.id) {
        Some(agent) => agent.info = info.clone(),
        None => list.push(registry::Slave {
            info: info.clone(),
            drain_info: drain,
            deactivated: deactivated.then_some(true),
        }),
    }
}

fn mark_unreachable(registry: &mut Registry, id: &mesos::SlaveId, time: &mesos::TimeInfo) {
    let Some(agent) = take_admitted(registry, id) else { return };
    registry.unreachable.get_or_insert_default().slaves.push(registry::UnreachableSlave {
        id: id.clone(),
        timestamp: *time,
        drain_info: agent.drain_info,
        deactivated: agent.deactivated,
    });
}

/// Moves an unreachable agent to the admitted ones, with its drain and deactivation.
fn mark_reachable(registry: &mut Registry, info: &mesos::SlaveInfo) {
    let list = &mut registry.unreachable.get_or_insert_default().slaves;
    let at = list.iter().position(|agent| Some(&agent.id) == info.id.as_ref());
    let was = at.map(|at| list.remove(at));
    let drain = was.as_ref().and_then(|agent| agent.drain_info);
    admit(registry, info, drain, was.is_some_and(|agent| agent.deactivated()));
}

fn mark_gone(registry: &mut Registry, id: &mesos::SlaveId, time: &mesos::TimeInfo) {
    take_admitted(registry, id);
    if let Some(list) = &mut registry.unreachable {
        list.slaves.retain(|agent| agent.id != *id);
    }
    let gone = &mut registry.gone.get_or_insert_default().slaves;
    if !gone.iter().any(|agent| agent.id == *id) {
        gone.push(registry::GoneSlave { id: id.clone(), timestamp: *time });
    }
}

fn drain_of(registry: &Registry, id: &mesos::SlaveId) -> Option<mesos::DrainInfo> {
    let slaves = registry.slaves.as_ref().map(|list| list.slaves.as_slice()).unwrap_or_default();
    let here = slaves.iter().find(|agent| agent.info.id.as_ref() == Some(id)).map(|agent| &agent.drain_info);
    let away = registry.unreachable.as_ref().map(|list| list.slaves.as_slice()).unwrap_or_default();
    let there = away.iter().find(|agent| agent.id == *id).map(|agent| &agent.drain_info);
    here.or(there).cloned().flatten()
}

fn set_drain(registry: &mut Registry, id: &mesos::SlaveId, drain: Option<mesos::DrainInfo>, deactivated: bool) {
    let flag = deactivated.then_some(true);
    for agent in admitted(registry).iter_mut().filter(|agent| agent.info.id.as_ref() == Some(id)) {
        (agent.drain_info, agent.deactivated) = (drain, flag);
    }
    let away = &mut registry.unreachable.get_or_insert_default().slaves;
    for agent in away.iter_mut().filter(|agent| agent.id == *id) {
        (agent.drain_info, agent.deactivated) = (drain, flag);
    }
}

/// Requires a capability: masters that do not know it must not lead from now on.
fn require(registry: &mut Registry, capability: &str) {
    let list = &mut registry.minimum_capabilities;
    if !list.iter().any(|known| known.capability == capability) {
        list.push(registry::MinimumCapability { capability: capability.to_owned() });
    }
}

/// Removes a required capability: masters that do not know it may lead again.
fn release(registry: &mut Registry, capability: &str) {
    registry.minimum_capabilities.retain(|known| known.capability != capability);
}

fn update_weights(registry: &mut Registry, weights: &[mesos::WeightInfo]) {
    for weight in weights {
        match registry.weights.iter_mut().find(|known| known.info.role == weight.role) {
            Some(known) => known.info = weight.clone(),
            None => registry.weights.push(registry::Weight { info: weight.clone() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> mesos::SlaveId {
        mesos::SlaveId { value: text.into() }
    }

    fn info(text: &str) -> Box<mesos::SlaveInfo> {
        Box::new(mesos::SlaveInfo { id: Some(id(text)), hostname: "h".to_owned(), ..Default::default() })
    }

    fn time(nanoseconds: i64) -> mesos::TimeInfo {
        mesos::TimeInfo { nanoseconds }
    }

    #[test]
    fn an_agents_way_through_the_registry() {
        let mut registry = Registry::default();
        RegistryOp::AdmitAgent(info("a")).apply(&mut registry);
        RegistryOp::AdmitAgent(info("a")).apply(&mut registry);
        RegistryOp::DeactivateAgent(id("a")).apply(&mut registry);
        RegistryOp::MarkAgentUnreachable { id: id("a"), time: time(1) }.apply(&mut registry);
        assert!(registry.slaves.as_ref().unwrap().slaves.is_empty());
        assert!(registry.unreachable.as_ref().unwrap().slaves[0].deactivated());
        RegistryOp::MarkAgentReachable(info("a")).apply(&mut registry);
        assert!(registry.unreachable.as_ref().unwrap().slaves.is_empty());
        assert!(registry.slaves.as_ref().unwrap().slaves[0].deactivated());
        RegistryOp::MarkAgentGone { id: id("a"), time: time(2) }.apply(&mut registry);
        assert!(registry.slaves.as_ref().unwrap().slaves.is_empty());
        assert_eq!(registry.gone.as_ref().unwrap().slaves[0].timestamp, time(2));
        assert_eq!(registry.minimum_capabilities[0].capability, "AGENT_DRAINING");
    }

    #[test]
    fn prune_takes_exactly_what_it_names() {
        let mut registry = Registry::default();
        for name in ["a", "b", "c", "d"] {
            RegistryOp::AdmitAgent(info(name)).apply(&mut registry);
            RegistryOp::MarkAgentUnreachable { id: id(name), time: time(1) }.apply(&mut registry);
        }
        RegistryOp::Prune { unreachable: vec![id("a"), id("b")], gone: vec![] }.apply(&mut registry);
        let left: Vec<_> = registry.unreachable.unwrap().slaves.into_iter().map(|agent| agent.id.value).collect();
        assert_eq!(left, ["c", "d"]);
    }
}
