//! The end of executors and frameworks: they become history, and their folders garbage.

use std::sync::Arc;

use base::{ExecutorId, FrameworkId, Time};

use crate::agent::{Agent, AgentState};
use crate::config::MAX_COMPLETED_FRAMEWORKS;
use crate::disk::paths;
use crate::framework::Framework;
use crate::gc::Folder;
use crate::output::Outbox;

impl Agent {
    /// Forgets an executor that has ended.
    pub(crate) fn remove_executor(
        &mut self,
        framework: &FrameworkId,
        executor: &ExecutorId,
        now: Time,
        out: &mut Outbox,
    ) {
        let limit = self.config.max_completed_executors_per_framework;
        let Some(known) = self.framework_mut(framework.as_str()) else { return };
        let Some(gone) = known.executors.remove(executor) else { return };
        let completed = Arc::make_mut(&mut known.completed_executors);
        completed.push_back(Arc::clone(&gone));
        while completed.len() > limit {
            completed.pop_front();
        }
        if known.checkpoints() {
            self.checkpoint(paths::below(&gone.run, "executor.sentinel"), Vec::new(), out);
        }
        self.discard(Folder::Executor(framework.clone(), executor.clone()), now);
        self.launch_waiting(framework, executor, now, out);
        self.remove_framework_if_idle(framework, now, out);
    }

    /// Keeps a framework as history.
    pub(crate) fn remember_framework(&mut self, framework: Arc<Framework>) {
        self.completed_frameworks.push_back(framework);
        while self.completed_frameworks.len() > MAX_COMPLETED_FRAMEWORKS {
            self.completed_frameworks.pop_front();
        }
    }

    /// Forgets a framework that has nothing here any more.
    pub(crate) fn remove_framework_if_idle(&mut self, framework: &FrameworkId, now: Time, out: &mut Outbox) {
        let idle = self.frameworks.get(framework).is_some_and(|framework| framework.executors.is_empty());
        if idle && let Some(gone) = self.frameworks.remove(framework) {
            self.discard(Folder::Framework(framework.clone()), now);
            self.remember_framework(gone);
        }
        self.finish_draining_if_empty(out);
        if self.state == AgentState::Terminating && self.frameworks.is_empty() {
            self.finish_shut_down(out);
        }
    }
}
