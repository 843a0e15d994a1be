//! The registry of the live master: converts the core's operations to changes of the store.
//!
//! The cost of an operation depends on what it changes, not on the size of the registry: a copy of the store's entries
//! is indexed by agent id.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::Context;
use master::RegistryOp;
use protos::json::{Dialect, ToJson};
use protos::mesos;
use protos::mesos::internal::{Registry, registry};
use protos::mesos::maintenance::Schedule;
use protos::mesos::quota::QuotaConfig;
use store::{MemoryRegistry, StoreError, Update};

use super::group_registry::{self, Claim, EtcdClaim, Limits, ZooKeeperClaim, adopt};
use super::peers::{self, Peers};
use super::registry_file;
use crate::clock::Stopwatch;
use crate::flags::FlagError;
use crate::flags::master::StateFlags;
use crate::metrics::{Metrics, Timings};

/// Period of the statistics of writes.
const WRITES_WINDOW: Duration = Duration::from_secs(24 * 3600);
/// Minimum size of the entry of the leading master, in bytes.
const LEAST_BYTES: usize = 64;

/// The place in which the masters of a group keep their registry.
pub(super) enum RegistryLocation {
    ZooKeeper(ZooKeeperClaim),
    Etcd(EtcdClaim),
    Peers(Peers),
}

/// A store, and the entries that operations need.
pub(super) struct RegistryStore {
    store: Box<dyn store::RegistryStore>,
    loaded: Registry,
    admitted: BTreeMap<String, registry::Slave>,
    unreachable: BTreeMap<String, registry::UnreachableSlave>,
    gone: BTreeMap<String, registry::GoneSlave>,
    quotas: BTreeMap<String, QuotaConfig>,
    old_quotas: Vec<registry::Quota>,
    machines: Option<registry::Machines>,
    schedules: Vec<Schedule>,
    capabilities: Vec<registry::MinimumCapability>,
    /// Time that reading the registry at the start took; `writes` has the times of writes.
    fetched_in: Duration,
    writes: Timings,
}

impl RegistryStore {
    /// Creates an empty registry in memory, for a master that does not lead.
    ///
    /// # Errors
    /// None: there is nothing to read.
    pub(super) fn empty() -> anyhow::Result<RegistryStore> {
        RegistryStore::read(Box::new(MemoryRegistry::default()))
    }

    /// Opens the store that `--registry` and `--work_dir` name, and reads it. Masters of a group share one store; a new
    /// leader takes it over with the claim in `location`, which excludes earlier leaders. May block.
    ///
    /// # Errors
    /// Invalid flags, or a store that cannot be read.
    pub(super) fn open(flags: &StateFlags, location: Option<RegistryLocation>) -> anyhow::Result<RegistryStore> {
        let work_dir = flags.work_dir.as_deref();
        let store: Box<dyn store::RegistryStore> = match (flags.registry.as_str(), location) {
            ("in_memory", _) => Box::new(MemoryRegistry::default()),
            ("replicated_log", Some(location)) => {
                let limits = Limits { fetch: flags.registry_fetch_timeout, store: flags.registry_store_timeout };
                match location {
                    RegistryLocation::Peers(peers) => {
                        Box::new(peers::open_registry(peers).context("the registry cannot be opened")?)
                    }
                    RegistryLocation::ZooKeeper(claim) => open_group(claim, limits, flags)?,
                    RegistryLocation::Etcd(claim) => open_group(claim, limits, flags)?,
                }
            }
            ("replicated_log", None) => {
                let missing = FlagError::Missing { name: "work_dir", why: " with --registry=replicated_log" };
                let path = registry_file::path(work_dir.ok_or(missing)?);
                Box::new(registry_file::open(&path, flags.registry_accept_loss)?)
            }
            (other, _) => {
                let why = format!("there is no registry '{other}': use replicated_log or in_memory");
                return Err(FlagError::Refused { name: "registry", why }.into());
            }
        };
        RegistryStore::read(store)
    }

    fn read(mut store: Box<dyn store::RegistryStore>) -> anyhow::Result<RegistryStore> {
        let began = Stopwatch::start();
        let loaded = store.load().context("the registry cannot be read")?;
        let fetched_in = began.elapsed();
        let Parts { admitted, unreachable, gone } = Parts::of(&loaded);
        let quotas = loaded.quota_configs.iter().map(|config| (config.role.clone(), config.clone()));
        Ok(RegistryStore {
            admitted,
            unreachable,
            gone,
            quotas: quotas.collect(),
            #[allow(deprecated)]
            old_quotas: loaded.quotas.clone(),
            machines: loaded.machines.clone(),
            schedules: loaded.schedules.clone(),
            capabilities: loaded.minimum_capabilities.clone(),
            fetched_in,
            writes: Timings::new(WRITES_WINDOW),
            store,
            loaded,
        })
    }

    /// Returns the registry as earlier masters have left it.
    pub(super) fn registry(&self) -> &Registry {
        &self.loaded
    }

    /// Makes operations durable, all or none.
    ///
    /// # Errors
    /// The store cannot be written, or its file is not at its path any more.
    pub(super) fn apply(&mut self, operations: &[RegistryOp]) -> anyhow::Result<()> {
        let mut updates = Vec::with_capacity(operations.len());
        for operation in operations {
            self.updates(operation, &mut updates);
        }
        let began = Stopwatch::start();
        self.store.commit(&updates)?;
        self.writes.add(began, began.elapsed());
        Ok(())
    }

    /// Returns the current registry of the store, as JSON.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(super) fn json(&mut self) -> Result<Vec<u8>, StoreError> {
        Ok(self.store.load()?.json(Dialect::V0))
    }

    /// Sets `registrar/state_fetch_ms`, `registrar/state_store_ms` and the statistics of the latter (MET-02).
    pub(super) fn timings(&self, metrics: &mut Metrics) {
        metrics.set("registrar/state_fetch_ms", self.fetched_in.as_secs_f64() * 1e3);
        self.writes.write_metrics("registrar/state_store_ms", metrics);
    }

    /// Returns the approximate size of the registry, in bytes.
    pub(super) fn size(&self) -> usize {
        let agents: usize = self.admitted.values().map(prost::Message::encoded_len).sum();
        let quotas: usize = self.quotas.values().map(prost::Message::encoded_len).sum();
        let machines = self.machines.as_ref().map_or(0, prost::Message::encoded_len);
        let master = self.loaded.master.as_ref().map_or(0, prost::Message::encoded_len);
        agents + quotas + machines + master.max(LEAST_BYTES)
    }

    /// Adds the changes of the store for an operation. The core defines what an operation does: it is applied to a
    /// registry with only the entries that it can change.
    fn updates(&mut self, operation: &RegistryOp, updates: &mut Vec<Update>) {
        let ids = named_agents(operation);
        let mut part = self.part(operation, &ids);
        let before = part.clone();
        operation.apply(&mut part);
        // After a failover nearly all agents reregister unchanged.
        if part == before {
            return;
        }
        updates.extend(store::changes(&before, &part));
        self.learn(operation, &ids, part);
    }

    fn part(&self, operation: &RegistryOp, ids: &[mesos::SlaveId]) -> Registry {
        let mut part = Registry { minimum_capabilities: self.capabilities.clone(), ..Registry::default() };
        for id in ids {
            part.slaves.get_or_insert_default().slaves.extend(self.admitted.get(id.value.as_str()).cloned());
            part.unreachable.get_or_insert_default().slaves.extend(self.unreachable.get(id.value.as_str()).cloned());
            part.gone.get_or_insert_default().slaves.extend(self.gone.get(id.value.as_str()).cloned());
        }
        match operation {
            RegistryOp::UpdateQuota(configs) => {
                #[allow(deprecated)]
                part.quotas.clone_from(&self.old_quotas);
                let named: BTreeSet<&str> = configs.iter().map(|config| config.role.as_str()).collect();
                part.quota_configs.extend(named.iter().filter_map(|role| self.quotas.get(*role)).cloned());
                // Another role's quota is needed, too: the capability stays as long as there are quotas.
                let other = self.quotas.iter().find(|(role, _)| !named.contains(role.as_str()));
                part.quota_configs.extend(other.map(|(_, config)| config.clone()));
            }
            RegistryOp::UpdateMaintenanceSchedule(_)
            | RegistryOp::StartMaintenance(_)
            | RegistryOp::StopMaintenance(_) => {
                part.machines.clone_from(&self.machines);
                part.schedules.clone_from(&self.schedules);
            }
            _ => {}
        }
        part
    }

    /// Updates the copy with the entries that an operation has changed.
    fn learn(&mut self, operation: &RegistryOp, ids: &[mesos::SlaveId], part: Registry) {
        let after = Parts::of(&part);
        for id in ids {
            let key = id.value.as_str();
            settle(&mut self.admitted, key, after.admitted.get(key));
            settle(&mut self.unreachable, key, after.unreachable.get(key));
            settle(&mut self.gone, key, after.gone.get(key));
        }
        self.capabilities = part.minimum_capabilities;
        match operation {
            RegistryOp::UpdateQuota(configs) => {
                configs.iter().for_each(|config| drop(self.quotas.remove(&config.role)));
                self.quotas.extend(part.quota_configs.into_iter().map(|config| (config.role.clone(), config)));
                #[allow(deprecated)]
                self.old_quotas.clone_from(&part.quotas);
            }
            RegistryOp::UpdateMaintenanceSchedule(_)
            | RegistryOp::StartMaintenance(_)
            | RegistryOp::StopMaintenance(_) => {
                self.machines = part.machines;
                self.schedules = part.schedules;
            }
            _ => {}
        }
    }
}

/// Opens the registry of a group, and copies that of this master to it if the group has none.
fn open_group<C: Claim>(claim: C, limits: Limits, flags: &StateFlags) -> anyhow::Result<Box<dyn store::RegistryStore>> {
    let mut group = group_registry::open(claim, limits).context("the registry cannot be opened")?;
    if let Some(work_dir) = &flags.work_dir {
        let path = registry_file::path(work_dir);
        adopt(&mut group, C::PLACE, &path, flags.registry_accept_loss).context("the registry cannot be taken over")?;
    }
    Ok(Box::new(group))
}

/// Sets the entry of a key, or removes it.
fn settle<T: Clone>(known: &mut BTreeMap<String, T>, key: &str, now: Option<&T>) {
    match now {
        Some(entry) => drop(known.insert(key.to_owned(), entry.clone())),
        None => drop(known.remove(key)),
    }
}

fn named_agents(operation: &RegistryOp) -> Vec<mesos::SlaveId> {
    match operation {
        RegistryOp::Recover(_)
        | RegistryOp::UpdateWeights(_)
        | RegistryOp::UpdateQuota(_)
        | RegistryOp::UpdateMaintenanceSchedule(_)
        | RegistryOp::StartMaintenance(_)
        | RegistryOp::StopMaintenance(_) => Vec::new(),
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
        let id = |agent: &registry::Slave| agent.info.id.as_ref().map(|id| id.value.to_string()).unwrap_or_default();
        let admitted = registry.slaves.iter().flat_map(|list| &list.slaves);
        let unreachable = registry.unreachable.iter().flat_map(|list| &list.slaves);
        let gone = registry.gone.iter().flat_map(|list| &list.slaves);
        Parts {
            admitted: admitted.map(|agent| (id(agent), agent.clone())).collect(),
            unreachable: unreachable.map(|agent| (agent.id.value.to_string(), agent.clone())).collect(),
            gone: gone.map(|agent| (agent.id.value.to_string(), agent.clone())).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::MasterFlags;

    fn info(text: &str) -> Box<mesos::SlaveInfo> {
        Box::new(mesos::SlaveInfo { id: Some(id(text)), hostname: "h".to_owned(), ..Default::default() })
    }

    fn id(text: &str) -> mesos::SlaveId {
        mesos::SlaveId { value: text.into() }
    }

    fn quota(role: &str, value: f64) -> QuotaConfig {
        let guarantees = [("cpus".to_owned(), mesos::value::Scalar { value })].into();
        QuotaConfig { role: role.to_owned(), guarantees, limits: BTreeMap::new() }
    }

    fn machine(name: &str) -> mesos::MachineId {
        mesos::MachineId { hostname: Some(name.to_owned()), ip: None }
    }

    fn schedule(names: &[&str]) -> Schedule {
        let machine_ids = names.iter().map(|name| machine(name)).collect();
        let window = mesos::maintenance::Window { machine_ids, ..Default::default() };
        Schedule { windows: vec![window] }
    }

    /// Sorts the agents of a registry: their order is irrelevant.
    fn sorted(mut registry: Registry) -> Registry {
        registry.slaves.get_or_insert_default().slaves.sort_by_key(|a| a.info.id.clone().map(|id| id.value));
        registry.unreachable.get_or_insert_default().slaves.sort_by_key(|a| a.id.value.clone());
        registry.gone.get_or_insert_default().slaves.sort_by_key(|a| a.id.value.clone());
        registry
    }

    #[test]
    fn the_store_holds_what_the_operations_say() {
        let flags = MasterFlags::with(&[("registry", "in_memory")]);
        let mut store = RegistryStore::open(&flags.state, None).unwrap();
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
            // The agent is reachable already.
            RegistryOp::MarkAgentReachable(info("a")),
            RegistryOp::MarkAgentGone { id: id("c"), time },
            RegistryOp::Prune { unreachable: vec![id("b")], gone: vec![] },
            RegistryOp::UpdateWeights(vec![mesos::WeightInfo { role: Some("r".into()), weight: 2.0 }]),
            RegistryOp::UpdateQuota(vec![quota("q", 1.0), quota("r", 2.0)]),
            RegistryOp::UpdateQuota(vec![quota("q", 0.0), quota("s", 0.0)]),
            RegistryOp::UpdateMaintenanceSchedule(schedule(&["m", "n"])),
            RegistryOp::StartMaintenance(vec![machine("m")]),
            RegistryOp::UpdateQuota(vec![quota("r", 0.0)]),
            RegistryOp::UpdateMaintenanceSchedule(schedule(&["m"])),
            RegistryOp::StopMaintenance(vec![machine("m")]),
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
    fn a_file_needs_a_directory() {
        let Err(error) = RegistryStore::open(&MasterFlags::with(&[]).state, None) else {
            panic!("no work_dir was given")
        };
        assert!(error.to_string().contains("'--work_dir' is required with --registry=replicated_log"), "{error}");
    }
}
