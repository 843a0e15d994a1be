//! A cheap immutable view of an agent, for readers.
//!
//! Entities are shared with the core, which copies one before it changes it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use base::{AgentId, FrameworkId, Pid, Time};
use protos::mesos as pb;

use crate::agent::AgentState;
use crate::state::Framework;

/// A cheap immutable view of an agent.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// How far the agent has got.
    pub state: AgentState,
    /// Its id, once a master has given it one.
    pub id: Option<AgentId>,
    /// What it registers with.
    pub info: Arc<pb::SlaveInfo>,
    /// Its resources, with reservations and volumes as they are now.
    pub resources: Arc<resources::Resources>,
    /// The leading master.
    pub master: Option<Pid>,
    /// When it last (re)registered.
    pub registered: Option<Time>,
    /// How long this process took for its recovery, once that is over.
    pub recovery_time: Option<Duration>,
    /// Its frameworks.
    pub frameworks: Arc<BTreeMap<FrameworkId, Arc<Framework>>>,
    /// Frameworks that it has no executors of any more, oldest first.
    pub completed_frameworks: Arc<VecDeque<Arc<Framework>>>,
    /// Set while it is being drained.
    pub drain: Option<pb::DrainConfig>,
    /// When the draining began.
    pub drain_start: Option<Time>,
    /// Operations that are not acknowledged.
    pub operations: Arc<Vec<Arc<pb::Operation>>>,
    /// The revocable resources that are offered a second time, if there is an estimator.
    pub oversubscribed: Option<Arc<resources::Resources>>,
    /// What has been counted since the start.
    pub counters: Counters,
    /// Number of directories that wait for their deletion.
    pub garbage: usize,
    /// How long a directory waits for it, at the current use of the disk.
    pub garbage_kept_for: Duration,
}

/// Counters of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Updates that ended a task, by the state's name without `TASK_` in small letters.
    pub tasks: BTreeMap<&'static str, u64>,
    /// Ended executors.
    pub executors_terminated: u64,
    /// Executors ended by the QoS controller.
    pub executors_preempted: u64,
    /// Updates taken.
    pub valid_status_updates: u64,
    /// Updates refused.
    pub invalid_status_updates: u64,
    /// Framework messages passed on.
    pub valid_framework_messages: u64,
    /// Framework messages dropped.
    pub invalid_framework_messages: u64,
    /// Containers that could not be started.
    pub container_launch_errors: u64,
    /// Damaged checkpoints that were skipped.
    pub recovery_errors: u64,
    /// Directories deleted by garbage collection.
    pub gc_paths_removed: u64,
}
