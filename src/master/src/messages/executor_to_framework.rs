//! ExecutorToFrameworkMessage: an executor sends data to its framework through the master.

use base::Pid;
use protos::mesos::internal::ExecutorToFrameworkMessage;

use crate::counters::Counter;
use crate::io::Outbox;
use crate::master::Master;

impl Master {
    pub(crate) fn executor_to_framework(&mut self, from: &Pid, message: ExecutorToFrameworkMessage, out: &mut Outbox) {
        self.count(Counter::MessagesExecutorToFramework);
        let id = &message.framework_id.value;
        let framework = self.framework_by_id(id).ok_or_else(|| format!("framework {id} is not known"));
        let sent = self.reporting_agent(from, &message.slave_id.value).and(framework);
        let framework = match sent {
            Ok(framework) => framework,
            Err(why) => {
                self.count(Counter::InvalidExecutorToFrameworkMessages);
                out.warn(format!("Dropping an executor's message: {why}"));
                return;
            }
        };
        if !self.framework(framework).is_some_and(|framework| framework.connected()) {
            self.count(Counter::InvalidExecutorToFrameworkMessages);
            return;
        }
        self.count(Counter::ValidExecutorToFrameworkMessages);
        self.frameworks.send_message(framework, message, out);
    }
}
