//! A framework ends: torn down, its time run out, or by an operator (mesos-features.md SCH-45).

use std::sync::Arc;

use base::FrameworkId;
use protos::mesos::TaskState;
use protos::mesos::internal::ShutdownFrameworkMessage;
use protos::mesos::task_status::Reason;

use crate::io::Outbox;
use crate::master::Master;
use crate::state::{Connection, FrameworkKey, TaskKey, is_terminal};

impl Master {
    /// Ends a framework: its executors are shut down, its tasks are history, its id is spent.
    pub(crate) fn remove_framework(&mut self, key: FrameworkKey, out: &mut Outbox) {
        let Some(framework) = self.framework(key) else { return };
        out.info(format!("Removing framework {}", framework.id));
        let framework_id = framework.proto_id();
        self.discard_offers_of(key, out);
        if self.framework(key).is_some_and(|framework| framework.active) {
            let id = self.frameworks.get(key.0).map(|framework| framework.id.clone());
            id.iter().for_each(|id| self.allocation.deactivate_framework(id));
        }
        for agent in self.agents.values() {
            out.send(&agent.pid, ShutdownFrameworkMessage { framework_id: framework_id.clone() });
        }
        self.end_tasks(key, out);
        self.remove_executors_of(key);
        self.cut_connection(key, false, out);
        self.complete_framework(key, out);
    }

    /// All tasks are killed as far as this master is concerned; nobody is told.
    fn end_tasks(&mut self, key: FrameworkKey, out: &mut Outbox) {
        let Some(framework) = self.framework(key) else { return };
        let tasks: Vec<(TaskKey, bool)> =
            framework.tasks.iter().map(|(task, row)| (TaskKey(task), is_terminal(row.state()))).collect();
        for (task, ended) in tasks {
            if !ended {
                self.end_task(key, task, TaskState::TaskKilled, Reason::FrameworkRemoved, out);
            }
            self.retire_task(key, task);
        }
    }

    fn complete_framework(&mut self, key: FrameworkKey, out: &mut Outbox) {
        self.announce_framework_removed(key, out);
        self.snapshot = None;
        let Some(row) = self.frameworks.remove(key.0) else { return };
        let mut framework = Arc::unwrap_or_clone(row);
        framework.counts.over_time = Some(self.allocation.allocator().over_time(&framework.id));
        self.allocation.remove_framework(&framework.id);
        self.framework_ids.remove(&framework.id);
        if let Some(book) = self.framework_books.remove(&key) {
            book.failover.into_iter().chain(book.heartbeat).for_each(|token| self.timers.cancel(token));
        }
        framework.connection = Connection::Disconnected;
        framework.active = false;
        framework.unregistered = Some(self.now);
        self.keep_completed(framework.id.clone(), Arc::new(framework));
    }

    /// Remembers a framework that has ended; the oldest is forgotten.
    pub(crate) fn keep_completed(&mut self, id: FrameworkId, framework: Arc<crate::state::Framework>) {
        self.snapshot = None;
        let row = self.completed.insert(framework);
        self.completed_ids.insert(id, row);
        while self.completed.len() > self.config.max_completed_frameworks {
            if let Some(oldest) = self.completed.pop_first() {
                self.completed_ids.remove(&oldest.id);
            }
        }
    }
}
