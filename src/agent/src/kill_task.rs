//! Handles KillTaskMessage.

use base::{FrameworkId, TaskId, Time};
use protos::mesos::internal::KillTaskMessage;
use protos::mesos::{self as pb, TaskState, executor as api, task_status::Reason};

use crate::agent::{Agent, AgentState};
use crate::output::Outbox;
use crate::state::{Executor, ExecutorLink, FrameworkState, GeneratedStatus, Queued, loss_state};

impl Agent {
    /// Handles KillTaskMessage. A task that waits for its executor is killed at once, with its group; a launched one is
    /// killed by its executor.
    pub(crate) fn kill_task(&mut self, message: KillTaskMessage, now: Time, out: &mut Outbox) {
        // Kills are also accepted while the agent reregisters: the master has admitted it already, and sends the
        // message only once.
        if matches!(self.state, AgentState::Recovering | AgentState::Terminating) {
            out.warn(format!(
                "Dropped the kill of task {}: the agent is recovering or terminating",
                message.task_id.value
            ));
            return;
        }
        let Ok(framework) = FrameworkId::new(&message.framework_id.value) else { return };
        let Some(known) = self.frameworks.get(framework.as_str()).cloned() else {
            let task = &message.task_id.value;
            out.warn(format!("Dropped the kill of task {task}: framework {framework} is unknown"));
            return;
        };
        if known.state == FrameworkState::Terminating {
            return;
        }
        if self.kill_waiting(&framework, &message.task_id.value, now, out) {
            return;
        }
        let task = TaskId::new(&message.task_id.value);
        let executor = task.as_ref().ok().and_then(|task| known.executor_of(task)).cloned();
        let (Ok(task), Some(executor)) = (task, executor) else {
            let generated = GeneratedStatus {
                state: loss_state(&known.info, TaskState::TaskDropped),
                reason: Reason::ExecutorTerminated,
                message: "Cannot find executor".to_owned(),
            };
            return self.report(&framework, None, &message.task_id.value, &generated, now, out);
        };
        if executor.queued_task(&task).is_some() {
            self.kill_queued(&framework, &executor, &task, now, out);
        } else if executor.launched.contains_key(&task) {
            self.kill_launched(&executor, message, out);
        }
    }

    /// Kills a task that was not yet sent to its executor, and the rest of its group.
    pub(crate) fn kill_queued(
        &mut self,
        framework: &FrameworkId,
        executor: &Executor,
        task: &TaskId,
        now: Time,
        out: &mut Outbox,
    ) {
        let holds = |queued: &&Queued| queued.tasks().iter().any(|t| t.task_id.value == task.as_str());
        let Some(queued) = executor.queued.iter().find(holds) else { return };
        let message = match queued {
            Queued::Task(_) => "Killed before delivery to the executor",
            Queued::Group(_) => "A task within the task group was killed before delivery to the executor",
        };
        let generated = GeneratedStatus {
            state: TaskState::TaskKilled,
            reason: Reason::TaskKilledDuringLaunch,
            message: message.to_owned(),
        };
        for task in queued.tasks() {
            self.report(framework, Some(&executor.id), &task.task_id.value, &generated, now, out);
        }
    }

    /// Tells an executor to kill one of its tasks.
    pub(crate) fn kill_launched(&self, executor: &Executor, message: KillTaskMessage, out: &mut Outbox) {
        match &executor.link {
            ExecutorLink::Pid(pid) => self.send(pid, message, out),
            link => self.event(link, kill_event(message.task_id, message.kill_policy), out),
        }
    }
}

fn kill_event(task_id: pb::TaskId, kill_policy: Option<pb::KillPolicy>) -> api::Event {
    api::Event {
        r#type: Some(api::event::Type::Kill as i32),
        kill: Some(api::event::Kill { task_id, kill_policy }),
        ..api::Event::default()
    }
}
