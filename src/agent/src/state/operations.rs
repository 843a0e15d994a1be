//! Table of the operations on an agent whose status has not been acknowledged.
//!
//! It sends nothing and writes nothing.

use std::sync::Arc;

use protos::mesos::internal::reconcile_operations_message;
use protos::mesos::{Operation, Uuid};

/// Operations whose status has not been acknowledged, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    rows: Arc<Vec<Arc<Operation>>>,
}

impl Operations {
    /// Returns a table of the operations that the previous agent process left.
    pub(crate) fn recovered(operations: impl IntoIterator<Item = Operation>) -> Operations {
        Operations { rows: Arc::new(operations.into_iter().map(Arc::new).collect()) }
    }

    /// Returns the operations, for snapshots.
    pub(crate) fn rows(&self) -> &Arc<Vec<Arc<Operation>>> {
        &self.rows
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Operation>> {
        self.rows.iter()
    }

    /// Returns copies of the operations, for messages and checkpoints.
    pub(crate) fn to_proto(&self) -> Vec<Operation> {
        self.rows.iter().map(|operation| Operation::clone(operation)).collect()
    }

    /// Returns the operation with this UUID.
    pub(crate) fn get(&self, uuid: &[u8]) -> Option<&Arc<Operation>> {
        self.rows.iter().find(|operation| operation.uuid.value[..] == *uuid)
    }

    /// Returns the operation that a reconciliation asks for: by its UUID, else by the id that the framework gave it.
    pub(crate) fn asked_for(&self, asked: &reconcile_operations_message::Operation) -> Option<&Arc<Operation>> {
        match (&asked.operation_uuid, &asked.operation_id) {
            (Some(uuid), _) => self.get(&uuid.value),
            (None, id) => self.rows.iter().find(|operation| id.is_some() && operation.info.id == *id),
        }
    }

    pub(crate) fn push(&mut self, operation: Operation) {
        Arc::make_mut(&mut self.rows).push(Arc::new(operation));
    }

    /// Removes the operation whose latest status is acknowledged. Returns whether there was one.
    pub(crate) fn acknowledge(&mut self, operation: &Uuid, status: &Uuid) -> bool {
        let is_it = |row: &Arc<Operation>| row.uuid == *operation && row.latest_status.uuid.as_ref() == Some(status);
        let Some(index) = self.rows.iter().position(is_it) else { return false };
        Arc::make_mut(&mut self.rows).remove(index);
        true
    }
}
