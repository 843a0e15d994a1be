//! KILL_TASK, a call that Mesos does not have: an operator kills one task of any framework.

use std::sync::Arc;

use authorizer::Action;
use cores::{CallError, RequestId};

use crate::io::{Done, KillTask, Outbox, Output};
use crate::master::Master;

impl Master {
    /// Kills a task as if its framework had killed it, which receives the usual status updates. A principal needs the
    /// permission to tear down the framework.
    pub(crate) fn kill_task(
        &mut self,
        request: RequestId,
        kill: KillTask,
        principal: Option<Arc<str>>,
        out: &mut Outbox,
    ) {
        let result = self.try_kill_task(kill, principal.as_deref(), out);
        out.push(Output::respond(request, result.map(|()| Done::Accepted)));
    }

    fn try_kill_task(&mut self, kill: KillTask, principal: Option<&str>, out: &mut Outbox) -> Result<(), CallError> {
        let KillTask { framework, task, kill_policy } = kill;
        let key = self.framework_by_id(framework.as_str());
        let key = key.ok_or_else(|| CallError::invalid(format!("No framework has the id '{framework}'")))?;
        let owner = self.framework(key).and_then(|framework| framework.info.principal.clone());
        self.authorize(principal, Action::TeardownFramework, owner.as_deref(), out)?;
        let known = self.task_by_id(key, task.as_str()).and_then(|task| self.task(key, task)).cloned();
        let known = known.ok_or_else(|| {
            CallError::invalid(format!("No task '{task}' of framework '{framework}' is staging or running"))
        })?;
        out.info(format!("Killing task {task} of framework {framework} for an operator"));
        self.send_kill(key, &known, kill_policy, out);
        Ok(())
    }
}
