//! The resource providers of an agent: what it reports of them, and what that makes of its resources and operations
//! (wire/libprocess.md 8.3 and 12).

use std::collections::{BTreeMap, BTreeSet};

use protos::mesos;
use protos::mesos::OperationState;
use protos::mesos::internal::update_slave_message;
use resources::{ProviderId, Resource, Resources, from_proto};

use crate::io::Outbox;
use crate::master::Master;
use crate::messages::is_final;
use crate::operations::{provider_of, without_allocations};
use crate::state::{AgentKey, ResourceProvider};
use crate::validate;

/// A resource provider as an agent reports it, checked.
pub(crate) struct Reported {
    provider: ResourceProvider,
    operations: Vec<mesos::Operation>,
}

/// All that an agent reports, by the providers' ids.
pub(crate) type Report = BTreeMap<String, Reported>;

/// Checks what an agent reports of its resource providers.
///
/// # Errors
/// The first provider that cannot be one.
pub(crate) fn read(list: Vec<update_slave_message::ResourceProvider>) -> Result<Report, String> {
    let mut report = Report::new();
    for entry in list {
        let info = entry.info.ok_or("a resource provider has no info")?;
        let id = info.id.as_ref().map(|id| id.value.clone()).ok_or("a resource provider has no id")?;
        let total =
            from_proto(&entry.total_resources).map_err(|why| format!("resource provider {id}: {why}"))?.unallocated();
        if total.iter().any(|resource| resource.provider().map(ProviderId::as_str) != Some(&id)) {
            return Err(format!("resource provider {id} reports resources that are not its own"));
        }
        validate::resource_version(Some(&entry.resource_version_uuid))
            .map_err(|why| format!("resource provider {id}: {why}"))?;
        let provider = ResourceProvider { info, total, version: entry.resource_version_uuid, undone: BTreeSet::new() };
        if report.insert(id.clone(), Reported { provider, operations: entry.operations.operations }).is_some() {
            return Err(format!("resource provider {id} is reported twice"));
        }
    }
    Ok(report)
}

/// What all reported providers have together.
pub(crate) fn total(report: &Report) -> Resources {
    let mut total = Resources::new();
    report.values().for_each(|reported| total += &reported.provider.total);
    total
}

/// Whether a resource comes from a provider.
pub(crate) fn is_provided(resource: &Resource) -> bool {
    resource.provider().is_some()
}

impl Master {
    /// Whether the agent reports something else of its providers than before.
    pub(crate) fn has_new_providers(&self, key: AgentKey, report: &Report) -> bool {
        let Some(agent) = self.agent(key) else { return false };
        let same = |(id, reported): (&String, &Reported)| {
            agent.providers.get(id).is_some_and(|known| {
                (&known.info, &known.version) == (&reported.provider.info, &reported.provider.version)
                    && known.total == reported.provider.total
            })
        };
        report.len() != agent.providers.len() || !report.iter().all(same)
    }

    /// Replaces the providers of an agent. Those that it does not report any more are gone, with their operations.
    pub(crate) fn set_providers(&mut self, key: AgentKey, report: Report, out: &mut Outbox) {
        let Some(agent) = self.agent(key) else { return };
        let known: Vec<String> = agent.providers.keys().filter(|id| !report.contains_key(*id)).cloned().collect();
        for id in known {
            self.remove_provider(key, &id, out);
        }
        for (id, mut reported) in report {
            let ended: BTreeSet<Vec<u8>> = reported
                .operations
                .iter()
                .filter(|operation| is_final(operation.latest_status.state()))
                .map(|operation| operation.uuid.value.clone())
                .collect();
            self.compare_operations(key, Some(&id), reported.operations, out);
            let Some(agent) = self.agent_mut(key) else { return };
            let of_it = agent.operations.values().filter(|known| provider_of(&known.info) == Some(&id));
            let open =
                of_it.filter(|known| !is_final(known.latest_status.state()) && !ended.contains(&known.uuid.value));
            reported.provider.undone = open.map(|known| known.uuid.value.clone()).collect();
            agent.providers.insert(id, reported.provider);
        }
    }

    fn remove_provider(&mut self, key: AgentKey, id: &str, out: &mut Outbox) {
        let Some(agent) = self.agent_mut(key) else { return };
        let kept = |operation: &mesos::Operation| provider_of(&operation.info) != Some(id);
        agent.operations.retain(|_, operation| kept(operation));
        agent.providers.remove(id);
        let agent = agent.id.clone();
        out.info(format!("Agent {agent} does not report resource provider {id} any more: it is removed"));
    }

    /// An operation has ended at its provider. What the provider reported while it was open does not show what it has made: that is
    /// made up for, and offers of what it was made from are taken back.
    pub(crate) fn settle_provided(
        &mut self,
        key: AgentKey,
        operation: &mesos::Operation,
        state: OperationState,
        out: &mut Outbox,
    ) {
        let Some(agent) = self.agent_mut(key) else { return };
        let Some(id) = provider_of(&operation.info) else { return };
        let Some(provider) = agent.providers.get_mut(id) else { return };
        if !provider.undone.remove(&operation.uuid.value) || state != OperationState::OperationFinished {
            return;
        }
        let Ok(conversions) = resources::conversions(&without_allocations(&operation.info)) else { return };
        let (Ok(provided), Ok(total)) =
            (provider.total.apply_conversions(&conversions), agent.total.apply_conversions(&conversions))
        else {
            return;
        };
        provider.total = provided;
        self.change_total(key, total, (false, true), out);
    }
}
