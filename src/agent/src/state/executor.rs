//! An executor as an agent knows it: its container, how to reach it, and its tasks.
//!
//! It holds state and small questions about it; what changes the state is in the file of each message.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use base::{ExecutorId, FrameworkId, Pid, TaskId};
use cores::{RequestId, StreamId, TimerKey};
use protos::mesos::internal::RegisterExecutorMessage;
use protos::mesos::{self as pb, executor};

use super::container::{ContainerName, VolumeLink};
use super::proof::Proof;
use super::status::Verdict;
use crate::config::MAX_COMPLETED_TASKS_PER_EXECUTOR;
use crate::disk::paths;

/// How far an executor has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutorState {
    /// Its container starts, or runs without having subscribed or registered yet.
    Registering,
    /// It takes tasks.
    Running,
    /// It is being shut down or destroyed.
    Terminating,
    /// Its container is gone; updates of its tasks may still wait for their acknowledgement.
    Terminated,
}

/// How an executor is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecutorLink {
    /// Not at all (yet).
    None,
    /// Over its event stream.
    Stream(StreamId),
    /// It speaks HTTP, and its stream is closed.
    Closed,
    /// By libprocess messages.
    Pid(Pid),
}

/// How an executor has first spoken.
#[derive(Clone, Debug)]
pub(crate) enum Early {
    /// By a SUBSCRIBE call.
    Subscribe(StreamId, RequestId, Box<executor::Call>, Proof),
    /// By a message from there.
    Register(Pid, RegisterExecutorMessage),
}

/// What waits for an executor to come up.
#[derive(Clone, Debug)]
pub enum Queued {
    /// One task.
    Task(Arc<pb::TaskInfo>),
    /// Tasks that start together or not at all.
    Group(Vec<Arc<pb::TaskInfo>>),
}

impl Queued {
    /// Its tasks.
    pub fn tasks(&self) -> &[Arc<pb::TaskInfo>] {
        match self {
            Queued::Task(task) => std::slice::from_ref(task),
            Queued::Group(tasks) => tasks,
        }
    }
}

/// An executor as an agent knows it.
#[derive(Clone, Debug)]
pub struct Executor {
    /// Its id.
    pub id: ExecutorId,
    /// Its framework.
    pub framework_id: FrameworkId,
    /// Its info.
    pub info: Arc<pb::ExecutorInfo>,
    /// Its container.
    pub container: ContainerName,
    /// The directory of its run, below the meta directory.
    pub(crate) run: Arc<str>,
    /// Its sandbox, absolute.
    pub directory: Arc<str>,
    /// How far it has got.
    pub state: ExecutorState,
    /// How it is reached.
    pub link: ExecutorLink,
    /// Its first process, once its container runs.
    pub pid: Option<u32>,
    /// Whether the agent made it up for a command task.
    pub generated_for_command_task: bool,
    /// Whether its calls over HTTP are refused without its token.
    pub(crate) needs_token: bool,
    /// The event stream over the connection that it was started with, if it was.
    pub(crate) own_stream: Option<StreamId>,
    /// What it runs as; none means the agent's own user.
    pub user: Option<String>,
    /// Tasks that it has not been given yet, oldest first.
    pub queued: Vec<Queued>,
    /// Tasks that it has been given and that have not ended.
    pub launched: BTreeMap<TaskId, Arc<pb::Task>>,
    /// Tasks whose end is not acknowledged.
    pub terminated: BTreeMap<TaskId, Arc<pb::Task>>,
    /// Tasks whose end is acknowledged, oldest first.
    pub completed: VecDeque<Arc<pb::Task>>,
    /// The networks that its container is on; none for the host's.
    pub(crate) networks: Vec<pb::NetworkInfo>,
    /// What its container's packets are marked with, if they are.
    pub class: Option<u32>,
    /// The persistent volumes that its container sees.
    pub(crate) volumes: Vec<VolumeLink>,
    /// How its tasks end when its container does.
    pub(crate) ending: Option<Verdict>,
    /// What its container has exceeded, if it is ended for that.
    pub(crate) limitation: Vec<pb::Resource>,
    /// Its first message, before its start was reported: it is handled once its process is recorded.
    pub(crate) early: Option<Early>,
    /// The registration or shutdown timer.
    pub(crate) timer: Option<TimerKey>,
    /// Whether it was given any task.
    pub(crate) was_given_a_task: bool,
    /// The wait status of its process, once it has ended.
    pub(crate) status: Option<i32>,
}

impl Executor {
    /// Whether its program is the default executor.
    pub(crate) fn is_default(&self) -> bool {
        self.info.r#type == Some(pb::executor_info::Type::Default as i32)
    }

    /// Whether its program is the agent's own: that of a command task, or of a pod. It has a connection of its own and
    /// never registers by a message.
    pub(crate) fn is_ours(&self) -> bool {
        self.is_default() || self.generated_for_command_task
    }

    /// Whether it is subscribed over the connection that it was started with.
    pub(crate) fn has_own_stream(&self) -> bool {
        self.own_stream.is_some_and(|stream| self.link == ExecutorLink::Stream(stream))
    }

    /// Its container's control groups for a status.
    pub fn cgroup_info(&self) -> Option<pb::CgroupInfo> {
        let classid = Some(self.class?);
        Some(pb::CgroupInfo { net_cls: Some(pb::cgroup_info::NetCls { classid }) })
    }

    /// Whether this is the process of its v0 driver.
    pub(crate) fn is_at(&self, pid: &Pid) -> bool {
        matches!(&self.link, ExecutorLink::Pid(own) if own == pid)
    }

    /// An executor whose container has not been started, without tasks. Its sandbox lies below the work directory where
    /// its run lies below the meta directory.
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
            early: None,
            timer: None,
            was_given_a_task: false,
            status: None,
        }
    }

    /// Whether this task is queued, launched, or ended without acknowledgement.
    pub fn has_task(&self, task: &TaskId) -> bool {
        self.launched.contains_key(task) || self.terminated.contains_key(task) || self.queued_task(task).is_some()
    }

    /// A task that waits for this executor.
    pub fn queued_task(&self, task: &TaskId) -> Option<&Arc<pb::TaskInfo>> {
        self.queued.iter().flat_map(Queued::tasks).find(|queued| queued.task_id.value == task.as_str())
    }

    /// Whether updates of its tasks remain to be sent or acknowledged.
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

    /// What its container may use: its own resources and those of its tasks that have not ended.
    pub fn resources(&self) -> Vec<pb::Resource> {
        let queued = self.queued.iter().flat_map(Queued::tasks).flat_map(|task| &task.resources);
        let launched = self.launched.values().flat_map(|task| &task.resources);
        self.info.resources.iter().chain(queued).chain(launched).cloned().collect()
    }
}
