//! Frameworks: their rows, which readers share, completed ones, and the core's own data about them.
//!
//! It sends nothing and does not call the allocator; `events.rs` notifies frameworks. `tasks.rs` has their tasks.

mod tasks;

pub(crate) use tasks::TaskChange;

use std::collections::BTreeSet;
use std::sync::Arc;

use base::{FrameworkId, Pid, TaskId, Time};
use cores::{StreamId, TimerKey};
use protos::mesos::internal::UpdateFrameworkMessage;
use protos::mesos::offer::operation;
use protos::mesos::scheduler::call;
use resources::Resources;
use rustc_hash::FxHashMap;

use super::Subscription;
use crate::config::Config;
use crate::state::{Connection, Framework, FrameworkCapabilities, FrameworkCounts, FrameworkKey, TaskKey};
use crate::table::Table;
use crate::timers::{Timer, Timers};
use crate::tracked::Tracked;
use crate::validate::roles_of;

/// Frameworks, with their indices.
#[derive(Debug)]
pub(crate) struct Frameworks {
    /// Prefix of the ids of new frameworks: `<master id>-`.
    prefix: String,
    next_id: u64,
    limits: Limits,
    rows: Tracked<Table<Framework>>,
    by_id: FxHashMap<FrameworkId, FrameworkKey>,
    by_pid: FxHashMap<Pid, FrameworkKey>,
    by_stream: FxHashMap<StreamId, FrameworkKey>,
    private_data: FxHashMap<FrameworkKey, PrivateData>,
    /// Frameworks that completed last, oldest first.
    completed: Tracked<Table<Framework>>,
    completed_ids: FxHashMap<FrameworkId, u64>,
}

/// Numbers of completed frameworks and of completed and unreachable tasks that are kept.
#[derive(Debug)]
struct Limits {
    frameworks: usize,
    completed_tasks: usize,
    unreachable_tasks: usize,
}

/// Private data of the core about a framework.
#[derive(Debug, Default)]
struct PrivateData {
    /// Active tasks of the framework by id.
    tasks: FxHashMap<TaskId, TaskKey>,
    /// Rows of the framework's unreachable tasks by id.
    unreachable: FxHashMap<TaskId, u64>,
    /// Resources of the framework's last task. Most often the next task has the same.
    last_needs: Arc<Resources>,
    /// Number of the framework's connections.
    epoch: u64,
    /// Timer of the next heartbeat.
    heartbeat: Option<TimerKey>,
    /// Process of the framework's last connection, if that was a driver's.
    last_pid: Option<Pid>,
    /// Timer of the failover timeout, while the framework is disconnected.
    failover: Option<TimerKey>,
}

impl Frameworks {
    /// Returns an empty table of the frameworks of the master with that id.
    pub(crate) fn new(master_id: &str, config: &Config) -> Frameworks {
        Frameworks {
            prefix: [master_id, "-"].concat(),
            next_id: 0,
            limits: Limits {
                frameworks: config.max_completed_frameworks,
                completed_tasks: config.max_completed_tasks_per_framework,
                unreachable_tasks: config.max_unreachable_tasks_per_framework,
            },
            rows: Tracked::default(),
            by_id: FxHashMap::default(),
            by_pid: FxHashMap::default(),
            by_stream: FxHashMap::default(),
            private_data: FxHashMap::default(),
            completed: Tracked::default(),
            completed_ids: FxHashMap::default(),
        }
    }

    /// Returns whether a row may have changed since the last call.
    pub(crate) fn take_changed(&mut self) -> bool {
        self.rows.take_changed() | self.completed.take_changed()
    }

    /// Returns the rows for readers.
    pub(crate) fn rows(&self) -> &Table<Framework> {
        &self.rows
    }

    /// Returns the frameworks that completed last, for readers.
    pub(crate) fn completed(&self) -> &Table<Framework> {
        &self.completed
    }

    pub(crate) fn get(&self, key: FrameworkKey) -> Option<&Arc<Framework>> {
        self.rows.get(key.0)
    }

    pub(crate) fn keys(&self) -> Vec<FrameworkKey> {
        self.rows.iter().map(|(key, _)| FrameworkKey(key)).collect()
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Arc<Framework>> {
        self.rows.values()
    }

    pub(crate) fn key_of(&self, id: &str) -> Option<FrameworkKey> {
        self.by_id.get(id).copied()
    }

    /// Returns the framework whose driver is a process.
    pub(crate) fn key_of_pid(&self, pid: &Pid) -> Option<FrameworkKey> {
        self.by_pid.get(pid).copied()
    }

    /// Returns whether the framework of an id is completed.
    pub(crate) fn is_completed(&self, id: &str) -> bool {
        self.completed_ids.contains_key(id)
    }

    /// Returns an id for a new framework.
    pub(crate) fn next_id(&mut self) -> Option<FrameworkId> {
        let number = self.next_id;
        self.next_id += 1;
        FrameworkId::new(&format!("{}{number:04}", self.prefix)).ok()
    }

    /// Adds a framework that has no connection yet.
    pub(crate) fn insert(&mut self, framework: Framework) -> FrameworkKey {
        let id = framework.id.clone();
        let key = FrameworkKey(self.rows.insert(Arc::new(framework)));
        self.by_id.insert(id, key);
        self.private_data.insert(key, PrivateData::default());
        key
    }

    /// Returns the message that tells an agent a framework's info and process.
    pub(crate) fn update_message(&self, key: FrameworkKey) -> Option<UpdateFrameworkMessage> {
        let framework = self.get(key)?;
        Some(UpdateFrameworkMessage {
            framework_id: framework.proto_id(),
            pid: Some(framework.pid().cloned().unwrap_or_default().to_string()),
            framework_info: Some((*framework.info).clone()),
        })
    }

    /// Sets the connection of a framework, which cancels its failover timeout.
    pub(crate) fn attach(&mut self, key: FrameworkKey, connection: Connection, timers: &mut Timers) {
        if let Some(data) = self.private_data.get_mut(&key) {
            data.epoch += 1;
            data.last_pid = None;
            timers.cancel(data.failover.take());
        }
        match &connection {
            Connection::Http { stream, .. } => drop(self.by_stream.insert(*stream, key)),
            Connection::Driver(pid) => drop(self.by_pid.insert(pid.clone(), key)),
            Connection::Recovered | Connection::Disconnected => {}
        }
        if let Some(framework) = self.row(key) {
            framework.connection = connection;
        }
    }

    /// Removes the connection of a framework. Returns it if it must still be closed.
    pub(crate) fn detach(&mut self, key: FrameworkKey, timers: &mut Timers) -> Option<Connection> {
        let framework = self.row(key)?;
        let old = std::mem::replace(&mut framework.connection, Connection::Disconnected);
        let data = self.private_data.get_mut(&key)?;
        data.epoch += 1;
        timers.cancel(data.heartbeat.take());
        match &old {
            Connection::Http { stream, .. } => self.by_stream.remove(stream).map(|_| old),
            Connection::Driver(pid) => {
                self.by_pid.remove(pid);
                data.last_pid = Some(pid.clone());
                Some(old)
            }
            Connection::Recovered | Connection::Disconnected => None,
        }
    }

    /// Removes a stream that was closed. Returns the framework that it belonged to.
    pub(crate) fn remove_stream(&mut self, stream: StreamId) -> Option<FrameworkKey> {
        self.by_stream.remove(&stream)
    }

    /// Returns whether a disconnected framework's last connection was to a process: then a subscription of it is a
    /// retry after a broken link.
    pub(crate) fn was_driver(&self, key: FrameworkKey, pid: &Pid) -> bool {
        self.private_data.get(&key).is_some_and(|data| data.last_pid.as_ref() == Some(pid))
    }

    /// Returns whether a framework's connection has not changed since `epoch`.
    pub(crate) fn is_current(&self, key: FrameworkKey, epoch: u64) -> bool {
        self.private_data.get(&key).is_some_and(|data| data.epoch == epoch)
    }

    /// Sets the timer of the next heartbeat.
    pub(crate) fn set_heartbeat(&mut self, key: FrameworkKey, at: Time, timers: &mut Timers) {
        let Some(data) = self.private_data.get_mut(&key) else { return };
        data.heartbeat = Some(timers.set(at, Timer::SchedulerHeartbeat { framework: key, epoch: data.epoch }));
    }

    /// Starts the failover timeout of a disconnected framework.
    pub(crate) fn await_failover(&mut self, key: FrameworkKey, until: Time, timers: &mut Timers) {
        let Some(data) = self.private_data.get_mut(&key) else { return };
        data.failover = Some(timers.set(until, Timer::FrameworkFailover { framework: key, epoch: data.epoch }));
    }

    pub(crate) fn set_reregistered(&mut self, key: FrameworkKey, now: Time) {
        if let Some(framework) = self.row(key) {
            framework.reregistered = Some(now);
        }
    }

    /// Sets whether a framework is offered resources. Returns its id.
    pub(crate) fn set_active(&mut self, key: FrameworkKey, active: bool) -> Option<FrameworkId> {
        let framework = self.row(key)?;
        framework.active = active;
        Some(framework.id.clone())
    }

    /// Replaces a framework's info. Changes of its user, its id and its checkpointing are ignored (SCH-28).
    pub(crate) fn replace_info(&mut self, key: FrameworkKey, subscription: Subscription) {
        let Some(framework) = self.row(key) else { return };
        let mut info = subscription.info;
        info.user.clone_from(&framework.info.user);
        info.checkpoint = framework.info.checkpoint;
        info.id.clone_from(&framework.info.id);
        framework.capabilities = FrameworkCapabilities::new(&info.capabilities);
        framework.roles = roles_of(&info).into_iter().map(str::to_owned).collect();
        framework.suppressed = subscription.suppressed.into_iter().collect();
        framework.offer_constraints = subscription.constraints.map(Arc::new);
        framework.constraints = subscription.compiled;
        framework.info = Arc::new(info);
    }

    /// Adds roles to a framework's suppressed ones, or removes them. Returns its id.
    pub(crate) fn set_suppressed(
        &mut self,
        key: FrameworkKey,
        roles: &BTreeSet<String>,
        suppressed: bool,
    ) -> Option<FrameworkId> {
        let framework = self.row(key)?;
        match suppressed {
            true => framework.suppressed.extend(roles.iter().cloned()),
            false => framework.suppressed.retain(|role| !roles.contains(role)),
        }
        Some(framework.id.clone())
    }

    /// Returns the counters of a framework.
    pub(crate) fn counts(&mut self, key: FrameworkKey) -> Option<&mut FrameworkCounts> {
        self.row(key).map(|framework| &mut framework.counts)
    }

    /// Counts a call of a framework.
    pub(crate) fn count_call(&mut self, key: FrameworkKey, kind: call::Type) {
        if let Some(counts) = self.counts(key) {
            *counts.calls.entry(kind as i32).or_default() += 1;
        }
    }

    /// Counts an operation of a framework that is carried out: for a LAUNCH each task, for others the operation.
    pub(crate) fn count_operation(&mut self, key: FrameworkKey, kind: operation::Type) {
        if let Some(counts) = self.counts(key) {
            *counts.operations.entry(kind as i32).or_default() += 1;
        }
    }

    /// Removes a disconnected framework and its timers.
    pub(crate) fn remove(&mut self, key: FrameworkKey, timers: &mut Timers) -> Option<Framework> {
        let framework = self.rows.remove(key.0)?;
        self.by_id.remove(&framework.id);
        if let Some(data) = self.private_data.remove(&key) {
            data.failover.into_iter().chain(data.heartbeat).for_each(|token| timers.cancel(token));
        }
        Some(Arc::unwrap_or_clone(framework))
    }

    /// Adds a framework to the completed ones. The oldest is removed if there are too many.
    pub(crate) fn complete(&mut self, framework: Framework) {
        let id = framework.id.clone();
        let row = self.completed.insert(Arc::new(framework));
        self.completed_ids.insert(id, row);
        while self.completed.len() > self.limits.frameworks {
            if let Some(oldest) = self.completed.pop_first() {
                self.completed_ids.remove(&oldest.id);
            }
        }
    }

    /// Checks that ids and rows match, those of frameworks and those of their tasks.
    ///
    /// # Errors
    /// The first mismatch.
    pub(crate) fn check(&self) -> Result<(), String> {
        for (key, framework) in self.rows.iter() {
            let data = self.private_data.get(&FrameworkKey(key));
            let data = data.ok_or_else(|| format!("framework {} has no table of tasks", framework.id))?;
            if data.tasks.len() != framework.tasks.len() || data.unreachable.len() != framework.unreachable_tasks.len()
            {
                return Err(format!("framework {}: the ids of its tasks do not match its tasks", framework.id));
            }
        }
        match self.by_id.len() == self.rows.len() {
            true => Ok(()),
            false => Err("the ids of frameworks do not match the frameworks".to_owned()),
        }
    }

    /// Returns the parts that `invariants/broken.rs` breaks: the ids of frameworks, and those of the tasks of one that
    /// has any.
    pub(crate) fn breakable(
        &mut self,
    ) -> (&mut FxHashMap<FrameworkId, FrameworkKey>, Option<&mut FxHashMap<TaskId, TaskKey>>) {
        let mut tasks = self.private_data.values_mut().map(|data| &mut data.tasks);
        (&mut self.by_id, tasks.find(|tasks| !tasks.is_empty()))
    }

    /// Returns a mutable row of a framework.
    fn row(&mut self, key: FrameworkKey) -> Option<&mut Framework> {
        self.rows.get_mut(key.0)
    }
}
