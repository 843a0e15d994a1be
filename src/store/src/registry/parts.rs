//! Taking a registry apart into entries, and putting it together again.
//!
//! A key says what its entry is; entries of lists whose order has no meaning are keyed by what makes them unique.

use std::path::Path;

use prost::{DecodeError, Message};
use protos::mesos::internal::{Registry, registry};
use protos::mesos::{self, MachineId};

use crate::error::StoreError;

/// One entry that is set, or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// Which entry.
    pub(crate) key: String,
    /// Its new content; none if it goes.
    pub(crate) value: Option<Vec<u8>>,
}

impl Update {
    /// Which entry it is about.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The entry's new content; none if it goes.
    pub fn value(&self) -> Option<&[u8]> {
        self.value.as_deref()
    }

    fn set(key: String, message: &impl Message) -> Update {
        Update { key, value: Some(message.encode_to_vec()) }
    }

    fn gone(key: String) -> Update {
        Update { key, value: None }
    }

    /// The leading master.
    pub fn master(master: &registry::Master) -> Update {
        Update::set("master".to_owned(), master)
    }

    /// An admitted agent, new or changed. Its info has an id.
    pub fn agent(agent: &registry::Slave) -> Update {
        let id = agent.info.id.as_ref().map(|id| id.value.as_str()).unwrap_or_default();
        Update::set(format!("slave/{id}"), agent)
    }

    /// An agent that is not admitted any more.
    pub fn no_agent(id: &mesos::SlaveId) -> Update {
        Update::gone(format!("slave/{}", id.value))
    }

    /// An unreachable agent, new or changed.
    pub fn unreachable(agent: &registry::UnreachableSlave) -> Update {
        Update::set(format!("unreachable/{}", agent.id.value), agent)
    }

    /// An agent that is not unreachable any more.
    pub fn not_unreachable(id: &mesos::SlaveId) -> Update {
        Update::gone(format!("unreachable/{}", id.value))
    }

    /// An agent that will not come back.
    pub fn agent_gone(agent: &registry::GoneSlave) -> Update {
        Update::set(format!("gone/{}", agent.id.value), agent)
    }

    /// An agent that is forgotten to have gone.
    pub fn agent_not_gone(id: &mesos::SlaveId) -> Update {
        Update::gone(format!("gone/{}", id.value))
    }

    /// A role's weight, new or changed.
    pub fn weight(weight: &registry::Weight) -> Update {
        Update::set(format!("weight/{}", weight.info.role()), weight)
    }

    /// A capability that a leading master must have.
    pub fn minimum_capability(capability: &registry::MinimumCapability) -> Update {
        Update::set(format!("capability/{}", capability.capability), capability)
    }
}

/// All entries of a registry.
pub(super) fn split(registry: &Registry) -> Vec<Update> {
    let mut updates: Vec<Update> = registry.master.iter().map(Update::master).collect();
    updates.extend(registry.slaves.iter().flat_map(|list| &list.slaves).map(Update::agent));
    updates.extend(registry.unreachable.iter().flat_map(|list| &list.slaves).map(Update::unreachable));
    updates.extend(registry.gone.iter().flat_map(|list| &list.slaves).map(Update::agent_gone));
    updates.extend(registry.weights.iter().map(Update::weight));
    updates.extend(registry.minimum_capabilities.iter().map(Update::minimum_capability));
    for machine in registry.machines.iter().flat_map(|list| &list.machines) {
        updates.push(Update::set(machine_key(&machine.info.id), machine));
    }
    // There are few schedules, and their order matters.
    for (index, schedule) in registry.schedules.iter().enumerate() {
        updates.push(Update::set(format!("schedule/{index:08}"), schedule));
    }
    #[allow(deprecated)]
    for quota in &registry.quotas {
        updates.push(Update::set(format!("quota/{}", quota.info.role()), quota));
    }
    for quota in &registry.quota_configs {
        updates.push(Update::set(format!("quota_config/{}", quota.role), quota));
    }
    if let Some(providers) = &registry.resource_provider_registry {
        updates.push(Update::set("resource_providers".to_owned(), providers));
    }
    updates
}

fn machine_key(id: &MachineId) -> String {
    format!("machine/{}/{}", id.hostname(), id.ip())
}

/// The registry whose entries these are. `place` says where they are kept.
///
/// # Errors
/// One is no entry of a registry.
pub fn registry_of<'a>(
    place: &Path,
    entries: impl IntoIterator<Item = (&'a str, &'a [u8])>,
) -> Result<Registry, StoreError> {
    let mut registry = Registry::default();
    for (key, value) in entries {
        put(&mut registry, key, value).map_err(|source| StoreError::Damaged {
            path: place.to_owned(),
            key: key.to_owned(),
            source,
        })?;
    }
    Ok(registry)
}

/// Puts one entry into a registry. Entries of a kind that is not known come from a later version and are left out.
pub(super) fn put(registry: &mut Registry, key: &str, value: &[u8]) -> Result<(), DecodeError> {
    match key.split('/').next().unwrap_or_default() {
        "master" => registry.master = Some(Message::decode(value)?),
        "slave" => registry.slaves.get_or_insert_default().slaves.push(Message::decode(value)?),
        "unreachable" => registry.unreachable.get_or_insert_default().slaves.push(Message::decode(value)?),
        "gone" => registry.gone.get_or_insert_default().slaves.push(Message::decode(value)?),
        "machine" => registry.machines.get_or_insert_default().machines.push(Message::decode(value)?),
        "weight" => registry.weights.push(Message::decode(value)?),
        "capability" => registry.minimum_capabilities.push(Message::decode(value)?),
        "schedule" => registry.schedules.push(Message::decode(value)?),
        #[allow(deprecated)]
        "quota" => registry.quotas.push(Message::decode(value)?),
        "quota_config" => registry.quota_configs.push(Message::decode(value)?),
        "resource_providers" => registry.resource_provider_registry = Some(Message::decode(value)?),
        _ => {}
    }
    Ok(())
}
