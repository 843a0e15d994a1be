//! An agent's connection breaks (mesos-features.md TSK-70, HA-42).

use protos::mesos::TaskState;
use protos::mesos::task_status::Reason;

use crate::io::Outbox;
use crate::master::Master;
use crate::state::{AgentKey, FrameworkKey, TaskKey, is_terminal};
use crate::tasks::MasterStatus;
use crate::timers::Timer;

impl Master {
    /// The link to an agent is broken: its offers are void, its time to reregister begins.
    pub(crate) fn agent_exited(&mut self, key: AgentKey, out: &mut Outbox) {
        let Some(agent) = self.agent_mut(key).filter(|agent| agent.connected) else { return };
        agent.connected = false;
        out.info(format!("Agent {} ({}) is disconnected", agent.id, agent.info.hostname));
        self.tell_activity(key);
        self.rescind_offers_on(key, out);
        self.lose_unsaved_tasks(key, out);
        let at = self.now + self.config.agent_reregister_timeout;
        if let Some(book) = self.agent_books.get_mut(&key) {
            let token = self.timers.set(at, Timer::AgentReregister { agent: key, epoch: book.epoch });
            if let Some(old) = book.reregister.replace(token) {
                self.timers.cancel(old);
            }
        }
    }

    /// Tasks and executors of frameworks without checkpointing do not survive their agent's process.
    fn lose_unsaved_tasks(&mut self, key: AgentKey, out: &mut Outbox) {
        let Some(book) = self.agent_books.get(&key) else { return };
        let unsaved = |framework: &FrameworkKey| self.framework(*framework).is_some_and(|f| !f.info.checkpoint());
        let tasks: Vec<(FrameworkKey, TaskKey)> = book.tasks.iter().filter(|(f, _)| unsaved(f)).copied().collect();
        let executors = self.agent(key).map(|agent| agent.executors.clone()).unwrap_or_default();
        let executors: Vec<_> = executors.into_iter().filter(|(framework, _)| unsaved(framework)).collect();
        for (framework, task) in tasks {
            let Some(row) = self.task(framework, task) else { continue };
            if !is_terminal(row.state()) {
                let lost = TaskState::TaskLost;
                let status = MasterStatus::of(row, lost, Reason::SlaveDisconnected, "Agent disconnected");
                self.declare_task(framework, task, status, out);
            }
            self.retire_task(framework, task);
        }
        for (framework, mine) in executors {
            for id in mine.keys() {
                self.remove_executor(key, framework, id.as_str());
            }
        }
    }

    /// A disconnected agent's time is over; void if it has reregistered since.
    pub(crate) fn reregister_timeout(&mut self, key: AgentKey, epoch: u64, out: &mut Outbox) {
        let current = self.agent_books.get_mut(&key).filter(|book| book.epoch == epoch && !book.removal_scheduled);
        let Some(book) = current else { return };
        book.removal_scheduled = true;
        self.schedule_removal(key, "it has not reregistered in time after its connection broke", out);
    }
}
