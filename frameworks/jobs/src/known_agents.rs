//! Resources that agents have offered so far, to explain why a task waits and whether it could ever fit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::Time;

use crate::Need;
use crate::constraint::Place;
use crate::offers::{AgentIdentity, AgentOffers};

/// Maximum number of agents that are remembered.
const AGENTS_MAX: usize = 50_000;
/// Time after its last offer for which an agent counts as present.
const FRESH: Duration = Duration::from_secs(15 * 60);

/// Amounts that one agent has offered.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Identity and attributes of the agent.
    pub identity: Arc<AgentIdentity>,
    /// Rest of its last offer after this framework's tasks were placed.
    pub left: Need,
    /// Maximum of each amount that it offered.
    pub most: Need,
    /// Time of its last offer.
    pub when: Time,
}

impl Place for Agent {
    fn value(&self, field: &str) -> Option<&str> {
        self.identity.value(field)
    }
}

/// All agents that have made an offer, by their id.
#[derive(Clone, Debug, Default)]
pub struct KnownAgents {
    agents: BTreeMap<String, Agent>,
}

impl KnownAgents {
    /// Records the total amounts that an agent offers.
    pub fn offered(&mut self, room: &AgentOffers, free: Need, now: Time) {
        if !self.agents.contains_key(&room.identity.agent_id) && self.agents.len() >= AGENTS_MAX {
            return;
        }
        let agent = self.agents.entry(room.identity.agent_id.clone()).or_insert_with(|| Agent {
            identity: room.identity.clone(),
            left: free,
            most: free,
            when: now,
        });
        agent.left = free;
        agent.most = agent.most.upper(&free);
        agent.when = now;
    }

    /// Records the amounts that were left after tasks were placed.
    pub fn left(&mut self, agent_id: &str, left: Need) {
        if let Some(agent) = self.agents.get_mut(agent_id) {
            agent.left = left;
        }
    }

    /// Forgets an agent that was lost.
    pub fn lost(&mut self, agent_id: &str) {
        self.agents.remove(agent_id);
    }

    /// Returns all known agents, also those that make no offers now.
    pub fn agents(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values()
    }

    /// Returns the agents that have made an offer recently. A removed agent therefore does not keep tasks from the
    /// others forever.
    pub fn fresh(&self, now: Time) -> impl Iterator<Item = &Agent> {
        self.agents.values().filter(move |agent| now < agent.when + FRESH)
    }
}
