//! The resource providers of an agent: what it reports of them, and how that changes its resources and operations
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
        let Some(agent) = self.agents.get(key) else { return false };
        let same = |(id, reported): (&String, &Reported)| {
            agent.providers.get(id).is_some_and(|known| {
                (&known.info, &known.version) == (&reported.provider.info, &reported.provider.version)
                    && known.total == reported.provider.total
            })
        };
        report.len() != agent.providers.len() || !report.iter().all(same)
    }

    /// Replaces the providers of an agent. Those that it does not report any more are removed, with their operations.
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
            // What these make is not in its total yet.
            provider.undone = self.operations.open_on(key, &id, &ended);
            self.agents.set_provider(key, id, provider);
        }
    }
}
