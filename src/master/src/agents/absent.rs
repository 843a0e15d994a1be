//! Agents of the registry that are not registered: recovered ones that have not reregistered with this master yet,
//! unreachable ones and gone ones.
//!
//! It writes nothing to the registry.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::AgentId;
use protos::mesos::internal::Registry;
use protos::mesos::{DrainInfo, SlaveInfo, TimeInfo};

use crate::tracked::Tracked;

/// Administrative state of an agent: its drain, if any, and whether it is deactivated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct AdminState {
    pub drain: Option<DrainInfo>,
    pub deactivated: bool,
}

/// Agents of the registry that are not registered: recovered, unreachable and gone ones.
#[derive(Debug, Default)]
pub(crate) struct AbsentAgents {
    /// Agents that have not reregistered since this master was elected.
    recovered: Tracked<Arc<BTreeMap<AgentId, Arc<SlaveInfo>>>>,
    recovered_at_first: usize,
    admin_states: BTreeMap<AgentId, AdminState>,
    /// Unreachable agents, each with the time at which it became unreachable.
    unreachable: Tracked<BTreeMap<AgentId, (TimeInfo, AdminState)>>,
    /// Agents that were marked gone, each with the time of that.
    gone: Tracked<BTreeMap<AgentId, TimeInfo>>,
}

impl AbsentAgents {
    /// Reads the agents of a registry. Agents with invalid ids, which no master has written, are left out.
    pub(crate) fn new(registry: &Registry) -> AbsentAgents {
        let mut absent = AbsentAgents::default();
        for agent in registry.slaves.iter().flat_map(|list| &list.slaves) {
            if let Some(Ok(id)) = agent.info.id.as_ref().map(|id| AgentId::new(&id.value)) {
                let admin_state = AdminState { drain: agent.drain_info, deactivated: agent.deactivated() };
                absent.admin_states.insert(id.clone(), admin_state);
                Arc::make_mut(&mut absent.recovered).insert(id, Arc::new(agent.info.clone()));
            }
        }
        absent.recovered_at_first = absent.recovered.len();
        for agent in registry.unreachable.iter().flat_map(|list| &list.slaves) {
            if let Ok(id) = AgentId::new(&agent.id.value) {
                let admin_state = AdminState { drain: agent.drain_info, deactivated: agent.deactivated() };
                absent.unreachable.insert(id, (agent.timestamp, admin_state));
            }
        }
        for agent in registry.gone.iter().flat_map(|list| &list.slaves) {
            if let Ok(id) = AgentId::new(&agent.id.value) {
                absent.gone.insert(id, agent.timestamp);
            }
        }
        absent
    }

    /// Returns whether anything may have changed since the last call.
    pub(crate) fn take_changed(&mut self) -> bool {
        self.recovered.take_changed() | self.unreachable.take_changed() | self.gone.take_changed()
    }

    /// Returns the agents that have not reregistered since this master was elected.
    pub(crate) fn recovered(&self) -> &Arc<BTreeMap<AgentId, Arc<SlaveInfo>>> {
        &self.recovered
    }

    /// Returns the number of admitted agents that the registry had when this master was elected.
    pub(crate) fn recovered_at_first(&self) -> usize {
        self.recovered_at_first
    }

    pub(crate) fn is_recovered(&self, id: &str) -> bool {
        self.recovered.contains_key(id)
    }

    /// Returns the number of unreachable agents.
    pub(crate) fn unreachable(&self) -> usize {
        self.unreachable.len()
    }

    /// Returns the time at which an agent became unreachable, or `None` if it is not unreachable.
    pub(crate) fn unreachable_since(&self, id: &str) -> Option<TimeInfo> {
        self.unreachable.get(id).map(|(since, _)| *since)
    }

    pub(crate) fn is_gone(&self, id: &str) -> bool {
        self.gone.contains_key(id)
    }

    /// Returns the administrative state of a recovered or unreachable agent.
    pub(crate) fn admin_state(&self, id: &str) -> Option<AdminState> {
        self.unreachable.get(id).map(|(_, admin_state)| *admin_state).or_else(|| self.admin_states.get(id).copied())
    }

    /// Changes the administrative state of an agent if it is recovered or unreachable.
    pub(crate) fn change_admin_state(&mut self, id: &str, change: impl Fn(&mut AdminState)) {
        self.unreachable.get_mut(id).into_iter().for_each(|(_, admin_state)| change(admin_state));
        self.admin_states.get_mut(id).into_iter().for_each(change);
    }

    /// Adds an agent that was registered to the unreachable ones.
    pub(crate) fn add_unreachable(&mut self, id: AgentId, since: TimeInfo, admin_state: AdminState) {
        self.unreachable.insert(id, (since, admin_state));
    }

    /// Marks a recovered agent as unreachable. Returns its info, or `None` if the agent is not a recovered one.
    pub(crate) fn mark_recovered_unreachable(&mut self, id: &AgentId, since: TimeInfo) -> Option<Arc<SlaveInfo>> {
        let info = Arc::make_mut(&mut self.recovered).remove(id)?;
        let admin_state = self.admin_states.remove(id).unwrap_or_default();
        self.add_unreachable(id.clone(), since, admin_state);
        Some(info)
    }

    /// Removes an agent that registers from the recovered and unreachable ones. Returns its administrative state, and
    /// whether it was unreachable.
    pub(crate) fn readmit(&mut self, id: &AgentId) -> (AdminState, bool) {
        Arc::make_mut(&mut self.recovered).remove(id);
        let recovered = self.admin_states.remove(id);
        let unreachable = self.unreachable.remove(id).map(|(_, admin_state)| admin_state);
        (unreachable.or(recovered).unwrap_or_default(), unreachable.is_some())
    }

    /// Adds an agent to the gone ones, and removes it from the recovered and unreachable ones.
    pub(crate) fn add_gone(&mut self, id: &AgentId, since: TimeInfo) {
        self.readmit(id);
        self.gone.insert(id.clone(), since);
    }

    /// Removes the unreachable and gone agents from before `oldest` (nanoseconds), and of each kind the oldest beyond
    /// `count`. Returns their ids, first those of the unreachable ones.
    pub(crate) fn prune(&mut self, oldest: i64, count: usize) -> (Vec<AgentId>, Vec<AgentId>) {
        let unreachable = self.unreachable.iter().map(|(id, (since, _))| (since.nanoseconds, id));
        let unreachable = too_old(unreachable, oldest, count);
        let gone = too_old(self.gone.iter().map(|(id, since)| (since.nanoseconds, id)), oldest, count);
        for id in &unreachable {
            self.unreachable.remove(id);
        }
        for id in &gone {
            self.gone.remove(id);
        }
        (unreachable, gone)
    }
}

/// Returns the entries from before `oldest`, and the oldest ones of those beyond `count`.
fn too_old<'a>(entries: impl Iterator<Item = (i64, &'a AgentId)>, oldest: i64, count: usize) -> Vec<AgentId> {
    let mut entries: Vec<_> = entries.collect();
    entries.sort();
    let excess = entries.len().saturating_sub(count);
    let old = entries.iter().enumerate().filter(|(at, (since, _))| *at < excess || *since < oldest);
    old.map(|(_, (_, id))| (*id).clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prunes_by_age_and_by_count() {
        let ids: Vec<AgentId> = ["a", "b", "c"].iter().map(|id| AgentId::new(id).unwrap()).collect();
        let entries = || ids.iter().enumerate().map(|(at, id)| (at as i64 * 10, id));
        assert_eq!(too_old(entries(), 15, 9), ids[..2]);
        assert_eq!(too_old(entries(), 0, 1), ids[..2]);
        assert!(too_old(entries(), 0, 3).is_empty());
    }
}
