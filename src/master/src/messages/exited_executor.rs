//! ExitedExecutorMessage: an executor has ended.

use protos::mesos::internal::ExitedExecutorMessage;

use crate::counters::Counter;
use crate::io::Outbox;
use crate::master::Master;

impl Master {
    pub(crate) fn exited_executor(&mut self, message: ExitedExecutorMessage, out: &mut Outbox) {
        self.count(Counter::MessagesExitedExecutor);
        let (agent_id, id) = (&message.slave_id.value, &message.executor_id.value);
        let Some(agent) = self.agent_by_id(agent_id) else {
            out.warn(format!("Ignoring the end of executor {id}: agent {agent_id} is not registered"));
            return;
        };
        let Some(framework) = self.framework_by_id(&message.framework_id.value) else { return };
        if !self.remove_executor(agent, framework, id) {
            out.warn(format!("Ignoring the end of executor {id}: it is not known on agent {agent_id}"));
            return;
        }
        self.frameworks.tell_exited_executor(framework, message, out);
        self.agents.check_drained(agent, &self.operations);
    }
}
