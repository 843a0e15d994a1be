//! ShutdownExecutorMessage, and the two limits of time that end an executor: registration and shutdown.

use base::{ExecutorId, FrameworkId, Time, format_duration};
use protos::mesos::internal::ShutdownExecutorMessage;
use protos::mesos::{self as pb, TaskState, task_status::Reason};

use crate::agent::{Agent, AgentState};
use crate::environment::grace_period;
use crate::executor_events::shutdown_event;
use crate::output::{Outbox, Output};
use crate::state::{ContainerName, ExecutorLink, ExecutorState, Verdict};
use crate::timers::Timer;

impl Agent {
    /// The master shuts an executor down.
    pub(crate) fn shutdown_executor_message(&mut self, message: &ShutdownExecutorMessage, now: Time, out: &mut Outbox) {
        if !matches!(self.state, AgentState::Running | AgentState::Disconnected) {
            return;
        }
        let (Some(framework), Some(executor)) = (&message.framework_id, &message.executor_id) else { return };
        if let Ok(framework) = FrameworkId::new(&framework.value) {
            self.shut_down_executor(&framework, &executor.value, now, out);
        }
    }

    /// Asks an executor to end, and destroys its container if it has not done so after its grace period.
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

    /// The grace period is over.
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
        if !was_started && self.trouble.is_some() && self.state == AgentState::Terminating {
            // Its launch waits for a checkpoint that the disk refuses.
            self.container_exited(container, None, now, out);
        }
    }

    /// An executor that was started has not reported in time.
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
        known.ending.get_or_insert(Verdict {
            state: TaskState::TaskFailed,
            reason: Reason::ExecutorRegistrationTimeout,
            message: format!("Executor did not register within {limit}"),
        });
        out.outputs.push(Output::Destroy { container: container.clone() });
    }
}
