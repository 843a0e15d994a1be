//! RECONCILE_OPERATIONS: a framework asks for the states of operations (docs/mesos/libprocess.md).

use protos::mesos::internal::{ReconcileOperationsMessage, reconcile_operations_message};
use protos::mesos::scheduler::call::{ReconcileOperations, reconcile_operations};
use protos::mesos::{self, OperationState, OperationStatus};

use crate::counters::Counter;
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::state::{AgentKey, FrameworkKey};

impl Master {
    /// Sends the framework the states of the listed operations, or of all its operations if none is listed. No status
    /// has a UUID.
    pub(crate) fn reconcile_operations(&mut self, key: FrameworkKey, call: ReconcileOperations, out: &mut Outbox) {
        self.count(Counter::MessagesReconcileOperations);
        let known = self.operations_of(key);
        if call.operations.is_empty() {
            for status in known {
                self.frameworks.send_operation_status(key, OperationStatus { uuid: None, ..status }, out);
            }
            return;
        }
        for asked in call.operations {
            let status = known.iter().find(|status| status.operation_id.as_ref() == Some(&asked.operation_id));
            match status {
                Some(status) => {
                    self.frameworks.send_operation_status(key, OperationStatus { uuid: None, ..status.clone() }, out)
                }
                None => self.send_unknown_operation(key, asked, out),
            }
        }
    }

    /// Returns the newest status of each operation of a framework that has an id.
    fn operations_of(&self, key: FrameworkKey) -> Vec<OperationStatus> {
        let Some(framework) = self.framework(key) else { return Vec::new() };
        let mine = self.operations.of_framework(framework.id.as_str());
        let status = mine.filter(|operation| operation.info.id.is_some()).map(|operation| OperationStatus {
            operation_id: operation.info.id.clone(),
            slave_id: operation.slave_id.clone(),
            ..operation.latest_status.clone()
        });
        status.collect()
    }

    fn send_unknown_operation(&mut self, key: FrameworkKey, asked: reconcile_operations::Operation, out: &mut Outbox) {
        use OperationState as S;
        let agent_id = asked.slave_id.as_ref().map(|id| id.value.as_str());
        let registered = agent_id.and_then(|id| self.agent_by_id(id));
        if let Some(agent) = registered.filter(|agent| self.provider_unknown(*agent, &asked)) {
            self.ask_agent(key, agent, asked, out);
            return;
        }
        let (state, message) = match agent_id {
            None => (S::OperationUnknown, "Operation is unknown and no 'agent_id' was provided"),
            Some(id) if self.absent.is_recovered(id) => {
                (S::OperationRecovering, "Agent is recovered but has not re-registered")
            }
            Some(_) if registered.is_some() => (S::OperationUnknown, "Operation is unknown"),
            Some(id) if self.absent.unreachable_since(id).is_some() => {
                (S::OperationUnreachable, "Agent is unreachable")
            }
            Some(id) if self.absent.is_gone(id) => (S::OperationGoneByOperator, "Agent marked gone by operator"),
            Some(_) => (S::OperationUnknown, "Both operation and agent are unknown"),
        };
        let status = OperationStatus {
            operation_id: Some(asked.operation_id),
            state: state as i32,
            message: Some(format!("Reconciliation: {message}")),
            slave_id: asked.slave_id,
            resource_provider_id: asked.resource_provider_id,
            ..Default::default()
        };
        self.frameworks.send_operation_status(key, status, out);
    }

    fn provider_unknown(&self, agent: AgentKey, asked: &reconcile_operations::Operation) -> bool {
        let (Some(agent), Some(provider)) = (self.agent(agent), &asked.resource_provider_id) else { return false };
        agent.capabilities.agent_operation_feedback && !agent.providers.contains_key(&provider.value)
    }

    /// Asks the agent for the state of an operation, because the agent knows its providers better.
    fn ask_agent(
        &mut self,
        key: FrameworkKey,
        agent: AgentKey,
        asked: reconcile_operations::Operation,
        out: &mut Outbox,
    ) {
        let (Some(agent), Some(framework)) = (self.agent(agent), self.framework(key)) else { return };
        let operation = reconcile_operations_message::Operation {
            operation_uuid: None::<mesos::Uuid>,
            operation_id: Some(asked.operation_id),
            resource_provider_id: asked.resource_provider_id,
        };
        let framework_id = Some(framework.proto_id());
        out.push(Output::send(&agent.pid, ReconcileOperationsMessage { operations: vec![operation], framework_id }));
    }
}
