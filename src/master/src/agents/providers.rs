//! Resource providers of an agent: its reports of them, and the changes of its resources and operations that follow
//! (docs/mesos/libprocess.md).

use std::collections::{BTreeMap, BTreeSet};

use protos::mesos;
use protos::mesos::internal::update_slave_message;
use resources::{ProviderId, Resource, Resources, from_proto};

use crate::io::Outbox;
use crate::master::Master;
use crate::operations::{is_final, provider_of};
use crate::state::{AgentKey, ResourceProvider};
use crate::validate;

/// A checked resource provider of an agent's report.
pub(crate) struct Reported {
    provider: ResourceProvider,
    operations: Vec<mesos::Operation>,
}

/// A checked report of an agent's resource providers, by provider id.
pub(crate) type Report = BTreeMap<String, Reported>;

/// Checks the resource providers that an agent reports.
///
/// # Errors
/// The first invalid provider.
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

/// Returns the total resources of all reported providers.
pub(crate) fn total(report: &Report) -> Resources {
    let mut total = Resources::new();
    report.values().for_each(|reported| total += &reported.provider.total);
    total
}

/// Returns whether a resource comes from a resource provider.
pub(crate) fn is_provided(resource: &Resource) -> bool {
    resource.provider().is_some()
}

impl Master {
    /// Returns whether a report differs from the resource providers that the master knows of the agent.
    pub(crate) fn has_new_providers(&self, key: AgentKey, report: &Report) -> bool {
        let Some(agent) = self.agents.get(key) else { return false };
        let same = |(id, reported): (&String, &Reported)| {
            agent.providers.get(id).is_some_and(|known| {
                (&known.info, &known.version) == (&reported.provider.info, &reported.provider.version)
                    && known.total == reported.provider.total
            })
        };
        report.len() != agent.providers.len() || !report.iter().all(same)
    }

    /// Replaces the resource providers of an agent. Those that it no longer reports are removed, with their operations.
    pub(crate) fn set_providers(&mut self, key: AgentKey, report: Report, out: &mut Outbox) {
        let Some(agent) = self.agents.get(key) else { return };
        let missing: Vec<String> = agent.providers.keys().filter(|id| !report.contains_key(*id)).cloned().collect();
        for id in missing {
            self.operations.remove_on(key, |operation| provider_of(&operation.info) == Some(&id));
            let Some(agent) = self.agents.remove_provider(key, &id) else { return };
            out.info(format!("Agent {} does not report resource provider {id} any more: it is removed", agent.id));
        }
        for (id, Reported { mut provider, operations }) in report {
            let ended = operations.iter().filter(|operation| is_final(operation.latest_status.state()));
            let ended: Vec<Vec<u8>> = ended.map(|operation| operation.uuid.value.clone()).collect();
            self.compare_operations(key, Some(&id), operations, out);
            // The reported total does not contain the results of these operations yet.
            provider.undone = self.operations.open_on(key, &id, &ended);
            self.agents.set_provider(key, id, provider);
        }
    }
}
