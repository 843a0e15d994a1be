//! Calls of the operator API that change state, one file each, and its event stream.

mod announce;
mod deactivate_agent;
mod drain_agent;
mod kill_task;
mod maintenance;
mod mark_agent_gone;
mod quota;
mod reactivate_agent;
mod resources;
mod subscribe;
mod teardown;
mod update_policies;
mod update_weights;

pub(crate) use subscribe::Subscribers;

use cores::{CallError, ErrorKind};
use std::sync::Arc;

use authorizer::Action;
use cores::RequestId;
use protos::mesos::master::{Call, call::Type};

use crate::io::{Done, Outbox, Output};
use crate::master::Master;

impl Master {
    /// Handles an operator's call. Calls that only read are answered from a snapshot, not here.
    pub(crate) fn operator_call(
        &mut self,
        request: RequestId,
        call: Call,
        principal: Option<Arc<str>>,
        out: &mut Outbox,
    ) {
        let (kind, who) = (call.r#type(), principal.as_deref());
        let call = match resources::operation_of(kind, call) {
            Ok((agent, operation)) => {
                let result = self.operate_on(&agent, &operation, who, out);
                out.push(Output::respond(request, result.map(|()| Done::Accepted)));
                return;
            }
            Err(call) => *call,
        };
        for action in guards(&call) {
            if let Err(error) = self.authorize(who, *action, None, out) {
                out.push(Output::respond(request, Err(error)));
                return;
            }
        }
        let agent_id = |id: Option<protos::mesos::SlaveId>| id.unwrap_or_default().value;
        let result = match kind {
            Type::Teardown => self.operator_teardown(&call.teardown.unwrap_or_default().framework_id.value, who, out),
            Type::MarkAgentGone => self.mark_agent_gone(&agent_id(call.mark_agent_gone.map(|call| call.slave_id)), out),
            Type::DeactivateAgent => {
                self.deactivate_agent(&agent_id(call.deactivate_agent.map(|call| call.slave_id)), out)
            }
            Type::ReactivateAgent => {
                self.reactivate_agent(&agent_id(call.reactivate_agent.map(|call| call.slave_id)), out)
            }
            Type::DrainAgent => self.drain_agent(call.drain_agent.unwrap_or_default(), out),
            Type::UpdateWeights => self.update_weights(call.update_weights.unwrap_or_default().weight_infos, who, out),
            Type::UpdateQuota => self.update_quota(call.update_quota.unwrap_or_default(), who, out),
            Type::SetQuota => self.set_quota(&call.set_quota.unwrap_or_default().quota_request, who, out),
            Type::RemoveQuota => self.remove_quota(&call.remove_quota.unwrap_or_default().role, who, out),
            Type::UpdateMaintenanceSchedule => {
                self.update_schedule(call.update_maintenance_schedule.unwrap_or_default().schedule, out)
            }
            Type::StartMaintenance => self.start_maintenance(&call.start_maintenance.unwrap_or_default().machines, out),
            Type::StopMaintenance => self.stop_maintenance(&call.stop_maintenance.unwrap_or_default().machines, out),
            _ => {
                Err(CallError::new(ErrorKind::Unimplemented, format!("{} is not implemented yet", kind.as_str_name())))
            }
        };
        out.push(Output::respond(request, result.map(|()| Done::Complete)));
    }
}

/// Returns the actions that a call needs permission for on all agents or machines: the access control lists do not
/// distinguish single ones.
fn guards(call: &Call) -> &'static [Action] {
    match call.r#type() {
        Type::MarkAgentGone => &[Action::MarkAgentGone],
        Type::DeactivateAgent => &[Action::DeactivateAgent],
        Type::ReactivateAgent => &[Action::ReactivateAgent],
        Type::DrainAgent => match call.drain_agent.as_ref().is_some_and(|drain| drain.mark_gone()) {
            true => &[Action::DrainAgent, Action::MarkAgentGone],
            false => &[Action::DrainAgent],
        },
        Type::UpdateMaintenanceSchedule => &[Action::UpdateMaintenanceSchedule],
        Type::StartMaintenance => &[Action::StartMaintenance],
        Type::StopMaintenance => &[Action::StopMaintenance],
        _ => &[],
    }
}
