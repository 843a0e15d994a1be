//! Applies an allowed operation whose resources exist: in the master's tables at once, and on the agent by message
//! (SCH-79, RES-51).
//!
//! The allocator has been notified already.

use protos::mesos::internal::{ApplyOperationMessage, CheckpointResourcesMessage, ResourceVersionUuid};
use protos::mesos::offer::Operation;
use protos::mesos::{self, OperationState, OperationStatus};
use resources::{Conversion, Format};

use super::{agent_text, provider_of};
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::state::{AgentKey, FrameworkKey};

impl Master {
    /// Applies an operation. `framework` is `None` for operators.
    pub(crate) fn apply_operation(
        &mut self,
        key: AgentKey,
        framework: Option<FrameworkKey>,
        operation: Operation,
        conversions: &[Conversion],
        out: &mut Outbox,
    ) {
        self.agents.convert(key, provider_of(&operation), conversions);
        let Some(agent) = self.agent(key) else { return };
        match agent.capabilities.resource_provider {
            true => self.send_operation(key, framework, operation, out),
            false => self.send_checkpointed(key, out),
        }
    }

    /// Sends an agent without resource providers all of its reservations and volumes in one message. It does not
    /// answer.
    pub(crate) fn send_checkpointed(&mut self, key: AgentKey, out: &mut Outbox) {
        let Some(agent) = self.agent(key) else { return };
        let able = agent.capabilities.reservation_refinement;
        if !able && agent.checkpointed.has_refined_reservations() {
            // The old format has only one level of reservations.
            let agent = agent_text(agent);
            out.warn(format!(
                "Not sending the reservations to agent {agent}: it does not support refined reservations"
            ));
            return;
        }
        let format = if able { Format::PostRefinement } else { Format::PreRefinement };
        let resources = agent.checkpointed.to_proto(format);
        out.push(Output::send(&agent.pid, CheckpointResourcesMessage { resources }));
    }

    /// Sends the operation to an agent with resource providers. It is kept until its final status is acknowledged.
    fn send_operation(
        &mut self,
        key: AgentKey,
        framework: Option<FrameworkKey>,
        operation_info: Operation,
        out: &mut Outbox,
    ) {
        let uuid = self.operations.next_uuid();
        let framework_id = framework.and_then(|key| self.framework(key)).map(|framework| framework.proto_id());
        let Some(agent) = self.agent(key) else { return };
        let provider = provider_of(&operation_info);
        let uuid_of_version = match provider.map(|id| agent.providers.get(id)) {
            None => agent.resource_version.clone().unwrap_or_default(),
            Some(Some(provider)) => provider.version.clone(),
            Some(None) => {
                out.warn(format!("Not sending an operation to agent {}: its provider is not known", agent.id));
                return;
            }
        };
        let provider_id = provider.map(|id| mesos::ResourceProviderId { value: id.to_owned() });
        let version = ResourceVersionUuid { resource_provider_id: provider_id.clone(), uuid: uuid_of_version };
        let message = ApplyOperationMessage {
            framework_id: framework_id.clone(),
            // The allocations are sent too: agents remove them, and show the operation as it was requested.
            operation_info: operation_info.clone(),
            operation_uuid: uuid.clone(),
            resource_version_uuid: version,
        };
        out.push(Output::send(&agent.pid, message));
        self.counters.operation(operation_info.r#type());
        let Some(agent) = self.agent(key) else { return };
        let latest_status = OperationStatus {
            operation_id: operation_info.id.clone(),
            state: OperationState::OperationPending as i32,
            slave_id: Some(agent.proto_id()),
            resource_provider_id: provider_id,
            ..Default::default()
        };
        let operation = mesos::Operation {
            framework_id,
            slave_id: Some(agent.proto_id()),
            info: operation_info,
            latest_status,
            statuses: Vec::new(),
            uuid,
        };
        self.operations.insert(key, operation);
    }
}
