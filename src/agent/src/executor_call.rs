//! Handles the calls of the v1 executor API other than SUBSCRIBE: UPDATE, MESSAGE, HEARTBEAT (docs/mesos/executors.md,
//! rows 7 to 15).
//!
//! Also handles the messages that v0 executors send instead of them, and messages from a framework to its executor.

use base::{Pid, TaskId, Time};
use cores::{ErrorKind, RequestId, StreamId};
use protos::mesos::internal::{ExecutorToFrameworkMessage, FrameworkToExecutorMessage, StatusUpdateMessage};
use protos::mesos::{self as pb, executor as api};

use crate::agent::{Agent, AgentState};
use crate::output::{Done, Outbox};
use crate::state::{ExecutorLink, ExecutorState, FrameworkState, Proof};

impl Agent {
    /// Handles a call of an executor that is not SUBSCRIBE.
    pub(crate) fn executor_call(
        &mut self,
        request: RequestId,
        call: api::Call,
        proof: &Proof,
        now: Time,
        out: &mut Outbox,
    ) {
        use api::call::Type;
        let kind = call.r#type();
        if kind == Type::Heartbeat {
            return self.respond(request, Ok(Done::Accepted), out);
        }
        if self.state == AgentState::Recovering {
            return self.reject(request, ErrorKind::Unavailable, "Agent has not finished recovery", out);
        }
        let (framework, executor) = (call.framework_id.value, call.executor_id.value);
        if !self.frameworks.contains(framework.as_str()) {
            return self.reject(request, ErrorKind::Invalid, "Framework cannot be found", out);
        }
        if self.executor(&framework, &executor).is_none() {
            return self.reject(request, ErrorKind::Invalid, "Executor cannot be found", out);
        }
        if let Err(refusal) = self.check_proof(&framework, &executor, proof, out) {
            return self.respond(request, Err(refusal), out);
        }
        let Some(target) = self.executor(&framework, &executor) else { return };
        if target.state == ExecutorState::Registering {
            return self.reject(request, ErrorKind::Forbidden, "Executor is not subscribed", out);
        }
        match (kind, call.update, call.message) {
            (Type::Update, Some(update), _) => {
                let update = self.update_of_call(&framework, &executor, update.status, now);
                self.executor_update(update, now, out);
            }
            (Type::Message, _, Some(message)) => {
                let message = ExecutorToFrameworkMessage {
                    slave_id: self.slave_id(),
                    framework_id: pb::FrameworkId { value: framework },
                    executor_id: pb::ExecutorId { value: executor },
                    data: message.data,
                };
                self.executor_to_framework(message, out);
            }
            _ => return self.reject(request, ErrorKind::Unimplemented, "", out),
        }
        self.respond(request, Ok(Done::Accepted), out);
    }

    /// Handles a status update of a v0 executor. An executor may report only on its own tasks.
    pub(crate) fn status_update_message(
        &mut self,
        from: &Pid,
        message: StatusUpdateMessage,
        now: Time,
        out: &mut Outbox,
    ) {
        let update = message.update;
        let framework = self.frameworks.get(update.framework_id.value.as_str());
        let named = update.executor_id.as_ref().map(|id| id.value.as_str());
        let named = named.and_then(|id| framework?.executors.get(id));
        let with_task = || framework?.executor_of(&TaskId::of(&update.status.task_id.value).ok()?);
        if let Some(executor) = named.or_else(with_task).filter(|executor| !executor.is_at(from)) {
            let (id, framework) = (&executor.id, &update.framework_id.value);
            self.counters.invalid_status_updates += 1;
            return out.warn(format!(
                "Dropped a status update of {from}, which is not the process of executor {id} of framework {framework}"
            ));
        }
        self.executor_update(update, now, out);
    }

    /// Handles a message of a v0 executor to its framework.
    pub(crate) fn executor_to_framework_message(
        &mut self,
        from: &Pid,
        message: ExecutorToFrameworkMessage,
        out: &mut Outbox,
    ) {
        let executor = self.executor(&message.framework_id.value, &message.executor_id.value);
        if executor.is_some_and(|executor| !executor.is_at(from)) {
            self.counters.invalid_framework_messages += 1;
            return out.warn(format!(
                "Dropped a message of {from}, which is not the process of executor {}",
                message.executor_id.value
            ));
        }
        self.executor_to_framework(message, out);
    }

    /// Forwards an executor's message to its framework: to the driver, or through the master.
    pub(crate) fn executor_to_framework(&mut self, message: ExecutorToFrameworkMessage, out: &mut Outbox) {
        let framework = self.frameworks.get(message.framework_id.value.as_str());
        let Some(framework) = framework.filter(|framework| framework.state == FrameworkState::Running) else {
            self.counters.invalid_framework_messages += 1;
            return;
        };
        if self.state != AgentState::Running {
            self.counters.invalid_framework_messages += 1;
            return;
        }
        let pid = framework.pid.clone();
        self.counters.valid_framework_messages += 1;
        match &pid {
            Some(pid) => self.send(pid, message, out),
            None => self.send_to_master(message, out),
        }
    }

    /// Handles FrameworkToExecutorMessage: bytes for an executor, from its framework's driver or from the master.
    pub(crate) fn framework_to_executor_message(
        &mut self,
        from: &Pid,
        message: FrameworkToExecutorMessage,
        out: &mut Outbox,
    ) {
        let framework = self.frameworks.get(message.framework_id.value.as_str());
        let driver = framework.and_then(|framework| framework.pid.as_ref());
        if self.master.as_ref() != Some(from) && driver != Some(from) {
            self.counters.invalid_framework_messages += 1;
            return out.warn(format!(
                "Dropped a message of {from}, which is neither the master nor the driver of framework {}",
                message.framework_id.value
            ));
        }
        self.framework_to_executor(message, out);
    }

    /// Forwards a framework's message to an executor.
    fn framework_to_executor(&mut self, message: FrameworkToExecutorMessage, out: &mut Outbox) {
        let (framework, executor) = (&message.framework_id.value, &message.executor_id.value);
        let state = self.may_report(framework, executor);
        if self.state != AgentState::Running || state != Some(ExecutorState::Running) {
            self.counters.invalid_framework_messages += 1;
            return;
        }
        self.counters.valid_framework_messages += 1;
        let Some(target) = self.executor(framework, executor).cloned() else { return };
        match &target.link {
            ExecutorLink::Pid(pid) => self.send(pid, message, out),
            _ => {
                let event = api::Event {
                    r#type: Some(api::event::Type::Message as i32),
                    message: Some(api::event::Message { data: message.data }),
                    ..api::Event::default()
                };
                self.event(&target.link, event, out);
            }
        }
    }

    /// Handles the close of an event stream. The executor keeps running and may subscribe again.
    pub(crate) fn executor_stream_closed(&mut self, stream: StreamId) {
        self.frameworks.close_stream(stream);
    }
}
