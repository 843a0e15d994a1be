//! State of an executor on an agent: its container, its connection and its tasks.
//!
//! It holds state and small queries on it; changes are made in the file of each message.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use base::{ExecutorId, FrameworkId, Pid, TaskId};
use cores::{RequestId, StreamId, TimerKey};
use protos::mesos::internal::RegisterExecutorMessage;
use protos::mesos::{self as pb, executor};

use super::container::{ContainerName, VolumeLink};
use super::proof::Proof;
use super::status::GeneratedStatus;
use crate::config::MAX_COMPLETED_TASKS_PER_EXECUTOR;
use crate::disk::paths;

/// Phase of an executor's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutorState {
    /// The container starts, or runs without the executor having subscribed or registered yet.
    Registering,
    /// The executor accepts tasks.
    Running,
    /// The executor is being shut down or destroyed.
    Terminating,
    /// The container has ended; updates of its tasks may still wait for acknowledgements.
    Terminated,
}

/// Way in which an executor is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecutorLink {
    /// The executor cannot be reached yet, or any more.
    None,
    /// The executor is reached over its event stream.
    Stream(StreamId),
    /// The executor uses HTTP, and its stream is closed.
    Closed,
    /// The executor is reached by libprocess messages to this pid.
    Pid(Pid),
}

/// First message of an executor whose start has not been reported yet.
#[derive(Clone, Debug)]
pub(crate) enum DeferredRegistration {
    /// A SUBSCRIBE call.
    Subscribe(StreamId, RequestId, Box<executor::Call>, Proof),
    /// A RegisterExecutorMessage, with the pid of its sender.
    Register(Pid, RegisterExecutorMessage),
}

/// A task or a task group that was not sent to its executor yet.
#[derive(Clone, Debug)]
pub enum Queued {
    /// A single task.
    Task(Arc<pb::TaskInfo>),
    /// Tasks that start together or not at all.
    Group(Vec<Arc<pb::TaskInfo>>),
}

impl Queued {
    /// Returns the tasks.
    pub fn tasks(&self) -> &[Arc<pb::TaskInfo>] {
        match self {
            Queued::Task(task) => std::slice::from_ref(task),
            Queued::Group(tasks) => tasks,
        }
    }
}

/// An executor on an agent.
#[derive(Clone, Debug)]
pub struct Executor {
    /// Id of the executor.
    pub id: ExecutorId,
    /// Id of the executor's framework.
    pub framework_id: FrameworkId,
    /// Executor info.
    pub info: Arc<pb::ExecutorInfo>,
    /// Name of the executor's container.
    pub container: ContainerName,
    /// Directory of the run, below the meta directory.
    pub(crate) run: Arc<str>,
    /// Absolute path of the sandbox.
    pub directory: Arc<str>,
    /// Phase of the executor's life.
    pub state: ExecutorState,
    /// Way in which the executor is reached.
    pub link: ExecutorLink,
    /// Pid of the container's first process; `None` until the container runs.
    pub pid: Option<u32>,
    /// Whether the agent created the executor for a command task.
    pub generated_for_command_task: bool,
    /// Whether the executor's calls over HTTP are rejected without its token.
    pub(crate) needs_token: bool,
    /// Event stream over the connection that the executor was started with; `None` if it uses another one.
    pub(crate) own_stream: Option<StreamId>,
    /// User that the executor runs as; `None`: the agent's own user.
    pub user: Option<String>,
    /// Tasks that were not sent to the executor yet, oldest first.
    pub queued: Vec<Queued>,
    /// Tasks that were sent to the executor and have not ended.
    pub launched: BTreeMap<TaskId, Arc<pb::Task>>,
    /// Tasks that have ended without an acknowledgement of their last update.
    pub terminated: BTreeMap<TaskId, Arc<pb::Task>>,
    /// Tasks whose last update is acknowledged, oldest first.
    pub completed: VecDeque<Arc<pb::Task>>,
    /// Networks that the container has joined; empty for the host's network.
    pub(crate) networks: Vec<pb::NetworkInfo>,
    /// Traffic class of the container's packets; `None` if they are not marked.
    pub class: Option<u32>,
    /// Persistent volumes that are visible in the container.
    pub(crate) volumes: Vec<VolumeLink>,
    /// State, reason and message of tasks that have not ended when the container ends.
    pub(crate) ending: Option<GeneratedStatus>,
    /// Resources whose limit the container has exceeded, if it is destroyed for that.
    pub(crate) limitation: Vec<pb::Resource>,
    /// First message of the executor, if it arrived before the report of its start. It is handled once the pid is
    /// checkpointed.
    pub(crate) deferred: Option<DeferredRegistration>,
    /// Timer of the registration or the shutdown.
    pub(crate) timer: Option<TimerKey>,
    /// Whether any task was sent to the executor.
    pub(crate) was_given_a_task: bool,
    /// Wait status of the first process; `None` until it has ended.
    pub(crate) status: Option<i32>,
}

impl Executor {
    /// Returns whether the program is the default executor.
    pub(crate) fn is_default(&self) -> bool {
        self.info.r#type == Some(pb::executor_info::Type::Default as i32)
    }

    /// Returns whether the program is the agent's own: the command executor or the default executor. Such an executor
    /// has a connection of its own and never registers by a message.
    pub(crate) fn is_builtin(&self) -> bool {
        self.is_default() || self.generated_for_command_task
    }

    /// Returns whether the executor is subscribed over the connection that it was started with.
    pub(crate) fn has_own_stream(&self) -> bool {
        self.own_stream.is_some_and(|stream| self.link == ExecutorLink::Stream(stream))
    }

    /// Returns the container's control groups, for a task status.
    pub fn cgroup_info(&self) -> Option<pb::CgroupInfo> {
        let classid = Some(self.class?);
        Some(pb::CgroupInfo { net_cls: Some(pb::cgroup_info::NetCls { classid }) })
    }

    /// Returns whether this is the pid of the executor's v0 driver.
    pub(crate) fn is_at(&self, pid: &Pid) -> bool {
        matches!(&self.link, ExecutorLink::Pid(own) if own == pid)
    }

    /// Creates an executor without tasks, whose container has not been started. Its sandbox has the same path below the
    /// work directory as its run below the meta directory.
    pub(crate) fn new(
        id: ExecutorId,
        framework_id: FrameworkId,
        info: pb::ExecutorInfo,
        container: ContainerName,
        (work_dir, run): (&str, &str),
        user: Option<String>,
    ) -> Executor {
        Executor {
            id,
            framework_id,
            info: Arc::new(info),
            container,
            run: run.into(),
            directory: paths::below(work_dir, run).into(),
            state: ExecutorState::Registering,
            link: ExecutorLink::None,
            pid: None,
            generated_for_command_task: false,
            needs_token: false,
            own_stream: None,
            user,
            queued: Vec::new(),
            launched: BTreeMap::new(),
            terminated: BTreeMap::new(),
            completed: VecDeque::new(),
            networks: Vec::new(),
            class: None,
            volumes: Vec::new(),
            ending: None,
            limitation: Vec::new(),
            deferred: None,
            timer: None,
            was_given_a_task: false,
            status: None,
        }
    }

    /// Returns whether this task is queued, launched, or ended without acknowledgement.
    pub fn has_task(&self, task: &TaskId) -> bool {
        self.launched.contains_key(task) || self.terminated.contains_key(task) || self.queued_task(task).is_some()
    }

    /// Returns a task that was not sent to this executor yet.
    pub fn queued_task(&self, task: &TaskId) -> Option<&Arc<pb::TaskInfo>> {
        self.queued.iter().flat_map(Queued::tasks).find(|queued| queued.task_id.value == task.as_str())
    }

    /// Returns whether updates of its tasks remain to be sent or acknowledged.
    pub fn has_incomplete_tasks(&self) -> bool {
        !self.queued.is_empty() || !self.launched.is_empty() || !self.terminated.is_empty()
    }

    /// Moves an ended task to the completed ones.
    pub(crate) fn complete(&mut self, task: &TaskId) {
        if let Some(task) = self.terminated.remove(task) {
            self.completed.push_back(task);
            while self.completed.len() > MAX_COMPLETED_TASKS_PER_EXECUTOR {
                self.completed.pop_front();
            }
        }
    }

    /// Returns the resources of the executor and of its tasks that have not ended.
    pub fn resources(&self) -> Vec<pb::Resource> {
        let queued = self.queued.iter().flat_map(Queued::tasks).flat_map(|task| &task.resources);
        let launched = self.launched.values().flat_map(|task| &task.resources);
        self.info.resources.iter().chain(queued).chain(launched).cloned().collect()
    }
}
