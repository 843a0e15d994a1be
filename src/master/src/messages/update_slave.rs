//! UpdateSlaveMessage: an agent's resource version, oversubscribed resources, providers (docs/mesos/libprocess.md).

use base::Pid;
use protos::mesos;
use protos::mesos::internal::{ReconcileOperationsMessage, UpdateSlaveMessage, reconcile_operations_message};
use resources::{Resources, from_proto};

use crate::agents::providers::{self, is_provided};
use crate::counters::Counter;
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::operations::provider_of;
use crate::state::AgentKey;
use crate::validate;

impl Master {
    pub(crate) fn update_slave(&mut self, from: &Pid, message: UpdateSlaveMessage, out: &mut Outbox) {
        self.count(Counter::MessagesUpdateSlave);
        let id = message.slave_id.value.clone();
        let taken = self.take_update(from, message, out);
        if let Err(why) = taken {
            out.warn(format!("Ignoring an update of agent {id}: {why}"));
        }
    }

    fn take_update(&mut self, from: &Pid, message: UpdateSlaveMessage, out: &mut Outbox) -> Result<(), String> {
        let key = self.reporting_agent(from, &message.slave_id.value)?;
        validate::resource_version(message.resource_version_uuid.as_ref())?;
        // Agents before 1.5 do not set the flag: for them the message always updates oversubscribed resources.
        let oversubscribed = match message.update_oversubscribed_resources.unwrap_or(true) {
            true => Some(from_proto(&message.oversubscribed_resources).map_err(|why| why.to_string())?.revocable()),
            false => None,
        };
        // If the agent sends no providers, those that it has are unchanged.
        let report = message.resource_providers.map(|list| providers::read(list.providers)).transpose()?;
        message.resource_version_uuid.into_iter().for_each(|version| self.agents.set_resource_version(key, version));
        let Some(agent) = self.agent(key) else { return Ok(()) };
        let own = agent.total.filter(|resource| !is_provided(resource));
        let mut total: Resources = match &oversubscribed {
            Some(oversubscribed) => own.non_revocable() + oversubscribed,
            None => own,
        };
        total += &match &report {
            Some(report) => providers::total(report),
            None => agent.total.filter(is_provided),
        };
        let revocable = total.revocable() != agent.total.revocable();
        let provided = total.filter(is_provided) != agent.total.filter(is_provided);
        if let Some(listed) = message.operations {
            self.compare_operations(key, None, listed.operations, out);
        }
        let provided = provided || report.as_ref().is_some_and(|report| self.has_new_providers(key, report));
        if let Some(report) = report {
            self.set_providers(key, report, out);
        }
        self.change_total(key, total, (revocable, provided), out);
        self.agents.check_drained(key, &self.operations);
        Ok(())
    }

    /// Sets the total resources of an agent. Rescinds the offers of what has changed: of `revocable` resources, of
    /// `provided` ones, or both.
    pub(crate) fn change_total(
        &mut self,
        key: AgentKey,
        total: Resources,
        (revocable, provided): (bool, bool),
        out: &mut Outbox,
    ) {
        let offers = if revocable || provided { self.offers.on_agent(key) } else { Vec::new() };
        for offer in offers {
            let changed = self.offers.get(offer).is_some_and(|offer| {
                let mut offered = offer.resources.iter();
                offered.any(|r| (revocable && r.is_revocable()) || (provided && is_provided(r)))
            });
            if changed {
                self.rescind_offer(offer, out);
            }
        }
        if self.agent(key).is_none_or(|agent| agent.total == total) {
            return;
        }
        self.agents.set_total(key, total);
        if let Some(agent) = self.agents.get(key) {
            self.allocation.update_agent(agent);
        }
    }

    /// Compares the operations on the agent's own resources, or on those of a provider, with a list of the agent. Asks
    /// the agent for the states of those that it does not list, and adds those that this master does not know.
    pub(crate) fn compare_operations(
        &mut self,
        key: AgentKey,
        provider: Option<&str>,
        listed: Vec<mesos::Operation>,
        out: &mut Outbox,
    ) {
        let Some(agent) = self.agent(key) else { return };
        let is_meant = |operation: &mesos::Operation| provider_of(&operation.info) == provider;
        let known = self.operations.on_agent(key).filter(|operation| is_meant(operation));
        let missing = known.filter(|known| !listed.iter().any(|other| other.uuid == known.uuid));
        let operations: Vec<_> = missing
            .map(|operation| reconcile_operations_message::Operation {
                operation_uuid: Some(operation.uuid.clone()),
                operation_id: None,
                resource_provider_id: provider.map(|id| mesos::ResourceProviderId { value: id.to_owned() }),
            })
            .collect();
        if !operations.is_empty() {
            out.push(Output::send(&agent.pid, ReconcileOperationsMessage { operations, framework_id: None }));
        }
        listed.into_iter().filter(is_meant).for_each(|operation| self.operations.insert(key, operation));
    }
}
