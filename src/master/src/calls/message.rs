//! MESSAGE: a framework sends data to one of its executors. Delivery is best effort.

use protos::mesos::internal::FrameworkToExecutorMessage;
use protos::mesos::scheduler::call::Message;

use crate::counters::Counter;
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::state::FrameworkKey;

impl Master {
    pub(crate) fn framework_to_executor(&mut self, key: FrameworkKey, call: Message, out: &mut Outbox) {
        self.count(Counter::MessagesFrameworkToExecutor);
        let agent = self.agents.find(&call.slave_id.value).map(|(_, agent)| agent).cloned();
        let framework_id = self.framework(key).map(|framework| framework.proto_id());
        let (Some(agent), Some(framework_id)) = (agent.filter(|agent| agent.connected), framework_id) else {
            self.count(Counter::InvalidFrameworkToExecutorMessages);
            let (executor, agent) = (&call.executor_id.value, &call.slave_id.value);
            out.warn(format!("Dropping a message for executor {executor}: agent {agent} is not connected"));
            return;
        };
        self.count(Counter::ValidFrameworkToExecutorMessages);
        let message = FrameworkToExecutorMessage {
            slave_id: call.slave_id,
            framework_id,
            executor_id: call.executor_id,
            data: call.data,
        };
        out.push(Output::send(&agent.pid, message));
    }
}
