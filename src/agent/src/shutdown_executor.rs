//! Handles ShutdownExecutorMessage, and the timeouts that end an executor: registration and shutdown.

use base::{ExecutorId, FrameworkId, Time, format_duration};
use protos::mesos::internal::ShutdownExecutorMessage;
use protos::mesos::{self as pb, TaskState, task_status::Reason};

use crate::agent::{Agent, AgentState};
use crate::environment::grace_period;
use crate::executor_events::shutdown_event;
use crate::output::{Outbox, Output};
use crate::state::{ContainerName, ExecutorLink, ExecutorState, GeneratedStatus};
use crate::timers::Timer;

impl Agent {
    /// Handles ShutdownExecutorMessage: the master shuts an executor down.
    pub(crate) fn shutdown_executor_message(&mut self, message: &ShutdownExecutorMessage, now: Time, out: &mut Outbox) {
        if !matches!(self.state, AgentState::Running | AgentState::Disconnected) {
            return;
        }
        let (Some(framework), Some(executor)) = (&message.framework_id, &message.executor_id) else { return };
        if let Ok(framework) = FrameworkId::new(&framework.value) {
            self.shut_down_executor(&framework, &executor.value, now, out);
        }
    }

    /// Asks an executor to shut down. Its container is destroyed if it has not ended after its grace period.
    pub(crate) fn shut_down_executor(&mut self, framework: &FrameworkId, executor: &str, now: Time, out: &mut Outbox) {
        let Some(known) = self.executor(framework.as_str(), executor).cloned() else { return };
        if matches!(known.state, ExecutorState::Terminating | ExecutorState::Terminated) {
            return;
        }
        match &known.link {
            ExecutorLink::Pid(pid) => {
                let message = ShutdownExecutorMessage {
                    executor_id: Some(pb::ExecutorId { value: executor.into() }),
                    framework_id: Some(pb::FrameworkId { value: framework.into() }),
                };
                self.send(pid, message, out);
            }
            link => self.event(link, shutdown_event(), out),
        }
        self.timers.cancel(known.timer);
        let timer = Timer::ExecutorShutdown {
            framework: framework.clone(),
            executor: known.id.clone(),
            container: known.container.clone(),
        };
        let timer = self.timers.set(now + grace_period(&self.config, &known.info), timer);
        if let Some(known) = self.executor_mut(framework.as_str(), executor) {
            known.state = ExecutorState::Terminating;
            known.timer = Some(timer);
        }
    }

    /// Handles the end of an executor's grace period: destroys its container.
    pub(crate) fn executor_shutdown_timed_out(
        &mut self,
        framework: &FrameworkId,
        executor: &ExecutorId,
        container: &ContainerName,
        now: Time,
        out: &mut Outbox,
    ) {
        let known = self.executor(framework.as_str(), executor.as_str());
        let Some(known) = known.filter(|known| known.container == *container) else { return };
        if known.state != ExecutorState::Terminating {
            return;
        }
        let was_started = known.pid.is_some();
        out.outputs.push(Output::Destroy { container: container.clone() });
        if !was_started && self.checkpoint_failure.is_some() && self.state == AgentState::Terminating {
            // The launch still waits for a checkpoint that cannot be written.
            self.container_exited(container, None, now, out);
        }
    }

    /// Handles an executor that has not registered in time: destroys its container.
    pub(crate) fn executor_registration_timed_out(
        &mut self,
        framework: &FrameworkId,
        executor: &ExecutorId,
        container: &ContainerName,
        out: &mut Outbox,
    ) {
        let limit = format_duration(self.config.executor_registration_timeout);
        let Some(known) = self.executor_mut(framework.as_str(), executor.as_str()) else { return };
        if known.container != *container || known.state != ExecutorState::Registering {
            return;
        }
        known.state = ExecutorState::Terminating;
        known.timer = None;
        known.ending.get_or_insert(GeneratedStatus {
            state: TaskState::TaskFailed,
            reason: Reason::ExecutorRegistrationTimeout,
            message: format!("Executor did not register within {limit}"),
        });
        out.outputs.push(Output::Destroy { container: container.clone() });
    }
}
