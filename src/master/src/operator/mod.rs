//! The operator API's calls that change state, one file each, and its event stream.

mod announce;
mod deactivate_agent;
mod drain_agent;
mod mark_agent_gone;
mod reactivate_agent;
mod subscribe;
mod teardown;
mod update_weights;

pub(crate) use subscribe::Subscribers;

use std::sync::Arc;

use protos::mesos::master::{Call, call::Type};

use crate::io::{Answer, Outbox, RequestId};
use crate::master::Master;

impl Master {
    /// An operator's call. Those that only read are answered from a snapshot, not here.
    pub(crate) fn operator_call(
        &mut self,
        request: RequestId,
        call: Call,
        _principal: Option<Arc<str>>,
        out: &mut Outbox,
    ) {
        let kind = call.r#type();
        let agent_id = |id: Option<protos::mesos::SlaveId>| id.unwrap_or_default().value;
        let result = match kind {
            Type::Teardown => self.operator_teardown(&call.teardown.unwrap_or_default().framework_id.value, out),
            Type::MarkAgentGone => self.mark_agent_gone(&agent_id(call.mark_agent_gone.map(|call| call.slave_id)), out),
            Type::DeactivateAgent => {
                self.deactivate_agent(&agent_id(call.deactivate_agent.map(|call| call.slave_id)), out)
            }
            Type::ReactivateAgent => {
                self.reactivate_agent(&agent_id(call.reactivate_agent.map(|call| call.slave_id)), out)
            }
            Type::DrainAgent => self.drain_agent(call.drain_agent.unwrap_or_default(), out),
            Type::UpdateWeights => self.update_weights(call.update_weights.unwrap_or_default().weight_infos, out),
            _ => Err(Answer::status(501, format!("{} is not implemented yet", kind.as_str_name()))),
        };
        out.respond(request, result.map_or_else(|answer| answer, |()| Answer::ok()));
    }
}
