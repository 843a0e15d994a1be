//! Handles SlaveRegisteredMessage and SlaveReregisteredMessage: the master has admitted the agent.
//!
//! The requests are sent in `detected.rs`.

use std::sync::Arc;
use std::time::Duration;

use base::{AgentId, FrameworkId, Time};
use protos::mesos::internal::{
    MasterSlaveConnection, ReconcileTasksMessage, SlaveRegisteredMessage, SlaveReregisteredMessage,
};
use protos::mesos::{self as pb, TaskState, task_status::Reason};

use crate::agent::{Agent, AgentState};
use crate::disk::{frame, paths};
use crate::output::{Outbox, Persist};
use crate::state::{GeneratedStatus, loss_state};

impl Agent {
    /// Handles SlaveRegisteredMessage, the answer to a registration.
    pub(crate) fn slave_registered(&mut self, answer: SlaveRegisteredMessage, now: Time, out: &mut Outbox) {
        let Ok(id) = AgentId::new(&answer.slave_id.value) else {
            out.warn(format!("Dropped a registration with the invalid agent id '{}'", answer.slave_id.value));
            return;
        };
        match &self.id {
            Some(known) if *known != id => return self.wrong_id(&id, out),
            _ if self.state == AgentState::Terminating || self.state == AgentState::Recovering => return,
            Some(_) if self.state == AgentState::Running => return,
            Some(_) => {}
            None => self.take_id(id, out),
        }
        self.connected(answer.connection, now, out);
        self.report_health(out);
    }

    /// Handles SlaveReregisteredMessage, the answer to a reregistration.
    pub(crate) fn slave_reregistered(&mut self, answer: SlaveReregisteredMessage, now: Time, out: &mut Outbox) {
        match (&self.id, AgentId::new(&answer.slave_id.value)) {
            (Some(known), Ok(id)) if *known == id => {}
            (_, Ok(id)) => return self.wrong_id(&id, out),
            (_, Err(_)) => return,
        }
        match self.state {
            // This answers the previous process of this agent, whose executors may have ended with it. This process
            // sends its own list.
            AgentState::Disconnected if !self.asked => return,
            AgentState::Disconnected => self.connected(answer.connection, now, out),
            AgentState::Running => {}
            AgentState::Recovering | AgentState::Terminating => return,
        }
        for reconciliation in answer.reconciliations {
            self.reconcile(&reconciliation, now, out);
        }
        if self.announced.as_ref().is_some_and(|announced| *announced != self.total) {
            // An operation arrived between request and answer: the master has the resources from before it.
            self.reregister_to_correct_master(out);
        }
        self.report_health(out);
    }

    fn wrong_id(&mut self, id: &AgentId, out: &mut Outbox) {
        let own = self.id.as_ref().map(ToString::to_string).unwrap_or_default();
        self.exit(1, format!("Registered but got wrong id: {id} (expected: {own}). Committing suicide"), out);
    }

    /// Stores the agent id that a master has assigned, and checkpoints it for the next start.
    fn take_id(&mut self, id: AgentId, out: &mut Outbox) {
        let info = Arc::make_mut(&mut self.info);
        info.id = Some(pb::SlaveId { value: (&id).into() });
        let directory = paths::agent(&id);
        out.persist.push(Persist::Replace { path: format!("{directory}/slave.info"), bytes: frame(&*self.info) });
        let target = self.config.meta_path(&directory);
        out.persist.push(Persist::Link { path: paths::LATEST.to_owned(), target });
        self.id = Some(id);
    }

    fn connected(&mut self, connection: Option<MasterSlaveConnection>, now: Time, out: &mut Outbox) {
        self.timers.cancel(self.registration.take());
        self.state = AgentState::Running;
        self.registered = Some(now);
        self.has_warned_of_master = false;
        if let (Some(master), Some(id)) = (&self.master, &self.id) {
            out.info(format!("Registered with the master at {} as agent {id}", master.address()));
        }
        if let Some(seconds) = connection.and_then(|connection| connection.total_ping_timeout_seconds)
            && let Ok(timeout) = Duration::try_from_secs_f64(seconds)
        {
            self.ping_timeout = timeout;
        }
        self.expect_ping(now);
        self.update_slave(out);
        self.streams.resume(now);
        self.report_operations(out);
    }

    /// Reports tasks that the master has, but this agent did not list, as lost.
    fn reconcile(&mut self, message: &ReconcileTasksMessage, now: Time, out: &mut Outbox) {
        let Ok(id) = FrameworkId::new(&message.framework_id.value) else { return };
        let known = self.frameworks.get(id.as_str()).cloned();
        let info = known.as_ref().map(|known| &*known.info).or(message.framework.as_ref());
        let Some(info) = info.cloned() else { return };
        for status in &message.statuses {
            let has = |framework: &Arc<crate::Framework>| {
                framework
                    .executors
                    .values()
                    .any(|executor| base::TaskId::new(&status.task_id.value).is_ok_and(|task| executor.has_task(&task)))
            };
            if known.as_ref().is_some_and(has) {
                continue;
            }
            let generated = GeneratedStatus {
                state: loss_state(&info, TaskState::TaskDropped),
                reason: Reason::Reconciliation,
                message: "Reconciliation: task unknown to the agent".to_owned(),
            };
            self.report(&id, None, &status.task_id.value, &generated, now, out);
        }
    }
}
