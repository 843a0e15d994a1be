//! Handles RegisterExecutorMessage and ReregisterExecutorMessage, which v0 executor drivers send.
//!
//! Executors that use HTTP are handled in `subscribe_executor.rs`.

use std::sync::Arc;

use base::{Pid, Time};
use protos::mesos::internal::{
    ExecutorRegisteredMessage, ExecutorReregisteredMessage, RegisterExecutorMessage, ReregisterExecutorMessage,
    ShutdownExecutorMessage,
};
use protos::mesos::{self as pb};

use crate::agent::{Agent, AgentState};
use crate::disk::paths;
use crate::output::{Outbox, Output};
use crate::state::{DeferredRegistration, ExecutorLink, ExecutorState, FrameworkState};

impl Agent {
    /// Handles the registration of a new driver: sends it its ids and tasks, or shuts it down.
    pub(crate) fn register_executor(
        &mut self,
        from: &Pid,
        message: &RegisterExecutorMessage,
        now: Time,
        out: &mut Outbox,
    ) {
        let (framework, executor) = (&message.framework_id.value, &message.executor_id.value);
        let is_builtin = self.executor(framework, executor).is_some_and(|executor| executor.is_builtin());
        let wanted = self.may_report(framework, executor);
        let wanted = wanted.filter(|state| *state == ExecutorState::Registering && !is_builtin);
        if wanted.is_none() || self.state == AgentState::Recovering {
            return self.send(from, ShutdownExecutorMessage::default(), out);
        }
        if self.executor(framework, executor).is_some_and(|target| target.pid.is_none()) {
            let deferred = DeferredRegistration::Register(from.clone(), message.clone());
            return self.defer_until_started(framework, executor, deferred, out);
        }
        let Some(known) = self.frameworks.get(framework.as_str()).cloned() else { return };
        let Some(target) = self.executor_mut(framework, executor) else { return };
        target.link = ExecutorLink::Pid(from.clone());
        target.state = ExecutorState::Running;
        let (timer, empty) = (target.timer.take(), target.queued.is_empty() && !target.was_given_a_task);
        let (info, run) = (target.info.clone(), Arc::clone(&target.run));
        self.timers.cancel(timer);
        out.outputs.push(Output::Link { to: from.clone() });
        if empty {
            return self.shut_down_executor(&known.id, executor, now, out);
        }
        if known.checkpoints() {
            self.checkpoint(paths::below(&run, "pids/libprocess.pid"), from.to_string().into_bytes(), out);
        }
        let registered = ExecutorRegisteredMessage {
            executor_info: pb::ExecutorInfo::clone(&info),
            framework_id: message.framework_id.clone(),
            framework_info: pb::FrameworkInfo::clone(&known.info),
            slave_id: self.slave_id(),
            slave_info: pb::SlaveInfo::clone(&self.info),
        };
        self.send(from, registered, out);
        self.deliver(&known.id, executor, out);
    }

    /// Handles the reregistration of a driver that registered with the previous agent process.
    pub(crate) fn reregister_executor(
        &mut self,
        from: &Pid,
        message: ReregisterExecutorMessage,
        now: Time,
        out: &mut Outbox,
    ) {
        let (framework, executor) = (message.framework_id.value, message.executor_id.value);
        if !matches!(self.may_report(&framework, &executor), Some(ExecutorState::Registering | ExecutorState::Running))
        {
            return self.send(from, ShutdownExecutorMessage::default(), out);
        }
        let Some(known) = self.frameworks.get(framework.as_str()).cloned() else { return };
        let Some(target) = self.executor_mut(&framework, &executor) else { return };
        if !matches!(target.link, ExecutorLink::None) && !target.is_at(from) {
            return out.warn(format!(
                "Dropped a message of {from}, which is not the process of executor {executor} of framework {framework}"
            ));
        }
        target.link = ExecutorLink::Pid(from.clone());
        target.state = ExecutorState::Running;
        let (timer, run) = (target.timer.take(), Arc::clone(&target.run));
        self.timers.cancel(timer);
        out.outputs.push(Output::Link { to: from.clone() });
        if known.checkpoints() {
            self.checkpoint(paths::below(&run, "pids/libprocess.pid"), from.to_string().into_bytes(), out);
        }
        let answer =
            ExecutorReregisteredMessage { slave_id: self.slave_id(), slave_info: pb::SlaveInfo::clone(&self.info) };
        self.send(from, answer, out);
        for update in message.updates {
            self.executor_update(update, now, out);
        }
        self.drop_lost_tasks(&known.id, &executor, &message.tasks, now, out);
        self.deliver(&known.id, &executor, out);
        self.finish_recovery_if_reconnected(now, out);
    }

    /// Returns the state of an executor; `None` if it is unknown, or the agent or its framework is being shut down.
    pub(crate) fn may_report(&self, framework: &str, executor: &str) -> Option<ExecutorState> {
        let framework = self.frameworks.get(framework)?;
        let executor = framework.executors.get(executor)?;
        let ending = self.state == AgentState::Terminating || framework.state == FrameworkState::Terminating;
        (!ending).then_some(executor.state)
    }
}
