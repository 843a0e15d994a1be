//! Removes executors and frameworks that have ended: they move to the history, and their directories become garbage.

use base::{ExecutorId, FrameworkId, Time};

use crate::agent::{Agent, AgentState};
use crate::disk::{Directory, paths};
use crate::output::Outbox;

impl Agent {
    /// Removes an executor that has ended, and launches the tasks that waited for that.
    pub(crate) fn remove_executor(
        &mut self,
        framework: &FrameworkId,
        executor: &ExecutorId,
        now: Time,
        out: &mut Outbox,
    ) {
        let limit = self.config.max_completed_executors_per_framework;
        let Some(gone) = self.frameworks.complete_executor(framework.as_str(), executor.as_str(), limit) else {
            return;
        };
        if self.frameworks.get(framework.as_str()).is_some_and(|known| known.checkpoints()) {
            self.checkpoint(paths::below(&gone.run, "executor.sentinel"), Vec::new(), out);
        }
        self.discard(Directory::Executor(framework.clone(), executor.clone()), now);
        self.launch_waiting(framework, executor, now, out);
        self.remove_framework_if_idle(framework, now, out);
    }

    /// Removes a framework that has no executors and no pending tasks.
    pub(crate) fn remove_framework_if_idle(&mut self, framework: &FrameworkId, now: Time, out: &mut Outbox) {
        if self.frameworks.remove_if_idle(framework) {
            self.discard(Directory::Framework(framework.clone()), now);
        }
        self.finish_draining_if_empty(out);
        if self.state == AgentState::Terminating && self.frameworks.is_empty() {
            self.finish_shut_down(out);
        }
    }
}
