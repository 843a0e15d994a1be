//! Handles reports about executors' containers: started, not started, limited, exited. The tasks of an ended container
//! end with it.

use base::{ExecutorId, FrameworkId, TaskId, Text, Time};
use cores::ErrorKind;
use protos::mesos::{self as pb, TaskState, task_status::Reason};

use crate::agent::Agent;
use crate::config::RecoverMode;
use crate::disk::paths;
use crate::output::{Outbox, Output};
use crate::state::{
    ContainerName, DeferredRegistration, ExecutorLink, ExecutorState, FrameworkState, GeneratedStatus, Queued,
    loss_state,
};

impl Agent {
    /// Handles the start of a container: checkpoints its pid, and handles the message that its executor may have sent
    /// already.
    pub(crate) fn container_started(&mut self, container: &ContainerName, pid: u32, now: Time, out: &mut Outbox) {
        if self.nested_started(container, out) {
            return;
        }
        let Some(executor) = self.frameworks.executor_in_mut(container) else {
            // The executor of the container has been removed.
            out.outputs.push(Output::Destroy { container: container.clone() });
            return;
        };
        executor.pid = Some(pid);
        let (deferred, file) = (executor.deferred.take(), paths::below(&executor.run, "pids/forked.pid"));
        let framework = executor.framework_id.clone();
        if self.frameworks.get(framework.as_str()).is_some_and(|known| known.checkpoints()) {
            self.checkpoint(file, pid.to_string().into_bytes(), out);
        }
        self.handle_deferred(deferred, now, out);
    }

    /// Records the container networks of an executor.
    pub(crate) fn container_networks(&mut self, container: &ContainerName, networks: Vec<pb::NetworkInfo>) {
        if let Some(executor) = self.frameworks.executor_in_mut(container) {
            executor.networks = networks;
        }
    }

    /// Records the traffic class of an executor's container.
    pub(crate) fn container_class(&mut self, container: &ContainerName, class: u32) {
        if let Some(executor) = self.frameworks.executor_in_mut(container) {
            executor.class = Some(class);
        }
    }

    /// Handles a failed start of a container: its tasks fail.
    pub(crate) fn container_start_failed(&mut self, container: &ContainerName, why: &str, now: Time, out: &mut Outbox) {
        self.counters.container_launch_errors += 1;
        if self.nested_start_failed(container, why, out) {
            return;
        }
        if let Some(executor) = self.frameworks.executor_in_mut(container) {
            executor.ending.get_or_insert(GeneratedStatus {
                state: TaskState::TaskFailed,
                reason: Reason::ContainerLaunchFailed,
                message: format!("Failed to launch container: {why}"),
            });
        }
        self.container_exited(container, None, now, out);
    }

    /// Records that a container has exceeded a limit; the shell is destroying it.
    pub(crate) fn container_limited(
        &mut self,
        container: &ContainerName,
        reason: Reason,
        message: String,
        resources: &[pb::Resource],
    ) {
        if self.nested_limited(container, reason, &message, resources) {
            return;
        }
        if let Some(executor) = self.frameworks.executor_in_mut(container) {
            executor.ending = Some(GeneratedStatus { state: TaskState::TaskFailed, reason, message });
            executor.limitation = resources.to_vec();
        }
    }

    /// Handles a running container to which the resources of new tasks could not be added: it is destroyed (AGT-42).
    pub(crate) fn container_update_failed(&mut self, container: &ContainerName, why: &str, out: &mut Outbox) {
        let message = format!("Failed to update the container: {why}");
        self.preempt(container, Reason::ContainerUpdateFailed, message, out);
    }

    /// Destroys an executor's container; its tasks become TASK_GONE. Returns whether there was such a container.
    pub(crate) fn preempt(
        &mut self,
        container: &ContainerName,
        reason: Reason,
        message: String,
        out: &mut Outbox,
    ) -> bool {
        let known = self.frameworks.executor_in(container).map(|executor| &executor.framework_id);
        let Some(known) = known.and_then(|id| self.frameworks.get(id.as_str())) else { return false };
        let state = loss_state(&known.info, TaskState::TaskGone);
        let Some(executor) = self.frameworks.executor_in_mut(container) else { return false };
        executor.ending.get_or_insert(GeneratedStatus { state, reason, message });
        executor.state = ExecutorState::Terminating;
        out.outputs.push(Output::Destroy { container: container.clone() });
        true
    }

    /// Handles the end of a container. The tasks of its executor that have not ended fail.
    pub(crate) fn container_exited(
        &mut self,
        container: &ContainerName,
        status: Option<i32>,
        now: Time,
        out: &mut Outbox,
    ) {
        if self.nested_exited(container, status, out) {
            // A session uses its parent's sandbox, and has none of its own.
            let sandbox = self.nested.get(container).map(|nested| nested.sandbox.clone()).unwrap_or_default();
            self.discard_sandbox(&sandbox, now);
            if self.config.recover == RecoverMode::Cleanup && self.frameworks.is_empty() {
                self.finish_shut_down(out);
            }
            return;
        }
        let Some((framework, executor)) = self.frameworks.end_container(container) else {
            out.outputs.push(Output::Forget { container: container.clone() });
            return;
        };
        self.forget_nested(container, out);
        let Some(state) = self.frameworks.get(framework.as_str()).map(|known| known.state) else { return };
        let Some(target) = self.executor_mut(framework.as_str(), executor.as_str()) else { return };
        target.state = ExecutorState::Terminated;
        target.status = status;
        let (link, timer) = (std::mem::replace(&mut target.link, ExecutorLink::None), target.timer.take());
        let (generated_for_command_task, ending) = (target.generated_for_command_task, target.ending.clone());
        let deferred = target.deferred.take();
        self.counters.executors_terminated += 1;
        self.timers.cancel(timer);
        if let Some(DeferredRegistration::Subscribe(_, request, ..)) = deferred {
            self.reject(request, ErrorKind::Unavailable, "The executor's container has ended", out);
        }
        if let ExecutorLink::Stream(stream) = link {
            self.frameworks.close_stream(stream);
            out.outputs.push(Output::CloseStream { stream });
        }
        if state == FrameworkState::Running {
            let generated = ending.unwrap_or_else(|| GeneratedStatus {
                state: TaskState::TaskFailed,
                reason: Reason::ExecutorTerminated,
                message: ended_message(status),
            });
            self.end_tasks(&framework, &executor, &generated, now, out);
        }
        if !generated_for_command_task {
            self.exited_executor(&framework, executor.as_str(), status.unwrap_or(-1), out);
        }
        let incomplete = self
            .executor(framework.as_str(), executor.as_str())
            .is_some_and(|executor| executor.has_incomplete_tasks());
        if state == FrameworkState::Terminating || !incomplete {
            self.remove_executor(&framework, &executor, now, out);
        }
        self.finish_recovery_if_reconnected(now, out);
    }

    /// Ends all tasks of an executor that have not ended yet.
    fn end_tasks(
        &mut self,
        framework: &FrameworkId,
        id: &ExecutorId,
        generated: &GeneratedStatus,
        now: Time,
        out: &mut Outbox,
    ) {
        let Some(executor) = self.executor(framework.as_str(), id.as_str()) else { return };
        let queued = executor.queued.iter().flat_map(Queued::tasks).map(|task| task.task_id.value.clone());
        let living: Vec<Text> = executor.launched.keys().map(|task: &TaskId| task.into()).chain(queued).collect();
        for task in living {
            self.report(framework, Some(id), &task, generated, now, out);
        }
    }
}

/// Returns the default message about an executor's end, from its wait status.
fn ended_message(status: Option<i32>) -> String {
    match status {
        None => "Abnormal executor termination: unknown container".to_owned(),
        Some(status) if status & 0x7f == 0 => format!("Executor exited with status {}", (status >> 8) & 0xff),
        Some(status) => format!("Executor terminated by signal {}", status & 0x7f),
    }
}
