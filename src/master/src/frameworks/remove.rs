//! Removal of a framework: by TEARDOWN, after its failover timeout, or by an operator (SCH-45).

use protos::mesos::TaskState;
use protos::mesos::internal::ShutdownFrameworkMessage;
use protos::mesos::task_status::Reason;

use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::state::{Connection, FrameworkKey, TaskKey, is_terminal};

impl Master {
    /// Removes a framework: its executors are shut down, its tasks are completed, and its id is not used again.
    pub(crate) fn remove_framework(&mut self, key: FrameworkKey, out: &mut Outbox) {
        let Some(framework) = self.framework(key) else { return };
        out.info(format!("Removing framework {}", framework.id));
        let framework_id = framework.proto_id();
        self.discard_offers_of(key, out);
        if let Some(framework) = self.frameworks.get(key).filter(|framework| framework.active) {
            self.allocation.deactivate_framework(&framework.id);
        }
        for agent in self.agents.values() {
            out.push(Output::send(&agent.pid, ShutdownFrameworkMessage { framework_id: framework_id.clone() }));
        }
        self.end_tasks(key, out);
        self.remove_executors_of(key);
        self.cut_connection(key, false, out);
        self.complete_framework(key, out);
    }

    /// Completes all tasks of a framework as killed, and notifies only operators.
    fn end_tasks(&mut self, key: FrameworkKey, out: &mut Outbox) {
        let Some(framework) = self.framework(key) else { return };
        let tasks: Vec<(TaskKey, bool)> =
            framework.tasks.iter().map(|(task, row)| (TaskKey(task), is_terminal(row.state()))).collect();
        for (task, ended) in tasks {
            if !ended {
                self.end_task(key, task, TaskState::TaskKilled, Reason::FrameworkRemoved, out);
            }
            self.complete_task(key, task);
        }
    }

    fn complete_framework(&mut self, key: FrameworkKey, out: &mut Outbox) {
        self.announce_framework_removed(key, out);
        let Some(mut framework) = self.frameworks.remove(key, &mut self.timers) else { return };
        framework.counts.over_time = Some(self.allocation.allocator().over_time(&framework.id));
        self.allocation.remove_framework(&framework.id);
        framework.connection = Connection::Disconnected;
        framework.active = false;
        framework.unregistered = Some(self.now);
        self.frameworks.complete(framework);
    }
}
