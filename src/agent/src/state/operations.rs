//! The operations of an agent whose outcome has not been acknowledged.
//!
//! It sends nothing and writes nothing.

use std::sync::Arc;

use protos::mesos::internal::reconcile_operations_message;
use protos::mesos::{Operation, Uuid};

/// Operations that are not acknowledged, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    rows: Arc<Vec<Arc<Operation>>>,
}

impl Operations {
    /// Operations that an earlier agent left.
    pub(crate) fn recovered(operations: impl IntoIterator<Item = Operation>) -> Operations {
        Operations { rows: Arc::new(operations.into_iter().map(Arc::new).collect()) }
    }

    /// The operations, for snapshots.
    pub(crate) fn rows(&self) -> &Arc<Vec<Arc<Operation>>> {
        &self.rows
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Operation>> {
        self.rows.iter()
    }

    /// Copies, for messages and checkpoints.
    pub(crate) fn to_proto(&self) -> Vec<Operation> {
        self.rows.iter().map(|operation| Operation::clone(operation)).collect()
    }

    /// The operation with this UUID.
    pub(crate) fn get(&self, uuid: &[u8]) -> Option<&Arc<Operation>> {
        self.rows.iter().find(|operation| operation.uuid.value[..] == *uuid)
    }

    /// The operation that a master or a framework asks for: by its UUID, else by the framework's id of it.
    pub(crate) fn asked_for(&self, asked: &reconcile_operations_message::Operation) -> Option<&Arc<Operation>> {
        match (&asked.operation_uuid, &asked.operation_id) {
            (Some(uuid), _) => self.get(&uuid.value),
            (None, id) => self.rows.iter().find(|operation| id.is_some() && operation.info.id == *id),
        }
    }

    pub(crate) fn push(&mut self, operation: Operation) {
        Arc::make_mut(&mut self.rows).push(Arc::new(operation));
    }

    /// Removes the operation whose latest status is acknowledged. Returns whether there is one.
    pub(crate) fn acknowledge(&mut self, operation: &Uuid, status: &Uuid) -> bool {
        let is_it = |row: &Arc<Operation>| row.uuid == *operation && row.latest_status.uuid.as_ref() == Some(status);
        let Some(index) = self.rows.iter().position(is_it) else { return false };
        Arc::make_mut(&mut self.rows).remove(index);
        true
    }
}
