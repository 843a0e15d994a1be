//! The frameworks, tasks and executors that a returning agent lists are added.

use std::sync::Arc;

use base::{ExecutorId, FrameworkId, TaskId};
use protos::mesos::internal::archive;
use protos::mesos::task_status::Reason;
use protos::mesos::{self, resource};
use resources::{Format, Resources, from_proto};
use rustc_hash::FxHashMap;

use crate::io::Outbox;
use crate::master::Master;
use crate::state::{AgentKey, Executor, FrameworkKey, Task, TaskKey, is_terminal, without_repetition};
use crate::validate::roles_of;

/// What a returning agent lists.
pub(crate) struct Returning {
    pub frameworks: Vec<mesos::FrameworkInfo>,
    pub tasks: Vec<mesos::Task>,
    pub executors: Vec<mesos::ExecutorInfo>,
    pub completed: Vec<archive::Framework>,
}

/// Tasks and executors that a returning agent lists, checked.
pub(crate) struct Adoption {
    tasks: Vec<(FrameworkId, TaskId, mesos::Task, Arc<Resources>)>,
    executors: Vec<(FrameworkId, ExecutorId, mesos::ExecutorInfo, Resources)>,
}

impl Master {
    /// Checks tasks and executors that an agent lists with these frameworks. Old agents leave the allocation out; it is
    /// filled in where only one role is possible.
    ///
    /// # Errors
    /// Something listed cannot be booked.
    pub(crate) fn adoption(
        frameworks: &[mesos::FrameworkInfo],
        tasks: Vec<mesos::Task>,
        executors: Vec<mesos::ExecutorInfo>,
    ) -> Result<Adoption, String> {
        let mut roles: FxHashMap<&str, Vec<&str>> = FxHashMap::default();
        for info in frameworks {
            let id = info.id.as_ref().map(|id| id.value.as_str()).unwrap_or_default();
            roles.insert(id, roles_of(info));
        }
        let mut adoption = Adoption { tasks: Vec::with_capacity(tasks.len()), executors: Vec::new() };
        // Most tasks of an agent take what the one before them takes.
        let mut last: Option<(FrameworkId, Vec<mesos::Resource>, Arc<Resources>)> = None;
        for mut task in tasks {
            let framework = framework_id(&task.framework_id.value)?;
            let id = TaskId::new(&task.task_id.value).map_err(|why| format!("task id: {why}"))?;
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
            adoption.tasks.push((framework, id, task, resources));
        }
        for info in executors {
            let framework = framework_id(info.framework_id.as_ref().map(|id| id.value.as_str()).unwrap_or_default())?;
            let id = ExecutorId::new(&info.executor_id.value).map_err(|why| format!("executor id: {why}"))?;
            let resources = allocated(&info.resources, roles.get(framework.as_str()), "Executor", id.as_str())?;
            adoption.executors.push((framework, id, info, resources));
        }
        Ok(adoption)
    }

    /// Adds the frameworks that an agent lists and that no scheduler has subscribed yet, unless they have ended.
    pub(crate) fn adopt_frameworks(&mut self, returning: &Returning, out: &mut Outbox) {
        for info in &returning.frameworks {
            let text = info.id.as_ref().map(|id| id.value.as_str()).unwrap_or_default();
            let unknown = self.framework_by_id(text).is_none() && !self.frameworks.is_completed(text);
            if let Ok(id) = FrameworkId::new(text)
                && unknown
            {
                self.recover_framework(id, info.clone(), out);
            }
        }
    }

    /// Adds tasks that have ended before this master began, as far as the agent still lists them.
    pub(crate) fn adopt_completed(&mut self, agent: AgentKey, returning: Returning) {
        for archive in returning.completed {
            let id = archive.framework_info.id.unwrap_or_default();
            let Some(key) = self.framework_by_id(&id.value) else { continue };
            self.frameworks.adopt_completed(key, agent, archive.tasks);
        }
    }

    /// Adds tasks and executors that are not known, but not those of frameworks that have ended. Returns the new tasks.
    pub(crate) fn adopt(
        &mut self,
        agent: AgentKey,
        adoption: Adoption,
        was_unreachable: bool,
        out: &mut Outbox,
    ) -> Vec<(FrameworkKey, TaskKey)> {
        for (framework, id, mut info, resources) in adoption.executors {
            let Some(framework) = self.framework_by_id(framework.as_str()) else { continue };
            if self.agent(agent).is_some_and(|row| row.executor(framework, id.as_str()).is_none()) {
                info.resources = resources.to_proto(Format::PostRefinement);
                let executor = Executor { framework, info: Arc::new(info), resources };
                self.agents.add_executor(agent, id, executor);
            }
        }
        let mut added = Vec::new();
        for (framework, id, proto, resources) in adoption.tasks {
            let Some(framework) = self.framework_by_id(framework.as_str()) else { continue };
            if self.task_by_id(framework, id.as_str()).is_some() || self.is_done_with(framework, &id, &proto) {
                continue;
            }
            self.frameworks.unstrand_task(framework, id.as_str());
            let Some(task) = self.adopt_task(agent, framework, id, proto, resources) else { continue };
            added.push((framework, task));
            if was_unreachable {
                self.tell_returned(framework, task, out);
            }
        }
        added
    }

    /// Whether an ended task is completed: its last acknowledgement and the agent's list have crossed. If the
    /// acknowledgement is lost, the agent sends the update again.
    fn is_done_with(&self, framework: FrameworkKey, id: &TaskId, proto: &mesos::Task) -> bool {
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
        let proto = without_repetition(proto);
        let released = is_terminal(proto.state());
        let task = Task { id: id.clone(), framework, agent, proto, resources, released };
        self.add_task(id, task)
    }

    /// A task that was unreachable is what it is again.
    fn tell_returned(&mut self, framework: FrameworkKey, task: TaskKey, out: &mut Outbox) {
        self.tell_out_of_turn(framework, task, Reason::SlaveReregistered, "Unreachable agent re-reregistered", out);
    }
}

fn framework_id(text: &str) -> Result<FrameworkId, String> {
    FrameworkId::new(text).map_err(|why| format!("framework id: {why}"))
}

/// Reads resources; those without allocation get the framework's only role.
fn allocated(list: &[mesos::Resource], roles: Option<&Vec<&str>>, what: &str, id: &str) -> Result<Resources, String> {
    let read = |list: &[mesos::Resource]| from_proto(list).map_err(|why| format!("{what} {id}: {why}"));
    if list.iter().all(|resource| resource.allocation_info.is_some()) {
        return read(list);
    }
    let Some([role]) = roles.map(Vec::as_slice) else {
        return Err(format!("{what} {id} does not say which role its resources are allocated to"));
    };
    let mut list = list.to_vec();
    for resource in &mut list {
        resource.allocation_info.get_or_insert(resource::AllocationInfo { role: Some((*role).into()) });
    }
    read(&list)
}
