//! Finds tasks that an agent drops because a master has shut their framework down: no scheduler waits for their
//! updates.
//!
//! The agent is compared before and after the message, so a message that the agent ignores drops nothing.

use agent::{Agent, FrameworkState, Incoming, Input, Queued};
use base::{FrameworkId, Time};

use super::{Note, Observer};

/// A framework that is about to be shut down, with its tasks on the agent.
#[derive(Debug)]
pub(super) struct TasksToDrop {
    framework: FrameworkId,
    tasks: Vec<String>,
}

impl TasksToDrop {
    /// Returns what an input may make an agent drop. Tasks that the agent no longer has are not included.
    pub fn by(input: &Input, agent: &mut Agent) -> Option<TasksToDrop> {
        let Input::Message { message, .. } = input else { return None };
        let Incoming::ShutdownFramework(shutdown) = &**message else { return None };
        let known = agent.snapshot();
        let framework = known.frameworks.get(shutdown.framework_id.value.as_str())?;
        let mut tasks = Vec::new();
        for executor in framework.executors.values() {
            tasks.extend(executor.queued.iter().flat_map(Queued::tasks).map(|task| task.task_id.value.to_string()));
            tasks.extend(executor.launched.keys().chain(executor.terminated.keys()).map(ToString::to_string));
        }
        Some(TasksToDrop { framework: framework.id.clone(), tasks })
    }

    /// Notifies the observer if the agent has dropped the tasks.
    pub fn report(self, number: u32, agent: &mut Agent, observer: &mut impl Observer, now: Time) {
        let known = agent.snapshot();
        if known.frameworks.get(&self.framework).is_some_and(|kept| kept.state == FrameworkState::Running) {
            return;
        }
        let framework = self.framework.as_str();
        for task in &self.tasks {
            observer.noted(&Note::TaskDropped { agent: number, framework, task }, now);
        }
    }
}
