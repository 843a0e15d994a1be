//! What a new master takes over from the registry, and what it makes of agents that do not come back.

use std::sync::Arc;

use base::AgentId;
use protos::mesos::internal::{Registry, registry};

use crate::io::{Outbox, Output};
use crate::master::{Master, Unreachable};
use crate::registry::RegistryOp;
use crate::timers::Timer;

impl Master {
    /// Reads the registry. Agents with unusable ids, which no master has written, are left out.
    pub(crate) fn recover(&mut self, registry: &Registry) {
        for agent in registry.slaves.iter().flat_map(|list| &list.slaves) {
            let id = agent.info.id.as_ref().and_then(|id| AgentId::new(&id.value).ok());
            if let Some(id) = id {
                self.recovered_drain.insert(id.clone(), (agent.drain_info, agent.deactivated()));
                Arc::make_mut(&mut self.recovered).insert(id, Arc::new(agent.info.clone()));
            }
        }
        self.recovered_at_first = self.recovered.len();
        for agent in registry.unreachable.iter().flat_map(|list| &list.slaves) {
            if let Ok(id) = AgentId::new(&agent.id.value) {
                self.unreachable.insert(id, unreachable(agent));
            }
        }
        for agent in registry.gone.iter().flat_map(|list| &list.slaves) {
            if let Ok(id) = AgentId::new(&agent.id.value) {
                self.gone.insert(id, agent.timestamp);
            }
        }
        self.recover_weights(registry);
        self.recover_quotas(registry);
        self.recover_maintenance(registry);
        // Guarantees could be given away to others before the agents that could meet them are back.
        let expected = (self.recovered.len() as f64 * self.config.allocator_agent_recovery_factor) as usize;
        if !self.quotas.is_empty() && expected > 0 {
            self.allocation.hold(expected, self.now + self.config.allocator_recovery_timeout);
        }
        if !self.recovered.is_empty() {
            self.timers.set(self.now + self.config.agent_reregister_timeout, Timer::RecoveredAgents);
        }
        self.timers.set(self.now + self.config.registry_gc_interval, Timer::RegistryGc);
    }

    /// `--weights` count only as long as nobody has set any.
    fn recover_weights(&mut self, registry: &Registry) {
        for weight in &registry.weights {
            self.weights.insert(weight.info.role().to_owned(), weight.info.weight);
        }
        if self.weights.is_empty() && !self.config.weights.is_empty() {
            self.weights.extend(self.config.weights.iter().cloned());
            let list = self
                .weights
                .iter()
                .map(|(role, weight)| protos::mesos::WeightInfo { role: Some(role.clone()), weight: *weight });
            self.startup.push(RegistryOp::UpdateWeights(list.collect()));
        }
        for (role, weight) in &self.weights {
            self.allocation.set_weight(role, *weight);
        }
    }

    /// Recovered agents had time enough. If too many are missing, this master must not decide that they are lost.
    pub(crate) fn recovered_timeout(&mut self, out: &mut Outbox) {
        let (missing, known) = (self.recovered.len(), self.recovered_at_first);
        let limit = self.config.recovery_agent_removal_limit;
        if known > 0 && missing as f64 / known as f64 > limit {
            let reason = format!(
                "{missing} of {known} agents have not come back after the failover, more than \
                 --recovery_agent_removal_limit allows ({}%)",
                limit * 100.0
            );
            out.push(Output::Exit { reason });
            return;
        }
        let ids: Vec<AgentId> = self.recovered.keys().cloned().collect();
        for id in ids {
            self.count(crate::counters::Counter::SlaveUnreachableScheduled);
            self.schedule_recovered_removal(id, out);
        }
    }

    /// Forgets unreachable and gone agents that are too old or too many.
    pub(crate) fn registry_gc(&mut self, out: &mut Outbox) {
        self.timers.set(self.now + self.config.registry_gc_interval, Timer::RegistryGc);
        let age = i64::try_from(self.config.registry_max_agent_age.as_nanos()).unwrap_or(i64::MAX);
        let oldest = self.now.as_nanos().saturating_sub(age);
        let count = self.config.registry_max_agent_count;
        let unreachable = too_old(self.unreachable.iter().map(|(id, e)| (e.since.nanoseconds, id)), oldest, count);
        let gone = too_old(self.gone.iter().map(|(id, since)| (since.nanoseconds, id)), oldest, count);
        if unreachable.is_empty() && gone.is_empty() {
            return;
        }
        self.snapshot = None;
        for id in &unreachable {
            self.unreachable.remove(id);
        }
        for id in &gone {
            self.gone.remove(id);
        }
        let proto = |ids: Vec<AgentId>| ids.iter().map(|id| protos::mesos::SlaveId { value: id.into() }).collect();
        out.persist.push(RegistryOp::Prune { unreachable: proto(unreachable), gone: proto(gone) });
    }
}

fn unreachable(agent: &registry::UnreachableSlave) -> Unreachable {
    Unreachable { since: agent.timestamp, drain: agent.drain_info, deactivated: agent.deactivated() }
}

/// Those from before `oldest`, and the oldest of the others beyond `count`.
fn too_old<'a>(entries: impl Iterator<Item = (i64, &'a AgentId)>, oldest: i64, count: usize) -> Vec<AgentId> {
    let mut entries: Vec<_> = entries.collect();
    entries.sort();
    let excess = entries.len().saturating_sub(count);
    let doomed = entries.iter().enumerate().filter(|(at, (since, _))| *at < excess || *since < oldest);
    doomed.map(|(_, (_, id))| (*id).clone()).collect()
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
