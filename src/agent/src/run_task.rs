//! Handles RunTaskMessage and RunTaskGroupMessage: the master has accepted a launch for this agent.
//!
//! This file validates launches; `launch.rs` starts executors and sends them their tasks.

use std::sync::Arc;

use base::{ExecutorId, FrameworkId, Pid, TaskId, Time};
use protos::Shared;
use protos::mesos::internal::{ResourceVersionUuid, RunTaskGroupMessage, RunTaskMessage};
use protos::mesos::{self as pb, TaskState, task_status::Reason};

use crate::agent::{Agent, AgentState};
use crate::command_executor_info::command_executor_info;
use crate::output::Outbox;
use crate::state::{Framework, FrameworkState, GeneratedStatus, Launch, LaunchError, Queued, loss_state};

impl Agent {
    /// Handles RunTaskMessage: launches one task, with an executor of its own, one of its framework, or the command
    /// executor.
    pub(crate) fn run_task(&mut self, message: RunTaskMessage, now: Time, out: &mut Outbox) {
        let mut task = message.task;
        adopt_allocation(&message.framework, &mut task.resources);
        let (executor, generated_for_command_task) = match task.executor.clone() {
            Some(executor) => (*executor, false),
            None => (command_executor_info(&self.config, &message.framework, &task), true),
        };
        let pid = message.pid.as_deref().map(Pid::parse_lenient).filter(|pid| !pid.is_empty());
        let launch = Launch {
            executor,
            generated_for_command_task,
            queued: Queued::Task(Arc::new(task)),
            expects_new: message.launch_executor,
        };
        self.run(message.framework, pid, &message.resource_version_uuids, launch, now, out);
    }

    /// Handles RunTaskGroupMessage: launches tasks together, on an executor that uses HTTP.
    pub(crate) fn run_task_group(&mut self, message: RunTaskGroupMessage, now: Time, out: &mut Outbox) {
        let mut executor = message.executor;
        adopt_allocation(&message.framework, &mut executor.resources);
        let tasks = message.task_group.tasks.into_iter().map(|mut task| {
            adopt_allocation(&message.framework, &mut task.resources);
            task.executor = Some(Box::new(executor.clone()));
            Arc::new(task)
        });
        let queued = Queued::Group(tasks.collect());
        let launch =
            Launch { executor, generated_for_command_task: false, queued, expects_new: message.launch_executor };
        self.run(message.framework, None, &message.resource_version_uuids, launch, now, out);
    }

    fn run(
        &mut self,
        info: Shared<pb::FrameworkInfo>,
        pid: Option<Pid>,
        versions: &[ResourceVersionUuid],
        mut launch: Launch,
        now: Time,
        out: &mut Outbox,
    ) {
        if matches!(self.state, AgentState::Recovering | AgentState::Terminating) {
            out.warn("Dropped a launch: the agent is recovering or terminating");
            return;
        }
        let id = info.id.as_ref().map(|id| FrameworkId::of(&id.value));
        let Some(Ok(id)) = id else {
            out.warn(format!("Dropped a launch: framework '{}' has no valid id", info.name));
            return;
        };
        if self.frameworks.get(id.as_str()).is_some_and(|framework| framework.state == FrameworkState::Terminating) {
            out.warn(format!("Dropped a launch: framework {id} is being shut down"));
            return;
        }
        complete_executor(&mut launch.executor, &id);
        if self.has_unanswered_registration() {
            let drop = LaunchError::new(
                Reason::SlaveDisconnected,
                "The agent is reregistering and has already reported its tasks",
            );
            return self.drop_launch(&id, &info, &launch, &drop, now, out);
        }
        if let Err(drop) = self.check(&info, versions, &launch) {
            return self.drop_launch(&id, &info, &launch, &drop, now, out);
        }
        if let Err(drop) = self.authorize(&info, &launch) {
            return self.drop_launch(&id, &info, &launch, &drop, now, out);
        }
        if !self.frameworks.contains(id.as_str()) {
            self.add_framework(Framework::new(id.clone(), info.into_arc(), pid), out);
        }
        self.launch(&id, launch, now, out);
    }

    /// Checks with this agent's access control lists whether a framework may run the tasks as their users, as the
    /// master has done with its own. For a single task, the executor has the task's user.
    fn authorize(&self, info: &pb::FrameworkInfo, launch: &Launch) -> Result<(), LaunchError> {
        let (reason, executor) = match &launch.queued {
            Queued::Task(_) => (Reason::TaskUnauthorized, None),
            Queued::Group(_) => (Reason::TaskGroupUnauthorized, Some(&launch.executor)),
        };
        let tasks = launch.queued.tasks().iter().map(|task| &**task);
        let allowed = self.config.authorizer.may_launch(info, tasks, executor);
        allowed.map_err(|why| LaunchError { state: TaskState::TaskError, reason, message: why.to_string() })
    }

    /// Checks whether a launch is valid and may take place now.
    fn check(
        &self,
        info: &pb::FrameworkInfo,
        versions: &[ResourceVersionUuid],
        launch: &Launch,
    ) -> Result<(), LaunchError> {
        let invalid = |message: String| LaunchError::new(Reason::TaskInvalid, message);
        if self.drain.is_some() {
            return Err(LaunchError::new(Reason::SlaveDraining, "Task was received while agent was already draining"));
        }
        if let Some(why) = self.refusal("Launch") {
            // Mesos has no reason for a disk that does not accept writes; this one is the closest.
            return Err(LaunchError::new(Reason::GcError, why));
        }
        let own = versions.iter().find(|version| version.resource_provider_id.is_none());
        if own.is_some_and(|own| own.uuid.value[..] != self.resource_version) {
            return Err(LaunchError::new(Reason::InvalidOffers, "Task assumes outdated resource state"));
        }
        ExecutorId::check(&launch.executor.executor_id.value)
            .map_err(|why| invalid(format!("Invalid executor id: {why}")))?;
        let tasks = launch.queued.tasks();
        if tasks.is_empty() {
            return Err(invalid("The task group is empty".to_owned()));
        }
        for (index, task) in tasks.iter().enumerate() {
            let id = &task.task_id.value;
            TaskId::check(id).map_err(|why| invalid(format!("Invalid task id: {why}")))?;
            if tasks[..index].iter().any(|other| other.task_id.value == *id) {
                return Err(invalid(format!("The task group has two tasks with the id '{id}'")));
            }
            if task.resources.iter().any(|resource| resource.allocation_info.is_none()) {
                let roles = info.roles.len();
                return Err(invalid(format!(
                    "A resource of task '{id}' has no role, and its framework has {roles} roles"
                )));
            }
        }
        if let Some(why) = tasks.iter().find_map(|task| self.cannot_limit(task)) {
            // An unexpected reason, but Mesos uses it too (AGT-41).
            return Err(LaunchError::new(Reason::GcError, why));
        }
        let unknown = |resource: &&pb::Resource| !self.has_checkpointed(resource);
        let used = tasks.iter().flat_map(|task| &task.resources).chain(&launch.executor.resources);
        if used.clone().any(|resource| unknown(&resource)) {
            return Err(LaunchError::new(
                Reason::ResourcesUnknown,
                "The checkpointed resources being used by the task or executor are unknown to the agent",
            ));
        }
        Ok(())
    }

    /// Returns why a task cannot have the limits that it requests. Docker sets the limits of its own containers.
    fn cannot_limit(&self, task: &pb::TaskInfo) -> Option<&'static str> {
        let docker = task
            .container
            .as_ref()
            .is_some_and(|container| container.r#type == pb::container_info::Type::Docker as i32);
        let wants = |name| !docker && task.limits.contains_key(name);
        if wants("cpus") && !self.config.can_limit.cpus {
            return Some("CPU limits need the agent's isolator cgroups/cpu");
        }
        (wants("mem") && !self.config.can_limit.mem).then_some("Memory limits need the agent's isolator cgroups/mem")
    }

    /// Returns whether the agent has the reservation or volume that a task uses.
    fn has_checkpointed(&self, used: &pb::Resource) -> bool {
        let plain = used.disk.is_none() && used.reservations.is_empty();
        if plain || used.provider_id.is_some() {
            return true;
        }
        let Ok(used) = resources::resource_from_proto(used) else { return false };
        let used = used.with_allocation(None);
        !used.needs_checkpointing() || self.total.contains_resource(&used)
    }

    /// Reports the tasks of a launch as dropped or invalid, and tells the master that there is no new executor.
    pub(crate) fn drop_launch(
        &mut self,
        framework: &FrameworkId,
        info: &pb::FrameworkInfo,
        launch: &Launch,
        drop: &LaunchError,
        now: Time,
        out: &mut Outbox,
    ) {
        let state = match drop.state {
            TaskState::TaskError => TaskState::TaskError,
            lost => loss_state(info, lost),
        };
        let generated = GeneratedStatus { state, reason: drop.reason, message: drop.message.clone() };
        let executor = ExecutorId::of(&launch.executor.executor_id.value).ok();
        let mut reported = Vec::new();
        for task in launch.queued.tasks() {
            let id = task.task_id.value.as_str();
            if !reported.contains(&id) {
                reported.push(id);
                self.report(framework, executor.as_ref(), id, &generated, now, out);
                if let Some(id) = TaskId::new(id).ok().filter(|_| self.checkpoint_failure.is_some()) {
                    self.refused.push((framework.clone(), id));
                }
            }
        }
        if launch.expects_new == Some(true) && !launch.generated_for_command_task {
            self.exited_executor(framework, &launch.executor.executor_id.value, -1, out);
        }
    }
}

/// Sets the role of resources without an allocation, as old masters send them, to the framework's only role.
fn adopt_allocation(info: &pb::FrameworkInfo, resources: &mut [pb::Resource]) {
    let multi_role = crate::state::is_capable(info, pb::framework_info::capability::Type::MultiRole);
    #[allow(deprecated)]
    let role = match (multi_role, info.roles.as_slice()) {
        (false, _) => info.role().to_owned(),
        (true, [role]) => role.clone(),
        (true, _) => return,
    };
    for resource in resources.iter_mut().filter(|resource| resource.allocation_info.is_none()) {
        resource.allocation_info = Some(pb::resource::AllocationInfo { role: Some((&role).into()) });
    }
}

/// Sets the framework id of an executor to the framework that launches it.
fn complete_executor(executor: &mut pb::ExecutorInfo, framework: &FrameworkId) {
    executor.framework_id = Some(pb::FrameworkId { value: framework.into() });
}
