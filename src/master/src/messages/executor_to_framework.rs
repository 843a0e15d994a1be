//! ExecutorToFrameworkMessage: what an executor has to say to its framework, by way of the master.

use protos::mesos::internal::ExecutorToFrameworkMessage;

use crate::counters::Counter;
use crate::io::Outbox;
use crate::master::Master;

impl Master {
    pub(crate) fn executor_to_framework(&mut self, message: ExecutorToFrameworkMessage, out: &mut Outbox) {
        self.count(Counter::MessagesExecutorToFramework);
        let known = self.agent_by_id(&message.slave_id.value).is_some();
        let framework = self.framework_by_id(&message.framework_id.value);
        let Some(framework) = framework.filter(|_| known) else {
            self.count(Counter::InvalidExecutorToFrameworkMessages);
            let (agent, framework) = (&message.slave_id.value, &message.framework_id.value);
            out.warn(format!("Dropping an executor's message: agent {agent} or framework {framework} is not known"));
            return;
        };
        if !self.framework(framework).is_some_and(|framework| framework.connected()) {
            self.count(Counter::InvalidExecutorToFrameworkMessages);
            return;
        }
        self.count(Counter::ValidExecutorToFrameworkMessages);
        self.frameworks.tell_message(framework, message, out);
    }
}
