//! Operations that agents carry out, until their final status is acknowledged.
//!
//! It sends nothing and changes no resources.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::Text;
use protos::mesos::{Operation, OperationStatus, Uuid};
use rustc_hash::FxHashMap;

use super::{is_final, provider_of};
use crate::state::AgentKey;
use crate::table::Table;
use crate::tracked::Tracked;

/// Maximum number of statuses of an operation that are kept.
const MAX_STATUSES: usize = 16;

/// Operations on all agents, with their indices.
#[derive(Debug)]
pub(crate) struct Operations {
    /// State of the generator of UUIDs.
    random: u64,
    rows: Tracked<Table<Operation>>,
    by_uuid: BTreeMap<(AgentKey, Vec<u8>), u64>,
    /// Rows of operations by the id of the framework that requested them.
    by_framework: FxHashMap<Text, BTreeSet<u64>>,
}

impl Operations {
    /// Returns an empty table. `seed` seeds the generator of the operations' UUIDs.
    pub(crate) fn new(seed: u64) -> Operations {
        Operations {
            random: seed,
            rows: Tracked::default(),
            by_uuid: BTreeMap::new(),
            by_framework: FxHashMap::default(),
        }
    }

    /// Returns whether a row may have changed since the last call.
    pub(crate) fn take_changed(&mut self) -> bool {
        self.rows.take_changed()
    }

    /// Returns the rows for readers.
    pub(crate) fn rows(&self) -> &Table<Operation> {
        &self.rows
    }

    /// Returns a UUID for a new operation.
    pub(crate) fn next_uuid(&mut self) -> Uuid {
        Uuid { value: base::uuid(&mut self.random).to_vec() }
    }

    /// Returns the operation on an agent that has this UUID.
    pub(crate) fn get(&self, agent: AgentKey, uuid: &[u8]) -> Option<&Arc<Operation>> {
        self.rows.get(*self.by_uuid.get(&(agent, uuid.to_vec()))?)
    }

    /// Returns the operations on an agent, by UUID.
    pub(crate) fn on_agent(&self, agent: AgentKey) -> impl Iterator<Item = &Arc<Operation>> {
        let rows = self.by_uuid.range((agent, Vec::new())..).take_while(move |((other, _), _)| *other == agent);
        rows.filter_map(|(_, row)| self.rows.get(*row))
    }

    /// Returns the operations that a framework requested, oldest first.
    pub(crate) fn of_framework(&self, id: &str) -> impl Iterator<Item = &Arc<Operation>> {
        self.by_framework.get(id).into_iter().flatten().filter_map(|row| self.rows.get(*row))
    }

    /// Returns the UUIDs of the operations on a resource provider that are not final and not among `ended`.
    pub(crate) fn open_on(&self, agent: AgentKey, provider: &str, ended: &[Vec<u8>]) -> BTreeSet<Vec<u8>> {
        let open = self.on_agent(agent).filter(|known| {
            let is_open = !is_final(known.latest_status.state()) && !ended.contains(&known.uuid.value);
            is_open && provider_of(&known.info) == Some(provider)
        });
        open.map(|known| known.uuid.value.clone()).collect()
    }

    /// Adds an operation, unless there is one on the agent with its UUID.
    pub(crate) fn insert(&mut self, agent: AgentKey, operation: Operation) {
        let key = (agent, operation.uuid.value.clone());
        if self.by_uuid.contains_key(&key) {
            return;
        }
        let framework = operation.framework_id.as_ref().map(|id| id.value.clone());
        let row = self.rows.insert(Arc::new(operation));
        self.by_uuid.insert(key, row);
        if let Some(framework) = framework {
            self.by_framework.entry(framework).or_default().insert(row);
        }
    }

    /// Records a status of an operation.
    pub(crate) fn update(&mut self, agent: AgentKey, uuid: &[u8], status: &OperationStatus, latest: &OperationStatus) {
        let Some(row) = self.by_uuid.get(&(agent, uuid.to_vec())) else { return };
        let Some(operation) = self.rows.get_mut(*row) else { return };
        operation.latest_status = latest.clone();
        operation.statuses.push(status.clone());
        // A repeated status is kept once. Only the last statuses are kept.
        operation.statuses.dedup();
        if operation.statuses.len() > MAX_STATUSES {
            operation.statuses.remove(0);
        }
    }

    /// Removes an operation.
    pub(crate) fn remove(&mut self, agent: AgentKey, uuid: &[u8]) {
        let Some(row) = self.by_uuid.remove(&(agent, uuid.to_vec())) else { return };
        let Some(framework) = self.rows.remove(row).and_then(|gone| Some(gone.framework_id.as_ref()?.value.clone()))
        else {
            return;
        };
        if let Some(rows) = self.by_framework.get_mut(&framework) {
            rows.remove(&row);
            if rows.is_empty() {
                self.by_framework.remove(&framework);
            }
        }
    }

    /// Removes the operations on an agent for which `is_gone` returns true.
    pub(crate) fn remove_on(&mut self, agent: AgentKey, is_gone: impl Fn(&Operation) -> bool) {
        let gone: Vec<_> = self.on_agent(agent).filter(|row| is_gone(row)).map(|row| row.uuid.value.clone()).collect();
        gone.iter().for_each(|uuid| self.remove(agent, uuid));
    }

    /// Returns whether the indices match the rows, and `is_known` holds for each agent with operations.
    pub(crate) fn is_in_step(&self, is_known: impl Fn(AgentKey) -> bool) -> bool {
        let of_frameworks = self.rows.values().filter(|row| row.framework_id.is_some()).count();
        self.by_uuid.len() == self.rows.len()
            && self.by_framework.values().map(BTreeSet::len).sum::<usize>() == of_frameworks
            && self.by_uuid.keys().all(|(agent, _)| is_known(*agent))
    }
}
