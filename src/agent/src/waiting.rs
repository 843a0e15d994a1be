//! Command tasks that reuse the id of an earlier task whose executor has not ended yet.
//!
//! The framework has received the earlier task's last update, so it may use the id again at once. The new task waits
//! for the end of the earlier executor, and may be killed meanwhile.

use base::{ExecutorId, FrameworkId, Text, Time};
use protos::mesos::{self as pb, TaskState, task_status::Reason};

use crate::agent::{Agent, AgentState};
use crate::output::Outbox;
use crate::state::{ExecutorState, Framework, FrameworkState, GeneratedStatus, Launch};

/// Maximum number of tasks of one framework that wait for an earlier executor.
const MAX_WAITING: usize = 1000;

impl Framework {
    /// Returns whether a command task may wait for the executor with its id: an executor of an earlier command task
    /// without unacknowledged updates.
    pub(crate) fn may_wait(&self, launch: &Launch) -> bool {
        let id = launch.executor.executor_id.value.as_str();
        let earlier = self.executors.get(id);
        let over = earlier.is_some_and(|known| known.generated_for_command_task && !known.has_incomplete_tasks());
        let waits = self.waiting.iter().any(|waiting| waiting.executor.executor_id.value == id);
        launch.generated_for_command_task && over && !waits && self.waiting.len() < MAX_WAITING
    }

    /// Returns the tasks that wait for an earlier executor.
    pub(crate) fn waiting_tasks(&self) -> impl Iterator<Item = &pb::TaskInfo> {
        self.waiting.iter().flat_map(|launch| launch.queued.tasks()).map(|task| &**task)
    }
}

impl Agent {
    /// Stores a launch until the executor with the task's id has ended, and shuts that executor down if it runs.
    pub(crate) fn wait_for_executor(&mut self, framework: &FrameworkId, launch: Launch, now: Time, out: &mut Outbox) {
        let executor = launch.executor.executor_id.value.clone();
        let Some(known) = self.framework_mut(framework.as_str()) else { return };
        known.waiting.push(launch);
        if self.executor(framework.as_str(), &executor).is_some_and(|known| known.state == ExecutorState::Running) {
            self.shut_down_executor(framework, &executor, now, out);
        }
    }

    /// Launches the task that waited for an executor that has ended.
    pub(crate) fn launch_waiting(
        &mut self,
        framework: &FrameworkId,
        executor: &ExecutorId,
        now: Time,
        out: &mut Outbox,
    ) {
        let wanted = |launch: &Launch| launch.executor.executor_id.value == executor.as_str();
        let Some(known) = self.frameworks.get(framework.as_str()) else { return };
        if known.state != FrameworkState::Running || self.state == AgentState::Terminating {
            return;
        }
        let Some(index) = known.waiting.iter().position(wanted) else { return };
        if let Some(known) = self.framework_mut(framework.as_str()) {
            let launch = known.waiting.remove(index);
            self.launch_executor(framework, launch, now, out);
        }
    }

    /// Kills a task that waits for an earlier executor. Returns whether there was one with this id.
    pub(crate) fn kill_waiting(&mut self, framework: &FrameworkId, task: &str, now: Time, out: &mut Outbox) -> bool {
        let Some(known) = self.framework_mut(framework.as_str()) else { return false };
        let before = known.waiting.len();
        known.waiting.retain(|launch| launch.queued.tasks().iter().all(|waiting| waiting.task_id.value != task));
        if known.waiting.len() == before {
            return false;
        }
        let generated = GeneratedStatus {
            state: TaskState::TaskKilled,
            reason: Reason::TaskKilledDuringLaunch,
            message: "Killed before its executor was launched".to_owned(),
        };
        self.report(framework, None, task, &generated, now, out);
        true
    }

    /// Kills all tasks that wait for an earlier executor.
    pub(crate) fn kill_all_waiting(&mut self, now: Time, out: &mut Outbox) {
        let tasks = |framework: &Framework| -> Vec<Text> {
            framework.waiting_tasks().map(|task| task.task_id.value.clone()).collect()
        };
        let waiting: Vec<_> = self.frameworks.values().map(|known| (known.id.clone(), tasks(known))).collect();
        for (framework, tasks) in waiting {
            for task in tasks {
                self.kill_waiting(&framework, &task, now, out);
            }
        }
    }
}
