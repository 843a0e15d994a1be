//! Splits a registry into entries, and joins them again.
//!
//! A key determines the kind of its entry; entries of unordered lists have their identifying fields as keys.

use std::path::Path;

use prost::{DecodeError, Message};
use protos::mesos::internal::{Registry, registry};
use protos::mesos::quota::QuotaConfig;
use protos::mesos::{self, MachineId};

use crate::error::StoreError;

/// A change of one entry: it is set or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// Key of the entry.
    pub(crate) key: String,
    /// New content of the entry; `None` removes it.
    pub(crate) value: Option<Vec<u8>>,
}

impl Update {
    /// Returns the key of the entry.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the new content of the entry; `None` if it is removed.
    pub fn value(&self) -> Option<&[u8]> {
        self.value.as_deref()
    }

    fn set(key: String, message: &impl Message) -> Update {
        Update { key, value: Some(message.encode_to_vec()) }
    }

    fn gone(key: String) -> Update {
        Update { key, value: None }
    }

    /// Returns the update that sets the leading master.
    pub fn master(master: &registry::Master) -> Update {
        Update::set("master".to_owned(), master)
    }

    /// Returns the update that sets an admitted agent, new or changed. Its info must have an id.
    pub fn agent(agent: &registry::Slave) -> Update {
        Update::set(agent_key(agent), agent)
    }

    /// Returns the update that removes an agent from the admitted ones.
    pub fn no_agent(id: &mesos::SlaveId) -> Update {
        Update::gone(format!("slave/{}", id.value))
    }

    /// Returns the update that sets an unreachable agent, new or changed.
    pub fn unreachable(agent: &registry::UnreachableSlave) -> Update {
        Update::set(unreachable_key(&agent.id), agent)
    }

    /// Returns the update that removes an agent from the unreachable ones.
    pub fn not_unreachable(id: &mesos::SlaveId) -> Update {
        Update::gone(unreachable_key(id))
    }

    /// Returns the update that adds an agent that is gone for good.
    pub fn agent_gone(agent: &registry::GoneSlave) -> Update {
        Update::set(gone_key(&agent.id), agent)
    }

    /// Returns the update that removes an agent from those that are gone.
    pub fn agent_not_gone(id: &mesos::SlaveId) -> Update {
        Update::gone(gone_key(id))
    }

    /// Returns the update that sets a role's weight, new or changed.
    pub fn weight(weight: &registry::Weight) -> Update {
        Update::set(weight_key(weight), weight)
    }

    /// Returns the update that sets a capability that a leading master must have.
    pub fn minimum_capability(capability: &registry::MinimumCapability) -> Update {
        Update::set(capability_key(capability), capability)
    }
}

/// Splits a registry into entries.
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
        updates.push(Update::set(quota_key(quota), quota));
    }
    for quota in &registry.quota_configs {
        updates.push(Update::set(quota_config_key(quota), quota));
    }
    if let Some(providers) = &registry.resource_provider_registry {
        updates.push(Update::set("resource_providers".to_owned(), providers));
    }
    updates
}

fn agent_key(agent: &registry::Slave) -> String {
    format!("slave/{}", agent.info.id.as_ref().map(|id| id.value.as_str()).unwrap_or_default())
}

fn unreachable_key(id: &mesos::SlaveId) -> String {
    format!("unreachable/{}", id.value)
}

fn gone_key(id: &mesos::SlaveId) -> String {
    format!("gone/{}", id.value)
}

fn machine_key(id: &MachineId) -> String {
    format!("machine/{}/{}", id.hostname(), id.ip())
}

fn weight_key(weight: &registry::Weight) -> String {
    format!("weight/{}", weight.info.role())
}

fn capability_key(capability: &registry::MinimumCapability) -> String {
    format!("capability/{}", capability.capability)
}

fn quota_key(quota: &registry::Quota) -> String {
    format!("quota/{}", quota.info.role())
}

fn quota_config_key(quota: &QuotaConfig) -> String {
    format!("quota_config/{}", quota.role)
}

/// Joins these entries to a registry. `place` names where they are stored, for errors.
///
/// # Errors
/// An entry is not one of a registry.
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

/// An error of an entry that is not one of a registry.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EntryError {
    /// The value is not a message of the entry's kind.
    #[error("its value is invalid")]
    Invalid(#[from] DecodeError),
    /// The value is that of another key. A value that lost its fields can be decoded, too, but not to a message with
    /// this key.
    #[error("its value is that of '{0}'")]
    Misplaced(String),
}

/// Adds one entry to a registry. Entries of an unknown kind come from a later version and are omitted.
pub(super) fn put(registry: &mut Registry, key: &str, value: &[u8]) -> Result<(), EntryError> {
    let of_key = |own: String| if own == key { Ok(()) } else { Err(EntryError::Misplaced(own)) };
    match key.split('/').next().unwrap_or_default() {
        "master" if value.is_empty() => return Err(EntryError::Misplaced(String::new())),
        "master" => registry.master = Some(Message::decode(value)?),
        "slave" => {
            let agent = registry::Slave::decode(value)?;
            of_key(agent_key(&agent))?;
            registry.slaves.get_or_insert_default().slaves.push(agent);
        }
        "unreachable" => {
            let agent = registry::UnreachableSlave::decode(value)?;
            of_key(unreachable_key(&agent.id))?;
            registry.unreachable.get_or_insert_default().slaves.push(agent);
        }
        "gone" => {
            let agent = registry::GoneSlave::decode(value)?;
            of_key(gone_key(&agent.id))?;
            registry.gone.get_or_insert_default().slaves.push(agent);
        }
        "machine" => {
            let machine = registry::Machine::decode(value)?;
            of_key(machine_key(&machine.info.id))?;
            registry.machines.get_or_insert_default().machines.push(machine);
        }
        "weight" => {
            let weight = registry::Weight::decode(value)?;
            of_key(weight_key(&weight))?;
            registry.weights.push(weight);
        }
        "capability" => {
            let capability = registry::MinimumCapability::decode(value)?;
            of_key(capability_key(&capability))?;
            registry.minimum_capabilities.push(capability);
        }
        "schedule" => registry.schedules.push(Message::decode(value)?),
        #[allow(deprecated)]
        "quota" => {
            let quota = registry::Quota::decode(value)?;
            of_key(quota_key(&quota))?;
            registry.quotas.push(quota);
        }
        "quota_config" => {
            let quota = QuotaConfig::decode(value)?;
            of_key(quota_config_key(&quota))?;
            registry.quota_configs.push(quota);
        }
        "resource_providers" => registry.resource_provider_registry = Some(Message::decode(value)?),
        _ => {}
    }
    Ok(())
}
