//! ExitedExecutorMessage: an executor has terminated.

use base::Pid;
use protos::mesos::internal::ExitedExecutorMessage;

use crate::counters::Counter;
use crate::io::Outbox;
use crate::master::Master;

impl Master {
    pub(crate) fn exited_executor(&mut self, from: &Pid, message: ExitedExecutorMessage, out: &mut Outbox) {
        self.count(Counter::MessagesExitedExecutor);
        let (agent_id, id) = (&message.slave_id.value, &message.executor_id.value);
        let agent = match self.reporting_agent(from, agent_id) {
            Ok(agent) => agent,
            Err(why) => return out.warn(format!("Ignoring the end of executor {id}: {why}")),
        };
        let Some(framework) = self.framework_by_id(&message.framework_id.value) else { return };
        if !self.remove_executor(agent, framework, id) {
            out.warn(format!("Ignoring the end of executor {id}: it is not known on agent {agent_id}"));
            return;
        }
        self.frameworks.send_exited_executor(framework, message, out);
        self.agents.check_drained(agent, &self.operations);
    }
}
