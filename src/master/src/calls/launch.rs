//! LAUNCH of an ACCEPT: each task is launched or rejected separately.

use std::sync::Arc;

use base::TaskId;
use protos::mesos::internal::{ResourceVersionUuid, RunTaskMessage};
use protos::mesos::offer::{Operation, operation::Type};
use protos::mesos::task_status::Reason;
use protos::mesos::{ExecutorInfo, TaskInfo, TaskState};
use resources::{Format, Resource, Resources};

use super::accept::{AcceptedOffers, tasks_of};
use super::normalize;
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::refusals::Fault;
use crate::state::{Agent, AgentKey, Executor, FrameworkKey, Task, TaskKey};
use crate::tasks::{MasterStatus, task_of};
use crate::validate::{self, Launch, Needs};

impl Master {
    pub(crate) fn launch(&mut self, accepted: &mut AcceptedOffers, operation: Operation, out: &mut Outbox) {
        let with_id = operation.id.is_some();
        for mut task in tasks_of(operation) {
            let Some(framework) = self.framework(accepted.framework) else { return };
            normalize::task(&mut task, framework, accepted.role.as_str());
            if let Err(why) = self.config.authorizer.may_launch(&framework.info, [&task], None) {
                self.task_error(accepted.framework, &task, Reason::TaskUnauthorized, why.to_string(), out);
                continue;
            }
            let checked = match with_id {
                true => Err("Operation 'LAUNCH' must not have an id".to_owned()),
                false => self.check_task(accepted, &task),
            };
            match checked {
                Ok(needs) => self.run_task(accepted, task, needs, out),
                Err(why) => self.task_error(accepted.framework, &task, Reason::TaskInvalid, why, out),
            }
        }
    }

    fn check_task(&self, accepted: &AcceptedOffers, task: &TaskInfo) -> Result<Needs, String> {
        let (Some(framework), Some(agent)) = (self.framework(accepted.framework), self.agent(accepted.agent)) else {
            return Err("The agent is gone".to_owned());
        };
        let in_use = self.frameworks.task_id_in_use(accepted.framework, &task.task_id.value);
        let last = self.frameworks.last_needs(accepted.framework);
        let key = accepted.framework;
        validate::task(&Launch { framework, key, agent, in_use, available: &accepted.available(), last }, task)
    }

    /// Reports TASK_ERROR for a task that is not launched.
    pub(crate) fn task_error(
        &mut self,
        key: FrameworkKey,
        task: &TaskInfo,
        reason: Reason,
        message: String,
        out: &mut Outbox,
    ) {
        out.warn(format!("Refusing task '{}': {message}", task.task_id.value));
        let is_denied = matches!(reason, Reason::TaskUnauthorized | Reason::TaskGroupUnauthorized);
        self.refuse_launch(key, task, Fault::of(is_denied, &*message), out);
        let status = MasterStatus {
            task_id: task.task_id.clone(),
            state: TaskState::TaskError,
            reason: Some(reason),
            message,
            agent_id: Some(task.slave_id.clone()),
            executor_id: task.executor.as_ref().map(|executor| executor.executor_id.clone()),
            unreachable_time: None,
        };
        self.refuse_task(key, status, out);
    }

    fn run_task(&mut self, accepted: &mut AcceptedOffers, mut task: TaskInfo, needs: Needs, out: &mut Outbox) {
        let launch_executor = needs.launch_executor;
        if self.add_launched_task(accepted, &mut task, needs, out).is_none() {
            return;
        }
        self.frameworks.count_operation(accepted.framework, Type::Launch);
        let (Some(framework), Some(agent)) = (self.framework(accepted.framework), self.agent(accepted.agent)) else {
            return;
        };
        let message = RunTaskMessage {
            framework_id: None,
            framework: Arc::clone(&framework.info).into(),
            pid: Some(framework.pid().map(ToString::to_string).unwrap_or_default()),
            resource_version_uuids: versions_of(agent),
            launch_executor: Some(launch_executor),
            task,
        };
        out.push(Output::send(&agent.pid, message));
    }

    /// Adds a task and, if it is new, its executor. Their resources are converted to the format that the agent reads.
    pub(crate) fn add_launched_task(
        &mut self,
        accepted: &mut AcceptedOffers,
        task: &mut TaskInfo,
        needs: Needs,
        out: &mut Outbox,
    ) -> Option<TaskKey> {
        // The id was checked before.
        let id = TaskId::new(&task.task_id.value).ok()?;
        self.mark_used(accepted, &needs.resources);
        if let (Some((id, resources)), Some(info)) = (&needs.executor, &task.executor)
            && needs.launch_executor
        {
            self.start_executor(accepted, id.clone(), info, resources.clone());
        }
        let executor_id = task.executor.as_ref().map(|executor| executor.executor_id.clone());
        let framework_id = self.framework(accepted.framework)?.proto_id();
        let row = Task {
            id: id.clone(),
            framework: accepted.framework,
            agent: accepted.agent,
            proto: task_of(task, framework_id, executor_id),
            resources: self.frameworks.share_needs(accepted.framework, needs.resources),
            released: false,
        };
        let format = self.agent_format(accepted.agent);
        if format != Format::PostRefinement || !row.resources.is_written_as(&task.resources) {
            task.resources = row.resources.to_proto(format);
        }
        if let (Some(info), Some((_, resources))) = (&mut task.executor, &needs.executor) {
            info.resources = resources.to_proto(format);
        }
        let key = self.add_task(id, row)?;
        self.announce_task_added(accepted.framework, key, out);
        Some(key)
    }

    /// Adds a new executor and the resources that it uses.
    pub(crate) fn start_executor(
        &mut self,
        accepted: &mut AcceptedOffers,
        id: base::ExecutorId,
        info: &ExecutorInfo,
        resources: Resources,
    ) {
        self.mark_used(accepted, &resources);
        let mut info = info.clone();
        info.resources = resources.to_proto(Format::PostRefinement);
        let executor = Executor { framework: accepted.framework, info: Arc::new(info), resources };
        self.agents.add_executor(accepted.agent, id, executor);
    }

    /// Marks resources of the accepted offers as used. For shared resources that earlier tasks of the ACCEPT use
    /// already, each task gets a further copy (RES-45).
    pub(crate) fn mark_used(&mut self, accepted: &mut AcceptedOffers, resources: &Resources) {
        if !resources.iter().any(Resource::is_shared) {
            accepted.left -= resources;
            accepted.unreported += resources;
            return;
        }
        let shared = resources.shared();
        let again = &shared - &accepted.left;
        accepted.left -= resources;
        accepted.shared += &(&shared - &accepted.shared);
        let (Some(framework), Some(agent)) = (self.frameworks.get(accepted.framework), self.agents.get(accepted.agent))
        else {
            return;
        };
        if again.is_empty() {
            self.allocation.mark_used(&framework.id, &agent.id, &accepted.role, resources);
        } else {
            self.allocation.mark_used(&framework.id, &agent.id, &accepted.role, &(resources - &again));
            self.allocation.add_shared_copies(&framework.id, &agent.id, &accepted.role, &again);
        }
    }

    /// Notifies the allocator of the resources that were marked as used since the last call.
    pub(crate) fn report_used(&mut self, accepted: &mut AcceptedOffers) {
        if accepted.unreported.is_empty() {
            return;
        }
        let taken = std::mem::take(&mut accepted.unreported);
        if let (Some(framework), Some(agent)) =
            (self.frameworks.get(accepted.framework), self.agents.get(accepted.agent))
        {
            self.allocation.mark_used(&framework.id, &agent.id, &accepted.role, &taken);
        }
    }

    /// Returns the format in which an agent reads resources. Agents without RESERVATION_REFINEMENT read only the older
    /// one.
    pub(crate) fn agent_format(&self, agent: AgentKey) -> Format {
        match self.agent(agent).is_none_or(|agent| agent.capabilities.reservation_refinement) {
            true => Format::PostRefinement,
            false => Format::PreRefinement,
        }
    }
}

/// Returns the versions of an agent's resources on which a launch is based.
pub(crate) fn versions_of(agent: &Agent) -> Vec<ResourceVersionUuid> {
    let own = agent.resource_version.iter();
    let own = own.map(|uuid| ResourceVersionUuid { resource_provider_id: None, uuid: uuid.clone() });
    let provided = agent.providers.values().map(|provider| ResourceVersionUuid {
        resource_provider_id: provider.info.id.clone(),
        uuid: provider.version.clone(),
    });
    own.chain(provided).collect()
}
