//! Messages of drivers older than the Call. Each is handled as the equivalent call.

use base::Pid;
use protos::mesos::scheduler::{self, Call, call};
use protos::mesos::{self, offer};

use crate::io::Outbox;
use crate::master::Master;
use crate::message::Message;

fn call(kind: call::Type, framework_id: mesos::FrameworkId) -> Call {
    Call { r#type: Some(kind as i32), framework_id: Some(framework_id), ..Call::default() }
}

impl Master {
    pub(crate) fn old_call(&mut self, from: Pid, message: Message, out: &mut Outbox) {
        if let Some(call) = as_call(message) {
            self.driver_call(from, call, out);
        }
    }
}

/// Returns the call that an old message is equivalent to.
fn as_call(message: Message) -> Option<scheduler::Call> {
    Some(match message {
        Message::UnregisterFramework(m) => call(call::Type::Teardown, m.framework_id),
        Message::ResourceRequest(m) => {
            Call { request: Some(call::Request { requests: m.requests }), ..call(call::Type::Request, m.framework_id) }
        }
        Message::LaunchTasks(m) => {
            let launch = offer::Operation {
                r#type: Some(offer::operation::Type::Launch as i32),
                launch: Some(offer::operation::Launch { task_infos: m.tasks }),
                ..Default::default()
            };
            let accept = call::Accept { offer_ids: m.offer_ids, operations: vec![launch], filters: Some(m.filters) };
            Call { accept: Some(accept), ..call(call::Type::Accept, m.framework_id) }
        }
        Message::ReviveOffers(m) => {
            Call { revive: Some(call::Revive { roles: m.roles }), ..call(call::Type::Revive, m.framework_id) }
        }
        Message::KillTask(m) => {
            let kill = call::Kill { task_id: m.task_id, slave_id: None, kill_policy: m.kill_policy };
            Call { kill: Some(Box::new(kill)), ..call(call::Type::Kill, m.framework_id) }
        }
        Message::StatusUpdateAcknowledgement(m) => {
            let acknowledge = call::Acknowledge { slave_id: m.slave_id, task_id: m.task_id, uuid: m.uuid };
            Call { acknowledge: Some(acknowledge), ..call(call::Type::Acknowledge, m.framework_id) }
        }
        Message::FrameworkToExecutor(m) => {
            let message = call::Message { slave_id: m.slave_id, executor_id: m.executor_id, data: m.data };
            Call { message: Some(Box::new(message)), ..call(call::Type::Message, m.framework_id) }
        }
        Message::ReconcileTasks(m) => {
            let statuses = m.statuses.into_iter();
            let tasks = statuses.map(|s| call::reconcile::Task { task_id: s.task_id, slave_id: s.slave_id });
            let reconcile = call::Reconcile { tasks: tasks.collect() };
            Call { reconcile: Some(reconcile), ..call(call::Type::Reconcile, m.framework_id) }
        }
        _ => return None,
    })
}
