//! ACKNOWLEDGE_OPERATION_STATUS: a framework acknowledges the status of an operation (docs/mesos/libprocess.md).

use std::sync::Arc;

use protos::mesos::internal::AcknowledgeOperationStatusMessage;
use protos::mesos::scheduler::call::AcknowledgeOperationStatus;
use protos::mesos::{self, Operation};

use crate::counters::Counter;
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::operations::is_final;
use crate::state::FrameworkKey;

impl Master {
    pub(crate) fn acknowledge_operation_status(
        &mut self,
        key: FrameworkKey,
        call: AcknowledgeOperationStatus,
        out: &mut Outbox,
    ) {
        self.count(Counter::MessagesOperationStatusUpdateAcknowledgement);
        let counter = match self.pass_operation_acknowledgement(key, call, out) {
            Ok(()) => Counter::ValidOperationStatusUpdateAcknowledgements,
            Err(why) => {
                out.warn(format!("Dropping the acknowledgement of an operation's status: {why}"));
                Counter::InvalidOperationStatusUpdateAcknowledgements
            }
        };
        self.count(counter);
    }

    fn pass_operation_acknowledgement(
        &mut self,
        key: FrameworkKey,
        call: AcknowledgeOperationStatus,
        out: &mut Outbox,
    ) -> Result<(), String> {
        let agent_id = call.slave_id.unwrap_or_default().value;
        let agent = self.agent_by_id(&agent_id).ok_or_else(|| format!("agent {agent_id} is not registered"))?;
        let row = self.agent(agent).filter(|row| row.connected);
        let row = row.ok_or_else(|| format!("agent {agent_id} is not connected"))?;
        let framework_id = self.framework(key).map(|framework| framework.proto_id());
        let is_meant = |operation: &Operation| {
            operation.framework_id == framework_id && operation.info.id.as_ref() == Some(&call.operation_id)
        };
        let taken = |status: &&mesos::OperationStatus| status.uuid.as_ref().is_some_and(|id| id.value == call.uuid);
        let status_of = |operation: &Arc<Operation>| {
            let status = operation.statuses.iter().find(taken).filter(|_| is_meant(operation))?;
            Some((Arc::clone(operation), status.clone()))
        };
        let found = self.operations.on_agent(agent).find_map(status_of);
        let unknown = || format!("operation {} has no status with that uuid", call.operation_id.value);
        let (operation, status) = found.ok_or_else(unknown)?;
        let operation_uuid = operation.uuid.clone();
        let message = AcknowledgeOperationStatusMessage {
            status_uuid: mesos::Uuid { value: call.uuid },
            operation_uuid: operation_uuid.clone(),
            resource_provider_id: call.resource_provider_id,
        };
        out.push(Output::send(&row.pid, message));
        if is_final(status.state()) {
            self.operations.remove(agent, &operation_uuid.value);
            self.agents.check_drained(agent, &self.operations);
        }
        Ok(())
    }
}
