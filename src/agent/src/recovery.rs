//! Recovers the state of the previous agent process: id, reservations, executors and updates (docs/mesos/disk.md).
//!
//! The agent does not register before the executors have reconnected, or their time is over.

use std::sync::Arc;
use std::time::Duration;

use base::Time;
use protos::mesos::internal::{ReconnectExecutorMessage, slave::ResourceState};
use protos::mesos::{self as pb, TaskState, task_status::Reason};

use crate::agent::{Agent, AgentState, StartError};
use crate::config::RecoverMode;
use crate::disk::{Directory, Recovered, RecoveredAgent, paths};
use crate::output::{Outbox, Output, Persist};
use crate::reconfiguration;
use crate::state::{ExecutorLink, ExecutorState, GeneratedStatus, Operations, loss_state};
use crate::timers::Timer;

/// Delay after which recovered operations are reported for the second time; the first report follows the registration.
const OPERATION_RETRY: Duration = Duration::from_secs(10);

impl Agent {
    /// Recovers the state of the previous agent process.
    pub(crate) fn recover(&mut self, recovered: Recovered, now: Time, out: &mut Outbox) -> Result<(), StartError> {
        self.counters.recovery_errors = u64::from(recovered.errors);
        for skipped in &recovered.skipped {
            let path = self.config.meta_path(&skipped.path);
            out.warn(format!("The checkpoint '{path}' {}: {}", skipped.why, skipped.effect));
        }
        let rebooted = recovered.boot_id.as_ref().is_some_and(|old| *old != self.config.boot_id);
        self.recover_resources(recovered.resources, recovered.target, now, out)?;
        for old in &recovered.old_agents {
            self.discard(Directory::Agent(old.clone()), now);
        }
        if let Some(agent) = recovered.agent {
            self.recover_agent(agent, rebooted, now, out)?;
        }
        self.recover_nested(if rebooted { Vec::new() } else { recovered.nested }, now, out);
        if self.config.recover == RecoverMode::Cleanup {
            self.clean_up(now, out);
            return Ok(());
        }
        if recovered.boot_id.as_ref() != Some(&self.config.boot_id) {
            self.checkpoint(paths::BOOT_ID.to_owned(), self.config.boot_id.clone().into_bytes(), out);
        }
        let timeout = self.config.executor_reregistration_timeout;
        self.recovery = Some(self.timers.set(now + timeout, Timer::ExecutorReregistration));
        if self.config.executor_reregistration_retry_interval.is_some() {
            self.reconnect_executors(now, out);
        }
        self.finish_recovery_if_reconnected(now, out);
        Ok(())
    }

    /// Recovers reservations, volumes and operations; repeats a change of volumes that was not finished.
    fn recover_resources(
        &mut self,
        state: Option<ResourceState>,
        target: Option<ResourceState>,
        now: Time,
        out: &mut Outbox,
    ) -> Result<(), StartError> {
        let invalid = |why: &dyn std::fmt::Display| StartError::Resources(why.to_string());
        let directory = self.config.meta_path("resources");
        let own = resources::from_proto(&self.info.resources).map_err(|why| invalid(&why))?;
        let with = |state: &ResourceState| {
            let reserved = |why: &dyn std::fmt::Display| StartError::Reserved {
                why: why.to_string(),
                directory: directory.clone(),
            };
            let checkpointed = resources::from_proto(&state.resources).map_err(|why| reserved(&why))?;
            own.with_checkpointed(&checkpointed).map_err(|why| reserved(&why))
        };
        self.total = Arc::new(match target.as_ref().or(state.as_ref()) {
            Some(state) => with(state)?,
            None => own.clone(),
        });
        if target.is_some() {
            // During a change the disk may have more volumes than fit at once, so they are not checked against the
            // agent's resources.
            let on_disk = state.iter().flat_map(|state| &state.resources).cloned().collect::<Vec<_>>();
            let on_disk = resources::from_proto(&on_disk).map_err(|why| invalid(&why))?;
            self.resume_volumes(on_disk.filter(resources::Resource::is_persistent_volume), out);
        }
        self.operations = Operations::recovered(target.or(state).into_iter().flat_map(|state| state.operations));
        for operation in self.operations.iter() {
            let uuid = operation.uuid.value.to_vec();
            self.timers.set(now + OPERATION_RETRY, Timer::OperationRetry { uuid, wait: OPERATION_RETRY });
        }
        Ok(())
    }

    fn recover_agent(
        &mut self,
        agent: RecoveredAgent,
        rebooted: bool,
        now: Time,
        out: &mut Outbox,
    ) -> Result<(), StartError> {
        // Without its info the agent had not completed its registration.
        let Some(old) = agent.info else { return Ok(()) };
        // A cleanup destroys everything, so the resources need not match.
        let cleans_up = self.config.recover == RecoverMode::Cleanup;
        let fits = reconfiguration::check(self.config.reconfiguration_policy, &old, &self.info);
        if let Err(why) = fits.or_else(|why| if cleans_up { Ok(()) } else { Err(why) }) {
            if !rebooted {
                let latest = self.config.meta_path(paths::LATEST);
                return Err(StartError::Reconfiguration { why: Box::new(why), latest });
            }
            out.warn(format!("The host has rebooted and the agent has changed: it registers as a new one: {why}"));
            out.persist.push(Persist::Remove { path: paths::LATEST.to_owned() });
            self.discard(Directory::Agent(agent.id.as_str().to_owned()), now);
            return Ok(());
        }
        Arc::make_mut(&mut self.info).id = Some(pb::SlaveId { value: (&agent.id).into() });
        self.drain = agent.drain;
        self.drain_start = agent.drain.map(|_| now);
        self.id = Some(agent.id);
        for framework in agent.frameworks {
            self.recover_framework(framework, rebooted, now, out);
        }
        Ok(())
    }

    /// Carries out `--recover=cleanup`: ends all executors and containers, and then the agent, which gets a new id at
    /// its next start. An interrupted cleanup starts again.
    fn clean_up(&mut self, now: Time, out: &mut Outbox) {
        self.unregistered = true;
        let alone = self.nested.iter().filter(|(name, nested)| name.parent().is_none() && nested.ended.is_none());
        out.outputs.extend(alone.map(|(name, _)| Output::Destroy { container: name.clone() }));
        self.leave(now, out);
    }

    /// Asks the v0 executors that have not reconnected yet to do so.
    pub(crate) fn reconnect_executors(&mut self, now: Time, out: &mut Outbox) {
        if self.state != AgentState::Recovering {
            return;
        }
        for executor in self.frameworks.executors() {
            if let (ExecutorState::Registering, ExecutorLink::Pid(pid)) = (executor.state, &executor.link) {
                let message = ReconnectExecutorMessage { slave_id: self.slave_id() };
                self.send(pid, message, out);
            }
        }
        if let Some(interval) = self.config.executor_reregistration_retry_interval {
            self.timers.set(now + interval, Timer::ExecutorReconnect);
        }
    }

    /// Finishes the recovery if no executor is left that has to reconnect. Called when an executor has reconnected or
    /// ended.
    pub(crate) fn finish_recovery_if_reconnected(&mut self, now: Time, _out: &mut Outbox) {
        if self.state != AgentState::Recovering {
            return;
        }
        if !self.frameworks.executors().any(|executor| executor.state == ExecutorState::Registering) {
            self.finish_recovery(now);
        }
    }

    /// Destroys the executors that have not reconnected in time, and finishes the recovery.
    pub(crate) fn executor_reregistration_timed_out(&mut self, now: Time, out: &mut Outbox) {
        let limit = self.texts.reregistration_timeout.as_str();
        for framework in self.frameworks.values_mut() {
            let state = loss_state(&framework.info, TaskState::TaskGone);
            for executor in framework.executors.values_mut() {
                if executor.state != ExecutorState::Registering {
                    continue;
                }
                let executor = Arc::make_mut(executor);
                executor.state = ExecutorState::Terminating;
                executor.ending = Some(GeneratedStatus {
                    state,
                    reason: Reason::ExecutorReregistrationTimeout,
                    message: format!("Executor did not reregister within {limit}"),
                });
                out.outputs.push(Output::Destroy { container: executor.container.clone() });
            }
        }
        self.finish_recovery(now);
    }

    fn finish_recovery(&mut self, now: Time) {
        if self.state == AgentState::Recovering {
            self.timers.cancel(self.recovery.take());
            self.state = AgentState::Disconnected;
            self.recovery_time = Some(now.since(self.started));
            self.start_registration(now);
        }
    }
}
