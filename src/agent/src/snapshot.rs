//! An immutable view of an agent for readers, cheap to make.
//!
//! Entities are shared with the core, which copies one before it changes it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use base::{AgentId, FrameworkId, Pid, Time};
use protos::mesos as pb;

use crate::agent::AgentState;
use crate::state::Framework;

/// An immutable view of an agent, cheap to make.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Phase of the agent's life.
    pub state: AgentState,
    /// Id of the agent; `None` before the first registration.
    pub id: Option<AgentId>,
    /// Agent info of the registration.
    pub info: Arc<pb::SlaveInfo>,
    /// Total resources, with the current reservations and volumes.
    pub resources: Arc<resources::Resources>,
    /// Pid of the leading master; `None` if there is none.
    pub master: Option<Pid>,
    /// Time of the last registration or reregistration.
    pub registered: Option<Time>,
    /// Duration of this process's recovery; `None` while it recovers.
    pub recovery_time: Option<Duration>,
    /// Frameworks with executors on this agent.
    pub frameworks: Arc<BTreeMap<FrameworkId, Arc<Framework>>>,
    /// Frameworks that have no executors on this agent any more, oldest first.
    pub completed_frameworks: Arc<VecDeque<Arc<Framework>>>,
    /// Configuration of the drain; set while the agent is being drained.
    pub drain: Option<pb::DrainConfig>,
    /// Time at which the drain began.
    pub drain_start: Option<Time>,
    /// Operations whose status has not been acknowledged.
    pub operations: Arc<Vec<Arc<pb::Operation>>>,
    /// Revocable resources that are oversubscribed; `None` without an estimator.
    pub oversubscribed: Option<Arc<resources::Resources>>,
    /// Counters since the start of the agent.
    pub counters: Counters,
    /// Number of directories that wait for their deletion.
    pub garbage: usize,
    /// Time for which garbage is kept at the current use of the disk.
    pub garbage_kept_for: Duration,
}

/// Counters of an agent since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Number of updates that ended a task, by the state's name in lower case without `TASK_`.
    pub tasks: BTreeMap<&'static str, u64>,
    /// Number of executors that have ended.
    pub executors_terminated: u64,
    /// Number of executors that the QoS controller has ended.
    pub executors_preempted: u64,
    /// Number of status updates that were accepted.
    pub valid_status_updates: u64,
    /// Number of status updates that were rejected.
    pub invalid_status_updates: u64,
    /// Number of framework messages that were forwarded.
    pub valid_framework_messages: u64,
    /// Number of framework messages that were dropped.
    pub invalid_framework_messages: u64,
    /// Number of containers that could not be started.
    pub container_launch_errors: u64,
    /// Number of damaged checkpoints that were skipped.
    pub recovery_errors: u64,
    /// Number of directories that garbage collection has deleted.
    pub gc_paths_removed: u64,
}
