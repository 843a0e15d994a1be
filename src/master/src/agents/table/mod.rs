//! Registered agents: their rows, which readers share, and the core's own data about them.
//!
//! It sends nothing and does not call the allocator. `liveness.rs` has pings and reregistration timeouts, `holdings.rs`
//! the resources and tasks of an agent.

mod holdings;
mod liveness;

use std::collections::BTreeSet;
use std::sync::Arc;

use base::{AgentId, Pid, TaskId, Time};
use protos::mesos;
use rustc_hash::FxHashMap;

use self::liveness::Liveness;
use super::AgentRegistration;
use crate::operations::Operations;
use crate::state::{Agent, AgentKey, FrameworkKey, TaskKey};
use crate::table::Table;
use crate::timers::Timers;
use crate::tracked::Tracked;

/// Registered agents, with their indices.
#[derive(Debug)]
pub(crate) struct Agents {
    /// Prefix of the ids of new agents: `<master id>-S`.
    prefix: String,
    next_id: u64,
    rows: Tracked<Table<Agent>>,
    by_id: FxHashMap<AgentId, AgentKey>,
    by_pid: FxHashMap<Pid, AgentKey>,
    by_observer: FxHashMap<u64, AgentKey>,
    next_observer: u64,
    private_data: FxHashMap<AgentKey, PrivateData>,
    /// Draining agents that may have become empty since the last [`Agents::take_drained`].
    drained: Vec<AgentKey>,
}

/// Tasks of an agent, ordered by framework.
type TaskList = BTreeSet<(FrameworkKey, TaskKey)>;

/// Private data of the core about an agent.
#[derive(Debug, Default)]
struct PrivateData {
    /// Tasks that run on the agent or whose terminal update is not acknowledged.
    tasks: TaskList,
    /// Tasks whose kill was requested while the agent was disconnected.
    killed: BTreeSet<(FrameworkKey, TaskId)>,
    liveness: Liveness,
}

/// Changes that the reregistration of a registered agent has made.
pub(crate) struct Reconnected {
    /// The agent's former process, if it has another one now.
    pub old_pid: Option<Pid>,
    /// The agent's new info, if it has changed.
    pub new_info: Option<Arc<mesos::SlaveInfo>>,
    /// Whether the agent was about to become unreachable.
    pub removal_canceled: bool,
}

impl Agents {
    /// Returns an empty table of the agents of the master with that id.
    pub(crate) fn new(master_id: &str) -> Agents {
        Agents {
            prefix: [master_id, "-S"].concat(),
            next_id: 0,
            rows: Tracked::default(),
            by_id: FxHashMap::default(),
            by_pid: FxHashMap::default(),
            by_observer: FxHashMap::default(),
            next_observer: 1,
            private_data: FxHashMap::default(),
            drained: Vec::new(),
        }
    }

    /// Returns whether a row may have changed since the last call.
    pub(crate) fn take_changed(&mut self) -> bool {
        self.rows.take_changed()
    }

    /// Returns the rows for readers.
    pub(crate) fn rows(&self) -> &Table<Agent> {
        &self.rows
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn get(&self, key: AgentKey) -> Option<&Arc<Agent>> {
        self.rows.get(key.0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (AgentKey, &Arc<Agent>)> {
        self.rows.iter().map(|(key, agent)| (AgentKey(key), agent))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Arc<Agent>> {
        self.rows.values()
    }

    pub(crate) fn key_of(&self, id: &str) -> Option<AgentKey> {
        self.by_id.get(id).copied()
    }

    pub(crate) fn key_of_pid(&self, pid: &Pid) -> Option<AgentKey> {
        self.by_pid.get(pid).copied()
    }

    /// Returns the agent of an id.
    pub(crate) fn find(&self, id: &str) -> Option<(AgentKey, &Arc<Agent>)> {
        let key = self.key_of(id)?;
        Some((key, self.get(key)?))
    }

    /// Returns an id for a new agent.
    pub(crate) fn next_id(&mut self) -> Option<AgentId> {
        let number = self.next_id;
        self.next_id += 1;
        AgentId::new(&format!("{}{number}", self.prefix)).ok()
    }

    /// Adds an agent, and pings it at once.
    pub(crate) fn insert(&mut self, agent: Agent, now: Time, timers: &mut Timers) -> AgentKey {
        let (id, pid) = (agent.id.clone(), agent.pid.clone());
        let key = AgentKey(self.rows.insert(Arc::new(agent)));
        self.by_id.insert(id, key);
        self.by_pid.insert(pid, key);
        self.private_data.insert(key, PrivateData::default());
        self.observe(key, now, timers);
        key
    }

    /// Updates the row of a registered agent with what it states when it reregisters.
    pub(crate) fn reconnect(
        &mut self,
        key: AgentKey,
        registration: AgentRegistration,
        now: Time,
        timers: &mut Timers,
    ) -> Option<Reconnected> {
        let agent = self.row(key)?;
        let old_pid = std::mem::replace(&mut agent.pid, registration.pid.clone());
        let is_new_info = *agent.info != registration.info;
        if is_new_info {
            agent.info = Arc::new(registration.info);
        }
        let new_info = is_new_info.then(|| Arc::clone(&agent.info));
        agent.connected = true;
        agent.reregistered = Some(now);
        agent.version = registration.version;
        agent.capabilities = registration.capabilities;
        agent.checkpointed = registration.checkpointed;
        agent.total = registration.total;
        agent.resource_version = registration.resource_version;
        if self.by_pid.get(&old_pid) == Some(&key) {
            self.by_pid.remove(&old_pid);
        }
        let old_pid = Some(old_pid).filter(|old| *old != registration.pid);
        self.by_pid.insert(registration.pid, key);
        let removal_canceled = self.private_data.get_mut(&key)?.liveness.reconnect(timers);
        Some(Reconnected { old_pid, new_info, removal_canceled })
    }

    /// Records that an agent's connection is broken. Returns `None` if the agent is disconnected already.
    pub(crate) fn disconnect(&mut self, key: AgentKey) -> Option<&Agent> {
        let agent = self.row(key).filter(|agent| agent.connected)?;
        agent.connected = false;
        Some(agent)
    }

    /// Removes an agent and its timers. Returns its row, and whether its process is still its own and not another
    /// agent's.
    pub(crate) fn remove(&mut self, key: AgentKey, timers: &mut Timers) -> Option<(Arc<Agent>, bool)> {
        let agent = self.rows.remove(key.0)?;
        self.by_id.remove(&agent.id);
        let owns_pid = self.by_pid.get(&agent.pid) == Some(&key);
        if owns_pid {
            self.by_pid.remove(&agent.pid);
        }
        if let Some(data) = self.private_data.remove(&key) {
            self.by_observer.remove(&data.liveness.observer);
            data.liveness.cancel(timers);
        }
        Some((agent, owns_pid))
    }

    /// Sets the maintenance window of an agent's machine. Earlier answers of frameworks to inverse offers become void.
    pub(crate) fn set_unavailability(&mut self, key: AgentKey, unavailability: Option<mesos::Unavailability>) {
        if let Some(agent) = self.row(key) {
            agent.unavailability = unavailability;
            agent.inverse_answers.clear();
        }
    }

    /// Records a framework's answer to an inverse offer.
    pub(crate) fn answer_inverse(
        &mut self,
        key: AgentKey,
        framework: FrameworkKey,
        answer: mesos::allocator::InverseOfferStatus,
    ) {
        if let Some(agent) = self.row(key) {
            agent.inverse_answers.insert(framework, answer);
        }
    }

    pub(crate) fn set_deactivated(&mut self, key: AgentKey, deactivated: bool) {
        if let Some(agent) = self.row(key) {
            agent.deactivated = deactivated;
        }
    }

    /// Starts the drain of an agent at `now`, or ends it if `drain` is `None`.
    pub(crate) fn set_drain(&mut self, key: AgentKey, drain: Option<mesos::DrainInfo>, now: Time) {
        if let Some(agent) = self.row(key) {
            agent.drain_start = drain.as_ref().map(|_| now);
            agent.drain = drain;
        }
    }

    /// Records a draining agent that has become empty. [`Agents::take_drained`] handles it at the end of the input.
    pub(crate) fn check_drained(&mut self, key: AgentKey, operations: &Operations) {
        let draining = self.get(key).is_some_and(|agent| agent.is_draining());
        if draining && self.is_empty_agent(key, operations) {
            self.drained.push(key);
        }
    }

    /// Returns whether an agent has neither tasks nor operations, and so no unacknowledged update either.
    fn is_empty_agent(&self, key: AgentKey, operations: &Operations) -> bool {
        self.tasks(key).next().is_none() && operations.on_agent(key).next().is_none()
    }

    /// Returns the draining agents that have become empty and are still empty, and marks them as drained.
    pub(crate) fn take_drained(&mut self, operations: &Operations) -> Vec<Arc<Agent>> {
        let mut drained = Vec::new();
        for key in std::mem::take(&mut self.drained) {
            if self.is_empty_agent(key, operations)
                && self.get(key).is_some_and(|agent| agent.is_draining())
                && let Some(drain) = self.row(key).and_then(|agent| agent.drain.as_mut())
            {
                drain.set_state(mesos::DrainState::Drained);
                drained.extend(self.get(key).cloned());
            }
        }
        drained
    }

    /// Returns whether each row has an id and a book.
    pub(crate) fn are_ids_in_step(&self) -> bool {
        self.by_id.len() == self.rows.len() && self.private_data.len() == self.rows.len()
    }

    /// Returns the parts that `invariants/broken.rs` breaks: the rows, and the tasks of an agent that has any.
    pub(crate) fn breakable(&mut self) -> (&mut Table<Agent>, Option<&mut TaskList>) {
        let mut tasks = self.private_data.values_mut().map(|data| &mut data.tasks);
        (&mut self.rows, tasks.find(|tasks| !tasks.is_empty()))
    }

    /// Returns a mutable row of an agent.
    fn row(&mut self, key: AgentKey) -> Option<&mut Agent> {
        self.rows.get_mut(key.0)
    }
}
