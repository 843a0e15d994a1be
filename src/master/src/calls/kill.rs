//! KILL: kills a task (SCH-58).

use base::TaskId;
use protos::mesos::KillPolicy;
use protos::mesos::internal::KillTaskMessage;
use protos::mesos::scheduler::call::{Kill, Reconcile, reconcile};

use crate::counters::Counter;
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::state::{FrameworkKey, Task};

impl Master {
    /// Kills a task. An unknown task is reconciled instead; a kill that names another agent than the task's is ignored.
    pub(crate) fn kill(&mut self, key: FrameworkKey, call: Kill, out: &mut Outbox) {
        self.count(Counter::MessagesKillTask);
        let task = self.task_by_id(key, &call.task_id.value).and_then(|task| self.task(key, task)).cloned();
        let Some(task) = task else {
            out.warn(format!("Cannot kill task {}: it is not known", call.task_id.value));
            let task = reconcile::Task { task_id: call.task_id, slave_id: call.slave_id };
            self.reconcile(key, Reconcile { tasks: vec![task] }, out);
            return;
        };
        if call.slave_id.as_ref().is_some_and(|id| *id != task.proto.slave_id) {
            out.warn(format!("Ignoring the kill of task {}: it does not run on the agent that is named", task.id));
            return;
        }
        self.send_kill(key, &task, call.kill_policy, out);
    }

    /// Tells the task's agent to kill the task, at once or when the agent reregisters.
    pub(crate) fn send_kill(
        &mut self,
        key: FrameworkKey,
        task: &Task,
        kill_policy: Option<KillPolicy>,
        out: &mut Outbox,
    ) {
        let Some(agent) = self.agent(task.agent).cloned() else { return };
        if !agent.connected {
            self.remember_kill(key, &task.id, task.agent, out);
            return;
        }
        let message = KillTaskMessage {
            framework_id: task.proto.framework_id.clone(),
            task_id: task.proto.task_id.clone(),
            kill_policy,
        };
        out.push(Output::send(&agent.pid, message));
    }

    /// Keeps a kill until the agent reregisters.
    fn remember_kill(&mut self, key: FrameworkKey, id: &TaskId, agent: crate::state::AgentKey, out: &mut Outbox) {
        out.info(format!("Task {id} will be killed when its agent reregisters"));
        self.agents.keep_kill(agent, key, id);
    }
}
