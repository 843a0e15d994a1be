//! UpdateOperationStatusMessage: an agent reports an operation's state (docs/mesos/libprocess.md).

use base::Pid;
use protos::mesos::internal::{AcknowledgeOperationStatusMessage, UpdateOperationStatusMessage};
use protos::mesos::{self, OperationState};

use crate::counters::Counter;
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::operations::is_final;
use crate::state::AgentKey;

impl Master {
    pub(crate) fn update_operation_status(
        &mut self,
        from: &Pid,
        message: UpdateOperationStatusMessage,
        out: &mut Outbox,
    ) {
        self.count(Counter::MessagesOperationStatusUpdate);
        match self.take_operation_status(from, message, out) {
            Ok(()) => self.count(Counter::ValidOperationStatusUpdates),
            Err(why) => {
                self.count(Counter::InvalidOperationStatusUpdates);
                out.warn(format!("Ignoring an operation's status: {why}"));
            }
        }
    }

    fn take_operation_status(
        &mut self,
        from: &Pid,
        message: UpdateOperationStatusMessage,
        out: &mut Outbox,
    ) -> Result<(), String> {
        let agent_id = message.slave_id.as_ref().ok_or("it names no agent")?.value.clone();
        let agent = self.reporting_agent(from, &agent_id)?;
        if let Some(uuid) = &message.status.uuid {
            // The framework could not acknowledge an invalid UUID.
            base::valid_uuid(&uuid.value).map_err(|why| format!("its uuid: {why}"))?;
        }
        let Some(uuid) = message.operation_uuid else {
            // This is the answer to a framework's own request about an unknown operation.
            let framework = message.framework_id.as_ref().ok_or("it names neither operation nor framework")?;
            let key = self.framework_by_id(&framework.value).ok_or("its framework is not known")?;
            self.frameworks.send_operation_status(key, message.status, out);
            return Ok(());
        };
        let known = self.operations.get(agent, &uuid.value).cloned();
        let operation = known.ok_or_else(|| format!("operation is not known on agent {agent_id}"))?;
        let latest = message.latest_status.unwrap_or_else(|| message.status.clone());
        let framework = operation.framework_id.as_ref().and_then(|id| self.framework_by_id(&id.value));
        self.operations.update(agent, &uuid.value, &message.status, &latest);
        if is_final(latest.state()) && !is_final(operation.latest_status.state()) {
            self.counters.operation_ended(operation.info.r#type(), latest.state());
            let succeeded = latest.state() == OperationState::OperationFinished;
            if let Some(total) = self.agents.settle_provided(agent, &operation, succeeded) {
                self.change_total(agent, total, (false, true), out);
            }
        }
        let wanted = operation.info.id.is_some();
        match framework {
            Some(framework) if wanted => self.frameworks.send_operation_status(framework, message.status, out),
            _ => self.acknowledge_operation_itself(agent, &uuid, &message.status, out),
        }
        if !wanted && is_final(latest.state()) {
            self.operations.remove(agent, &uuid.value);
            self.agents.check_drained(agent, &self.operations);
        }
        Ok(())
    }

    /// Acknowledges an operation status that no framework will acknowledge.
    fn acknowledge_operation_itself(
        &mut self,
        agent: AgentKey,
        operation_uuid: &mesos::Uuid,
        status: &mesos::OperationStatus,
        out: &mut Outbox,
    ) {
        let (Some(status_uuid), Some(row)) = (status.uuid.clone(), self.agent(agent)) else { return };
        let message = AcknowledgeOperationStatusMessage {
            status_uuid,
            operation_uuid: operation_uuid.clone(),
            resource_provider_id: status.resource_provider_id.clone(),
        };
        out.push(Output::send(&row.pid, message));
    }
}
