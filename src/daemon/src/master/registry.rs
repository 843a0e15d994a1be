//! The registry of the live master: turns the core's operations into changes of the store.
//!
//! An operation costs what it changes: what the store holds of agents is kept beside it, by id.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use master::RegistryOp;
use protos::json::{Dialect, ToJson};
use protos::mesos;
use protos::mesos::internal::{Registry, registry};
use store::{FileRegistry, MemoryRegistry, Update};

use crate::flags::{FlagError, Flags};

/// The name of the registry's file below the work folder.
const FILE: &str = "registry.redb";

/// A store and what the operations need to know of it.
pub(super) struct RegistryStore {
    store: Box<dyn store::RegistryStore>,
    loaded: Registry,
    admitted: BTreeMap<String, registry::Slave>,
    unreachable: BTreeMap<String, registry::UnreachableSlave>,
    gone: BTreeMap<String, registry::GoneSlave>,
}

impl RegistryStore {
    /// Opens the store that `--registry` and `--work_dir` name, and reads it.
    ///
    /// # Errors
    /// Flags that do not fit, or a store that cannot be read.
    pub(super) fn open(flags: &Flags) -> anyhow::Result<RegistryStore> {
        let mut store: Box<dyn store::RegistryStore> = match flags.text("registry") {
            "in_memory" => Box::new(MemoryRegistry::default()),
            "replicated_log" => {
                let work_dir = flags.required("work_dir", " with --registry=replicated_log")?;
                let path = Path::new(work_dir).join(FILE);
                Box::new(FileRegistry::open(&path).context("the registry cannot be opened")?)
            }
            other => {
                let why = format!("there is no registry '{other}': use replicated_log or in_memory");
                return Err(FlagError::Refused { name: "registry", why }.into());
            }
        };
        let loaded = store.load().context("the registry cannot be read")?;
        let Parts { admitted, unreachable, gone } = Parts::of(&loaded);
        Ok(RegistryStore { store, loaded, admitted, unreachable, gone })
    }

    /// What the masters before have left.
    pub(super) fn registry(&self) -> &Registry {
        &self.loaded
    }

    /// Makes operations durable, all or none.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(super) fn apply(&mut self, operations: &[RegistryOp]) -> anyhow::Result<()> {
        let mut updates = Vec::with_capacity(operations.len());
        for operation in operations {
            self.updates(operation, &mut updates);
        }
        self.store.commit(&updates).context("the registry cannot be written")
    }

    /// The registry as the store holds it now, as JSON.
    pub(super) fn json(&mut self) -> Vec<u8> {
        match self.store.load() {
            Ok(registry) => registry.json(Dialect::V0),
            Err(error) => {
                tracing::warn!("the registry cannot be read: {error}");
                b"{}".to_vec()
            }
        }
    }

    /// About how many bytes the registry takes.
    pub(super) fn size(&self) -> usize {
        self.admitted.values().map(prost::Message::encoded_len).sum()
    }

    /// The changes of the store that one operation makes. What an operation means is the core's to say: it is applied to
    /// a registry that holds only the agents that it names.
    fn updates(&mut self, operation: &RegistryOp, updates: &mut Vec<Update>) {
        let ids = named_agents(operation);
        let mut part = Registry::default();
        for id in &ids {
            part.slaves.get_or_insert_default().slaves.extend(self.admitted.get(&id.value).cloned());
            part.unreachable.get_or_insert_default().slaves.extend(self.unreachable.get(&id.value).cloned());
            part.gone.get_or_insert_default().slaves.extend(self.gone.get(&id.value).cloned());
        }
        operation.apply(&mut part);
        updates.extend(part.master.as_ref().map(Update::master));
        updates.extend(part.weights.iter().map(Update::weight));
        updates.extend(part.minimum_capabilities.iter().map(Update::minimum_capability));
        let after = Parts::of(&part);
        for id in &ids {
            let key = &id.value;
            let writes = (Update::agent as fn(&_) -> _, Update::no_agent as fn(&_) -> _);
            settle(&mut self.admitted, key, after.admitted.get(key), writes, id, updates);
            let writes = (Update::unreachable as fn(&_) -> _, Update::not_unreachable as fn(&_) -> _);
            settle(&mut self.unreachable, key, after.unreachable.get(key), writes, id, updates);
            let writes = (Update::agent_gone as fn(&_) -> _, Update::agent_not_gone as fn(&_) -> _);
            settle(&mut self.gone, key, after.gone.get(key), writes, id, updates);
        }
    }
}

/// How the store is told of an entry, and of its end.
type Changes<T> = (fn(&T) -> Update, fn(&mesos::SlaveId) -> Update);

/// Makes `known` have what is there now, and adds the change of the store if that is one.
fn settle<T: Clone + PartialEq>(
    known: &mut BTreeMap<String, T>,
    key: &str,
    now: Option<&T>,
    (write, remove): Changes<T>,
    id: &mesos::SlaveId,
    updates: &mut Vec<Update>,
) {
    match now {
        Some(entry) if known.get(key) != Some(entry) => {
            updates.push(write(entry));
            known.insert(key.to_owned(), entry.clone());
        }
        None if known.remove(key).is_some() => updates.push(remove(id)),
        _ => {}
    }
}

fn named_agents(operation: &RegistryOp) -> Vec<mesos::SlaveId> {
    match operation {
        RegistryOp::Recover(_) | RegistryOp::UpdateWeights(_) => Vec::new(),
        RegistryOp::AdmitAgent(info) | RegistryOp::UpdateAgent(info) | RegistryOp::MarkAgentReachable(info) => {
            info.id.iter().cloned().collect()
        }
        RegistryOp::Prune { unreachable, gone } => unreachable.iter().chain(gone).cloned().collect(),
        RegistryOp::MarkAgentUnreachable { id, .. }
        | RegistryOp::RemoveAgent(id)
        | RegistryOp::MarkAgentGone { id, .. }
        | RegistryOp::DrainAgent { id, .. }
        | RegistryOp::MarkAgentDrained(id)
        | RegistryOp::DeactivateAgent(id)
        | RegistryOp::ReactivateAgent(id) => vec![id.clone()],
    }
}

/// The agents of a registry by id.
struct Parts {
    admitted: BTreeMap<String, registry::Slave>,
    unreachable: BTreeMap<String, registry::UnreachableSlave>,
    gone: BTreeMap<String, registry::GoneSlave>,
}

impl Parts {
    fn of(registry: &Registry) -> Parts {
        let id = |agent: &registry::Slave| agent.info.id.as_ref().map(|id| id.value.clone()).unwrap_or_default();
        let admitted = registry.slaves.iter().flat_map(|list| &list.slaves);
        let unreachable = registry.unreachable.iter().flat_map(|list| &list.slaves);
        let gone = registry.gone.iter().flat_map(|list| &list.slaves);
        Parts {
            admitted: admitted.map(|agent| (id(agent), agent.clone())).collect(),
            unreachable: unreachable.map(|agent| (agent.id.value.clone(), agent.clone())).collect(),
            gone: gone.map(|agent| (agent.id.value.clone(), agent.clone())).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Part;

    fn info(text: &str) -> Box<mesos::SlaveInfo> {
        Box::new(mesos::SlaveInfo { id: Some(id(text)), hostname: "h".to_owned(), ..Default::default() })
    }

    fn id(text: &str) -> mesos::SlaveId {
        mesos::SlaveId { value: text.to_owned() }
    }

    /// A list of the same agents in another order says the same.
    fn sorted(mut registry: Registry) -> Registry {
        registry.slaves.get_or_insert_default().slaves.sort_by_key(|a| a.info.id.clone().map(|id| id.value));
        registry.unreachable.get_or_insert_default().slaves.sort_by_key(|a| a.id.value.clone());
        registry.gone.get_or_insert_default().slaves.sort_by_key(|a| a.id.value.clone());
        registry
    }

    #[test]
    fn the_store_holds_what_the_operations_say() {
        let mut flags = Flags::defaults(Part::Master);
        flags.set("registry", "in_memory").unwrap();
        let mut store = RegistryStore::open(&flags).unwrap();
        let time = mesos::TimeInfo { nanoseconds: 7 };
        let operations = [
            RegistryOp::Recover(Box::default()),
            RegistryOp::AdmitAgent(info("a")),
            RegistryOp::AdmitAgent(info("b")),
            RegistryOp::AdmitAgent(info("c")),
            RegistryOp::DeactivateAgent(id("a")),
            RegistryOp::MarkAgentUnreachable { id: id("a"), time },
            RegistryOp::MarkAgentUnreachable { id: id("b"), time },
            RegistryOp::MarkAgentReachable(info("a")),
            RegistryOp::MarkAgentGone { id: id("c"), time },
            RegistryOp::Prune { unreachable: vec![id("b")], gone: vec![] },
            RegistryOp::UpdateWeights(vec![mesos::WeightInfo { role: Some("r".into()), weight: 2.0 }]),
        ];
        let mut wanted = Registry::default();
        for operation in &operations {
            operation.apply(&mut wanted);
            store.apply(std::slice::from_ref(operation)).unwrap();
            assert_eq!(sorted(store.store.load().unwrap()), sorted(wanted.clone()), "{operation:?}");
        }
        assert!(wanted.slaves.unwrap().slaves[0].deactivated());
    }

    #[test]
    fn a_file_needs_a_folder() {
        let Err(error) = RegistryStore::open(&Flags::defaults(Part::Master)) else { panic!("no work_dir was given") };
        assert!(error.to_string().contains("'--work_dir' is required with --registry=replicated_log"), "{error}");
    }
}
