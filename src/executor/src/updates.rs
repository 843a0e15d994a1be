//! The executor's list of unacknowledged tasks and status updates.
//!
//! SUBSCRIBE contains it after a lost connection, so no update is lost with an agent.

use crate::messages::{Id, TaskStatus, Update};

/// A status update that has not been acknowledged.
#[derive(Debug)]
struct Unacknowledged {
    status: TaskStatus,
    /// Whether the update was sent over the current connection, separately or in SUBSCRIBE.
    sent: bool,
}

/// Unacknowledged updates in the order of their creation, and tasks without an acknowledged update.
#[derive(Debug, Default)]
pub(crate) struct Updates {
    updates: Vec<Unacknowledged>,
    tasks: Vec<(Id, Vec<u8>)>,
}

impl Updates {
    /// Records a launched task; `task` is its whole message.
    pub(crate) fn launched(&mut self, task_id: Id, task: Vec<u8>) {
        self.tasks.push((task_id, task));
    }

    /// Returns the message of a launched task; `None` once one of its updates was acknowledged.
    pub(crate) fn task(&self, task_id: &Id) -> Option<&[u8]> {
        self.tasks.iter().find(|(id, _)| id == task_id).map(|(_, task)| task.as_slice())
    }

    /// Adds an update.
    pub(crate) fn add(&mut self, status: TaskStatus) {
        self.updates.push(Unacknowledged { status, sent: false });
    }

    /// Removes an acknowledged update, and its task.
    pub(crate) fn acknowledged(&mut self, task_id: &Id, uuid: &[u8]) {
        self.updates.retain(|u| u.status.uuid.as_deref() != Some(uuid));
        self.tasks.retain(|(id, _)| id != task_id);
    }

    /// Returns whether all updates were acknowledged.
    pub(crate) fn is_empty(&self) -> bool {
        self.updates.is_empty()
    }

    /// Returns the tasks and updates that SUBSCRIBE must contain, and marks the updates as sent.
    pub(crate) fn for_subscribe(&mut self) -> (Vec<Vec<u8>>, Vec<Update>) {
        for update in &mut self.updates {
            update.sent = true;
        }
        let updates = self.updates.iter().map(|u| Update { status: u.status.clone() }).collect();
        (self.tasks.iter().map(|(_, task)| task.clone()).collect(), updates)
    }

    /// Returns the updates that were not sent over the current connection, and marks them as sent.
    pub(crate) fn unsent(&mut self) -> Vec<Update> {
        let unsent = self.updates.iter_mut().filter(|u| !u.sent);
        unsent
            .map(|u| {
                u.sent = true;
                Update { status: u.status.clone() }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(task: &str, uuid: u8) -> TaskStatus {
        TaskStatus { task_id: Id::new(task), uuid: Some(vec![uuid; 16]), ..TaskStatus::default() }
    }

    #[test]
    fn a_lost_connection_loses_nothing() {
        let mut book = Updates::default();
        book.launched(Id::new("a"), vec![1]);
        book.launched(Id::new("b"), vec![2]);
        book.add(status("a", 1));
        assert_eq!(book.unsent().len(), 1);
        assert_eq!(book.unsent().len(), 0);
        book.add(status("a", 2));
        let (tasks, updates) = book.for_subscribe();
        assert_eq!((tasks, updates.len()), (vec![vec![1], vec![2]], 2));
        assert_eq!(book.unsent().len(), 0);
        // This update is added between SUBSCRIBE and its response.
        book.add(status("a", 3));
        assert_eq!(book.unsent()[0].status, status("a", 3));
    }

    #[test]
    fn acknowledgements_strike_out_updates_and_tasks() {
        let mut book = Updates::default();
        book.launched(Id::new("a"), vec![1]);
        book.add(status("a", 1));
        book.add(status("a", 2));
        book.acknowledged(&Id::new("a"), &[1; 16]);
        assert!(!book.is_empty());
        assert_eq!(book.for_subscribe().0, Vec::<Vec<u8>>::new());
        book.acknowledged(&Id::new("a"), &[9; 16]);
        assert!(!book.is_empty());
        book.acknowledged(&Id::new("a"), &[2; 16]);
        assert!(book.is_empty());
    }
}
