//! Libprocess messages, one file each, and their dispatch.
//!
//! Messages of v0 frameworks that are equivalent to a call are turned into it (`old_calls.rs`).

mod executor_to_framework;
mod exited_executor;
mod old_calls;
mod pong_slave;
mod register_slave;
mod reregister_framework;
mod reregister_slave;
mod scheduler_call;
mod status_update;
mod unregister_slave;
mod update_operation_status;
mod update_slave;

use base::Pid;
use protos::mesos::internal::SubmitSchedulerResponse;

use crate::counters::Counter;
use crate::frameworks::Subscription;
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::message::Message;
use crate::state::AgentKey;

/// Name of a refused registration in the audit log, for agents with and without an id.
pub(crate) const REGISTRATION: &str = "RegisterSlaveMessage";

impl Master {
    /// Handles a libprocess message, unless a rate limit delays it.
    pub(crate) fn message(&mut self, from: Pid, message: Message, out: &mut Outbox) {
        if let Some(message) = self.admit_by_rate_limit(&from, message, out) {
            self.handle_message(from, message, out);
        }
    }

    /// Handles a libprocess message that no rate limit delays any more.
    pub(crate) fn handle_message(&mut self, from: Pid, message: Message, out: &mut Outbox) {
        let Some(message) = self.peers.admissible(&from, message, out) else { return };
        match message {
            Message::PongSlave { observer } => self.pong_slave(&from, observer, out),
            Message::StatusUpdate(message) => self.status_update(&from, *message, out),
            Message::RegisterSlave(message) => self.register_slave(from, *message, out),
            Message::ReregisterSlave(message) => self.reregister_slave(from, *message, out),
            Message::UnregisterSlave(message) => self.unregister_slave(&from, &message, out),
            Message::UpdateSlave(message) => self.update_slave(&from, *message, out),
            Message::ExitedExecutor(message) => self.exited_executor(&from, *message, out),
            Message::ExecutorToFramework(message) => self.executor_to_framework(&from, *message, out),
            Message::UpdateOperationStatus(message) => self.update_operation_status(&from, *message, out),
            Message::Call(call) => self.driver_call(from, *call, out),
            Message::RegisterFramework(message) => self.register_framework(from, message.framework, out),
            Message::ReregisterFramework(message) => self.reregister_framework(from, *message, out),
            Message::SubmitScheduler(_) => out.push(Output::send(&from, SubmitSchedulerResponse { okay: false })),
            Message::DeactivateFramework(message) => {
                self.count(Counter::MessagesDeactivateFramework);
                if let Some(key) = self.driver(&from, &message.framework_id, "DeactivateFrameworkMessage", out) {
                    self.deactivate_framework(key, out);
                }
            }
            old => self.old_call(from, old, out),
        }
    }

    /// Returns the agent of an id if the sender is its process. Agents may report only about themselves.
    ///
    /// # Errors
    /// No agent with that id is registered, or the sender is another process.
    pub(crate) fn reporting_agent(&self, from: &Pid, id: &str) -> Result<AgentKey, String> {
        let key = self.agent_by_id(id).ok_or_else(|| format!("agent {id} is not registered"))?;
        match self.agent(key) {
            Some(agent) if agent.pid == *from => Ok(key),
            _ => Err(format!("{from} is not the process of agent {id}")),
        }
    }

    fn register_framework(&mut self, from: Pid, info: protos::mesos::FrameworkInfo, out: &mut Outbox) {
        let subscription = Subscription {
            info,
            suppressed: Vec::new(),
            constraints: None,
            compiled: Default::default(),
            force: false,
        };
        if subscription.id().is_some() {
            let message = "Registering with 'id' already set".to_owned();
            out.push(Output::send(&from, protos::mesos::internal::FrameworkErrorMessage { message }));
            return;
        }
        self.subscribe_driver(from, subscription, out);
    }
}
