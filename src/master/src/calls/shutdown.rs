//! SHUTDOWN: a framework shuts down one of its executors.

use protos::mesos::internal::ShutdownExecutorMessage;
use protos::mesos::scheduler::call::Shutdown;

use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::state::FrameworkKey;

impl Master {
    pub(crate) fn shutdown_executor(&mut self, key: FrameworkKey, call: Shutdown, out: &mut Outbox) {
        let agent = self.agents.find(&call.slave_id.value).map(|(_, agent)| agent);
        let (Some(agent), Some(framework)) = (agent, self.framework(key)) else {
            let (executor, agent) = (&call.executor_id.value, &call.slave_id.value);
            out.warn(format!("Ignoring the shutdown of executor {executor}: agent {agent} is not registered"));
            return;
        };
        let message =
            ShutdownExecutorMessage { executor_id: Some(call.executor_id), framework_id: Some(framework.proto_id()) };
        out.push(Output::send(&agent.pid, message));
    }
}
