//! Recovery of a newly elected master from the registry, and removal of agents that do not reregister.

use base::AgentId;
use protos::mesos::internal::Registry;

use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::registry::RegistryOp;
use crate::state::Maintenance;
use crate::timers::Timer;

impl Master {
    /// Takes over the registry's weights, quotas and maintenance, and starts the reregistration timeout of its agents.
    pub(crate) fn recover(&mut self, registry: &Registry) {
        self.recover_weights(registry);
        self.recover_quotas(registry);
        *self.maintenance = Maintenance::recovered(registry);
        // Without this, guaranteed resources could be offered to other roles before the agents that have them
        // reregister.
        let expected = (self.absent.recovered().len() as f64 * self.config.allocator_agent_recovery_factor) as usize;
        if !self.quotas.is_empty() && expected > 0 {
            self.allocation.pause_offers(expected, self.now + self.config.allocator_recovery_timeout);
        }
        if !self.absent.recovered().is_empty() {
            self.timers.set(self.now + self.config.agent_reregister_timeout, Timer::RecoveredAgents);
        }
        self.timers.set(self.now + self.config.registry_gc_interval, Timer::RegistryGc);
    }

    /// Takes over the weights of the registry. The flag `--weights` counts only until weights are set by a call.
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
        for (role, weight) in &*self.weights {
            self.allocation.set_weight(role, *weight);
        }
    }

    /// Handles the end of the reregistration timeout of recovered agents: schedules the removal of those that are
    /// missing. If too many are, this master exits instead: it must not decide that they are lost.
    pub(crate) fn recovered_timeout(&mut self, out: &mut Outbox) {
        let (missing, known) = (self.absent.recovered().len(), self.absent.recovered_at_first());
        let limit = self.config.recovery_agent_removal_limit;
        if known > 0 && missing as f64 / known as f64 > limit {
            let reason = format!(
                "{missing} of {known} agents have not reregistered after the failover, more than \
                 --recovery_agent_removal_limit allows ({}%)",
                limit * 100.0
            );
            out.push(Output::Exit { reason });
            return;
        }
        let ids: Vec<AgentId> = self.absent.recovered().keys().cloned().collect();
        for id in ids {
            self.count(crate::counters::Counter::SlaveUnreachableScheduled);
            self.schedule_recovered_removal(id, out);
        }
    }

    /// Removes unreachable and gone agents that are too old or too many from the registry.
    pub(crate) fn registry_gc(&mut self, out: &mut Outbox) {
        self.timers.set(self.now + self.config.registry_gc_interval, Timer::RegistryGc);
        let age = i64::try_from(self.config.registry_max_agent_age.as_nanos()).unwrap_or(i64::MAX);
        let oldest = self.now.as_nanos().saturating_sub(age);
        let (unreachable, gone) = self.absent.prune(oldest, self.config.registry_max_agent_count);
        if unreachable.is_empty() && gone.is_empty() {
            return;
        }
        let proto = |ids: Vec<AgentId>| ids.iter().map(|id| protos::mesos::SlaveId { value: id.into() }).collect();
        out.persist.push(RegistryOp::Prune { unreachable: proto(unreachable), gone: proto(gone) });
    }
}
