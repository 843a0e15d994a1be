//! An agent enters the master's books.
//!
//! It does not check whether it may; `messages/register_slave.rs` and `messages/reregister_slave.rs` do.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{AgentId, Pid, Time};
use protos::mesos;
use protos::mesos::internal::MasterSlaveConnection;
use resources::Resources;

use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::state::{Agent, AgentBook, AgentCapabilities, AgentKey, Doubt};
use crate::timers::{Timer, Token};

/// What an agent brings along when it registers.
pub(crate) struct Arrival {
    pub info: mesos::SlaveInfo,
    pub pid: Pid,
    pub version: String,
    pub capabilities: AgentCapabilities,
    pub checkpointed: Resources,
    pub total: Resources,
    pub resource_version: Option<mesos::Uuid>,
}

impl Master {
    /// Books an agent, links to it and starts to ping it. The allocator does not know it yet.
    pub(crate) fn book_agent(
        &mut self,
        id: AgentId,
        arrival: Arrival,
        reregistered: Option<Time>,
        out: &mut Outbox,
    ) -> AgentKey {
        let pid = arrival.pid.clone();
        let agent = Agent {
            id: id.clone(),
            info: Arc::new(arrival.info),
            pid: pid.clone(),
            version: arrival.version,
            capabilities: arrival.capabilities,
            registered: self.now,
            reregistered,
            connected: true,
            deactivated: false,
            drain: None,
            drain_start: None,
            unavailability: None,
            inverse_answers: BTreeMap::new(),
            total: arrival.total,
            used: Resources::new(),
            offered: Resources::new(),
            checkpointed: arrival.checkpointed,
            resource_version: arrival.resource_version,
            providers: BTreeMap::new(),
            operations: BTreeMap::new(),
            executors: BTreeMap::new(),
        };
        self.snapshot = None;
        let key = AgentKey(self.agents.insert(Arc::new(agent)));
        self.agent_ids.insert(id, key);
        self.agent_pids.insert(pid.clone(), key);
        out.push(Output::Link { pid });
        let (observer, ping) = self.observe(key);
        let book = AgentBook { observer, ponged: true, ping: Some(ping), ..AgentBook::default() };
        self.agent_books.insert(key, book);
        self.learn_unavailability(key, out);
        key
    }

    /// A new observer of an agent pings it at once: its name, and its timer.
    fn observe(&mut self, key: AgentKey) -> (u64, Token) {
        let observer = self.next_observer;
        self.next_observer += 1;
        self.observers.insert(observer, key);
        (observer, self.timers.set(self.now, Timer::Ping { agent: key, observer }))
    }

    /// What an agent has listed may not be all: it is to list everything once more. Pings begin anew, so that none which it was sent
    /// before counts as an answer.
    pub(crate) fn doubt(&mut self, key: AgentKey) {
        let (observer, ping) = self.observe(key);
        let Some(book) = self.agent_books.get_mut(&key) else { return };
        book.doubt = Doubt::Lists;
        book.ponged = true;
        self.observers.remove(&std::mem::replace(&mut book.observer, observer));
        if let Some(old) = book.ping.replace(ping) {
            self.timers.cancel(old);
        }
    }

    /// Tells the allocator of an agent that is booked with its tasks and executors.
    pub(crate) fn offer_agent(&mut self, key: AgentKey) {
        let Some(agent) = self.agents.get(key.0) else { return };
        let mut used: BTreeMap<base::FrameworkId, Resources> = BTreeMap::new();
        let tasks = self.agent_books.get(&key).map(|book| &book.tasks);
        for (framework, task) in tasks.into_iter().flatten() {
            let Some(framework) = self.frameworks.get(framework.0) else { continue };
            if let Some(task) = framework.tasks.get(task.0).filter(|task| !task.released) {
                *used.entry(framework.id.clone()).or_default() += &*task.resources;
            }
        }
        for (framework, executors) in &agent.executors {
            let Some(framework) = self.frameworks.get(framework.0) else { continue };
            for executor in executors.values() {
                *used.entry(framework.id.clone()).or_default() += &executor.resources;
            }
        }
        self.allocation.add_agent(agent, &used);
        if self.is_doubtful(key) {
            self.allocation.set_agent_active(&agent.id, false);
        }
    }

    /// Tells the allocator whether an agent may be offered, after that has changed.
    pub(crate) fn tell_activity(&mut self, key: AgentKey) {
        let Some(agent) = self.agents.get(key.0) else { return };
        self.allocation.set_agent_active(&agent.id, agent.active() && !self.is_doubtful(key));
    }

    /// Whether what runs on an agent is not known for sure. It is offered to nobody then: what seems to be free may be in use.
    pub(crate) fn is_doubtful(&self, key: AgentKey) -> bool {
        self.agent_books.get(&key).is_some_and(|book| book.doubt != Doubt::None)
    }

    /// What an admitted agent is told of pings.
    pub(crate) fn slave_connection(&self) -> MasterSlaveConnection {
        let timeout = self.config.total_ping_timeout().as_secs_f64();
        MasterSlaveConnection { total_ping_timeout_seconds: Some(timeout) }
    }
}
