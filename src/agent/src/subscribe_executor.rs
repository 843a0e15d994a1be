//! Handles the SUBSCRIBE call of the v1 executor API (docs/mesos/executors.md).
//!
//! The other calls are handled in `executor_call.rs`.

use std::sync::Arc;

use base::{FrameworkId, Time};
use cores::{ErrorKind, RequestId, StreamId};
use protos::mesos::internal::StatusUpdate;
use protos::mesos::{self as pb, TaskState, executor as api, task_status::Reason};

use crate::agent::{Agent, AgentState};
use crate::disk::paths;
use crate::executor_events::shutdown_event;
use crate::output::{Done, Outbox, Output};
use crate::state::{
    DeferredRegistration, Executor, ExecutorLink, ExecutorState, FrameworkState, GeneratedStatus, Proof, loss_state,
};

impl Agent {
    /// Handles a SUBSCRIBE call: opens the executor's event stream.
    pub(crate) fn subscribe_executor(
        &mut self,
        stream: StreamId,
        request: RequestId,
        call: api::Call,
        proof: Proof,
        now: Time,
        out: &mut Outbox,
    ) {
        let (framework, executor) = (call.framework_id.value.clone(), call.executor_id.value.clone());
        let Some(known) = self.frameworks.get(framework.as_str()) else {
            return self.reject(request, ErrorKind::Invalid, "Framework cannot be found", out);
        };
        if !known.executors.contains_key(executor.as_str()) {
            return self.reject(request, ErrorKind::Invalid, "Executor cannot be found", out);
        }
        if let Err(refusal) = self.check_proof(&framework, &executor, &proof, out) {
            return self.respond(request, Err(refusal), out);
        }
        let Some(known) = self.frameworks.get(framework.as_str()) else { return };
        let Some(target) = known.executors.get(executor.as_str()) else { return };
        if target.has_own_stream() && proof != Proof::Connection {
            let why = format!("Executor '{executor}' is subscribed over the connection that the agent started it with");
            return self.reject(request, ErrorKind::Conflict, &why, out);
        }
        if target.pid.is_none() && target.state == ExecutorState::Registering {
            let deferred = DeferredRegistration::Subscribe(stream, request, Box::new(call), proof);
            return self.defer_until_started(&framework, &executor, deferred, out);
        }
        self.respond(request, Ok(Done::Stream), out);
        let ending = self.state == AgentState::Terminating
            || known.state == FrameworkState::Terminating
            || matches!(target.state, ExecutorState::Terminating | ExecutorState::Terminated);
        if ending {
            out.outputs.push(Output::ExecutorEvent { stream, event: shutdown_event().into() });
            out.outputs.push(Output::CloseStream { stream });
            return;
        }
        if let ExecutorLink::Stream(old) = target.link {
            out.outputs.push(Output::CloseStream { stream: old });
        }
        let is_new = target.state == ExecutorState::Registering;
        let empty = is_new && target.queued.is_empty() && !target.was_given_a_task;
        let (id, framework_info) = (known.id.clone(), Arc::clone(&known.info));
        let Some(target) = self.executor_mut(&framework, &executor) else { return };
        target.state = ExecutorState::Running;
        target.own_stream = (proof == Proof::Connection).then_some(stream);
        let mark = if target.needs_token { paths::TOKEN_MARK } else { &[] };
        let (timer, run) = (target.timer.take(), Arc::clone(&target.run));
        let (info, container) = (Arc::clone(&target.info), target.container.clone());
        self.frameworks.open_stream(stream, &framework, &executor);
        self.expect_heartbeats(now);
        self.timers.cancel(timer);
        if framework_info.checkpoint() {
            self.checkpoint(paths::below(&run, paths::HTTP_MARKER), mark.to_vec(), out);
        }
        if empty {
            return self.shut_down_executor(&id, &executor, now, out);
        }
        let subscribed = api::event::Subscribed {
            executor_info: info.into(),
            framework_info: framework_info.into(),
            slave_info: Arc::clone(&self.info).into(),
            container_id: Some(container.to_proto()),
        };
        let event = api::Event {
            r#type: Some(api::event::Type::Subscribed as i32),
            subscribed: Some(subscribed),
            ..api::Event::default()
        };
        self.event(&ExecutorLink::Stream(stream), event, out);
        let subscribe = call.subscribe.unwrap_or_default();
        for update in subscribe.unacknowledged_updates {
            let update = self.update_of_call(&framework, &executor, update.status, now);
            self.executor_update(update, now, out);
        }
        self.drop_lost_tasks(&id, &executor, &subscribe.unacknowledged_tasks, now, out);
        self.deliver(&id, &executor, out);
        if let Some(target) = self.executor(id.as_str(), &executor) {
            self.drain_executor(target, out);
        }
        self.finish_recovery_if_reconnected(now, out);
    }

    /// Reports tasks as dropped that were sent to an executor, but that it does not know: they were lost on the way.
    ///
    /// If the executor is the agent's own and has no other tasks, it is shut down, because it would wait forever.
    pub(crate) fn drop_lost_tasks(
        &mut self,
        framework: &FrameworkId,
        executor: &str,
        seen: &[pb::TaskInfo],
        now: Time,
        out: &mut Outbox,
    ) {
        let Some(known) = self.frameworks.get(framework.as_str()).cloned() else { return };
        let Some(target) = known.executors.get(executor) else { return };
        let generated = GeneratedStatus {
            state: loss_state(&known.info, TaskState::TaskDropped),
            reason: Reason::SlaveRestarted,
            message: "Task launched during agent restart".to_owned(),
        };
        let mut dropped = false;
        for (id, task) in &target.launched {
            let staging = task.state == TaskState::TaskStaging as i32;
            if staging && !seen.iter().any(|seen| seen.task_id.value == id.as_str()) {
                self.report(framework, Some(&target.id), id.as_str(), &generated, now, out);
                dropped = true;
            }
        }
        let own = target.is_builtin();
        let idle = |target: &Arc<Executor>| target.queued.is_empty() && target.launched.is_empty();
        if dropped && own && self.executor(framework.as_str(), executor).is_some_and(idle) {
            self.shut_down_executor(framework, executor, now, out);
        }
    }

    /// Returns the status update that the status of an UPDATE call becomes.
    pub(crate) fn update_of_call(
        &self,
        framework: &str,
        executor: &str,
        mut status: pb::TaskStatus,
        now: Time,
    ) -> StatusUpdate {
        let timestamp = status.timestamp.unwrap_or_else(|| now.as_secs_f64());
        status.timestamp = Some(timestamp);
        let executor_id = Some(pb::ExecutorId { value: executor.into() });
        status.executor_id.clone_from(&executor_id);
        status.slave_id = Some(self.slave_id());
        StatusUpdate {
            framework_id: pb::FrameworkId { value: framework.into() },
            executor_id,
            slave_id: Some(self.slave_id()),
            timestamp,
            uuid: status.uuid.clone(),
            status,
            latest_state: None,
        }
    }
}
