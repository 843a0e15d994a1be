//! Adds the frameworks, tasks and executors that a reregistering agent lists.

use std::sync::Arc;

use base::{ExecutorId, FrameworkId, TaskId, Text};
use protos::mesos::internal::archive;
use protos::mesos::task_status::Reason;
use protos::mesos::{self, resource};
use resources::{Format, Resources, from_proto};
use rustc_hash::FxHashMap;

use crate::io::Outbox;
use crate::master::Master;
use crate::state::{AgentKey, Executor, FrameworkKey, Task, TaskKey, drop_repetition, is_terminal};
use crate::validate::roles_of;

/// Frameworks, tasks and executors that a reregistering agent lists.
pub(crate) struct AgentLists {
    pub frameworks: Vec<mesos::FrameworkInfo>,
    pub tasks: Vec<mesos::Task>,
    pub executors: Vec<mesos::ExecutorInfo>,
    pub completed: Vec<archive::Framework>,
}

/// Checked tasks and executors that a reregistering agent lists.
pub(crate) struct CheckedLists {
    /// Tasks in the form in which their rows keep them: see [`drop_repetition`].
    tasks: Vec<mesos::Task>,
    /// Framework, id and resources of each task, in the order of `tasks`.
    needs: Vec<(FrameworkId, TaskId, Arc<Resources>)>,
    executors: Vec<(FrameworkId, ExecutorId, mesos::ExecutorInfo, Resources)>,
}

impl Master {
    /// Checks the tasks and executors that an agent lists with these frameworks. Old agents leave the allocation of
    /// resources out; it is filled in if the framework has only one role.
    ///
    /// # Errors
    /// A listed task or executor has an invalid id, or resources that cannot be allocated to a role.
    pub(crate) fn check_lists(
        frameworks: &[mesos::FrameworkInfo],
        mut tasks: Vec<mesos::Task>,
        executors: Vec<mesos::ExecutorInfo>,
    ) -> Result<CheckedLists, String> {
        let mut roles: FxHashMap<&str, Vec<&str>> = FxHashMap::default();
        for info in frameworks {
            let id = info.id.as_ref().map(|id| id.value.as_str()).unwrap_or_default();
            roles.insert(id, roles_of(info));
        }
        let mut needs = Vec::with_capacity(tasks.len());
        // Most tasks of an agent have the same resources as the task before them.
        let mut last: Option<(FrameworkId, Vec<mesos::Resource>, Arc<Resources>)> = None;
        for task in &mut tasks {
            let framework = match &last {
                Some((same, ..)) if task.framework_id.value == *same.as_str() => same.clone(),
                _ => framework_id(&task.framework_id.value)?,
            };
            let id = TaskId::of(&task.task_id.value).map_err(|why| format!("task id: {why}"))?;
            let list = std::mem::take(&mut task.resources);
            let resources = match &last {
                Some((of, same, resources)) if *of == framework && *same == list => Arc::clone(resources),
                _ => {
                    let resources = allocated(&list, roles.get(framework.as_str()), "Task", id.as_str())?;
                    let resources = Arc::new(resources);
                    last = Some((framework.clone(), list, Arc::clone(&resources)));
                    resources
                }
            };
            drop_repetition(task);
            needs.push((framework, id, resources));
        }
        let mut checked = CheckedLists { tasks, needs, executors: Vec::new() };
        for info in executors {
            let framework = framework_id(&info.framework_id.clone().unwrap_or_default().value)?;
            let id = ExecutorId::of(&info.executor_id.value).map_err(|why| format!("executor id: {why}"))?;
            let resources = allocated(&info.resources, roles.get(framework.as_str()), "Executor", id.as_str())?;
            checked.executors.push((framework, id, info, resources));
        }
        Ok(checked)
    }

    /// Adds the frameworks that an agent lists and that have not subscribed yet. Frameworks that have completed are
    /// left out.
    pub(crate) fn adopt_frameworks(&mut self, lists: &AgentLists, out: &mut Outbox) {
        for info in &lists.frameworks {
            let text = info.id.as_ref().map(|id| id.value.as_str()).unwrap_or_default();
            let unknown = self.framework_by_id(text).is_none() && !self.frameworks.is_completed(text);
            if let Ok(id) = FrameworkId::new(text)
                && unknown
            {
                self.recover_framework(id, info.clone(), out);
            }
        }
    }

    /// Adds the completed tasks that an agent lists: those that ended before this master was elected.
    pub(crate) fn adopt_completed(&mut self, agent: AgentKey, lists: AgentLists) {
        for archive in lists.completed {
            let id = archive.framework_info.id.unwrap_or_default();
            let Some(key) = self.framework_by_id(&id.value) else { continue };
            self.frameworks.adopt_completed(key, agent, archive.tasks);
        }
    }

    /// Adds the listed tasks and executors that the master does not know. Those of completed frameworks are left out.
    /// Returns the new tasks.
    pub(crate) fn adopt(
        &mut self,
        agent: AgentKey,
        checked: CheckedLists,
        was_unreachable: bool,
        out: &mut Outbox,
    ) -> Vec<(FrameworkKey, TaskKey)> {
        for (framework, id, mut info, resources) in checked.executors {
            let Some(framework) = self.framework_by_id(framework.as_str()) else { continue };
            if self.agent(agent).is_some_and(|row| row.executor(framework, id.as_str()).is_none()) {
                info.resources = resources.to_proto(Format::PostRefinement);
                let executor = Executor { framework, info: Arc::new(info), resources };
                self.agents.add_executor(agent, id, executor);
            }
        }
        let mut added = Vec::new();
        for (proto, (framework, id, resources)) in checked.tasks.into_iter().zip(checked.needs) {
            let Some(framework) = self.framework_by_id(framework.as_str()) else { continue };
            if self.task_by_id(framework, id.as_str()).is_some() || self.is_completed_task(framework, &id, &proto) {
                continue;
            }
            self.frameworks.remove_unreachable_task(framework, id.as_str());
            let Some(task) = self.adopt_task(agent, framework, id, proto, resources) else { continue };
            added.push((framework, task));
            if was_unreachable {
                self.send_reachable_again(framework, task, out);
            }
        }
        added
    }

    /// Returns whether a listed task is terminal and completed already. That happens if its last acknowledgement and
    /// the agent's list crossed. If the acknowledgement is lost, the agent sends the update again.
    fn is_completed_task(&self, framework: FrameworkKey, id: &TaskId, proto: &mesos::Task) -> bool {
        let known = || self.framework(framework)?.completed_tasks.values().find(|task| task.id == *id);
        is_terminal(proto.state()) && known().is_some()
    }

    fn adopt_task(
        &mut self,
        agent: AgentKey,
        framework: FrameworkKey,
        id: TaskId,
        proto: mesos::Task,
        resources: Arc<Resources>,
    ) -> Option<TaskKey> {
        let released = is_terminal(proto.state());
        let task = Task { id: id.clone(), framework, agent, proto, resources, released };
        let key = self.frameworks.add_task(id, task)?;
        // The resources of the task are counted with everything else that the agent lists: see `offer_agent`.
        self.agents.add_task(agent, framework, key, None);
        Some(key)
    }

    /// Sends the framework the state of a task whose agent was unreachable and has reregistered.
    fn send_reachable_again(&mut self, framework: FrameworkKey, task: TaskKey, out: &mut Outbox) {
        self.send_task_state(framework, task, Reason::SlaveReregistered, "Unreachable agent re-reregistered", out);
    }
}

fn framework_id(text: &Text) -> Result<FrameworkId, String> {
    FrameworkId::of(text).map_err(|why| format!("framework id: {why}"))
}

/// Reads the resources of a task or executor. Those without an allocation are allocated to the framework's only role.
fn allocated(list: &[mesos::Resource], roles: Option<&Vec<&str>>, what: &str, id: &str) -> Result<Resources, String> {
    let read = |list: &[mesos::Resource]| from_proto(list).map_err(|why| format!("{what} {id}: {why}"));
    if list.iter().all(|resource| resource.allocation_info.is_some()) {
        return read(list);
    }
    let Some([role]) = roles.map(Vec::as_slice) else {
        return Err(format!("{what} {id} has resources without an allocation role"));
    };
    let mut list = list.to_vec();
    for resource in &mut list {
        resource.allocation_info.get_or_insert(resource::AllocationInfo { role: Some((*role).into()) });
    }
    read(&list)
}
