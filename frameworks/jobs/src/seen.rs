//! What agents have offered so far: for telling why a task waits, and whether it could ever fit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::Time;

use crate::Need;
use crate::constraint::Place;
use crate::offers::{Room, Site};

/// Maximum number of agents that are remembered.
const AGENTS_MAX: usize = 50_000;
/// For how long an agent that offers nothing counts as being there.
const FRESH: Duration = Duration::from_secs(15 * 60);

/// What is known of one agent from its offers.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The agent.
    pub site: Arc<Site>,
    /// What was left of its last offer after this framework's tasks were placed.
    pub left: Need,
    /// The most that it offered at once.
    pub most: Need,
    /// When it has offered something last.
    pub when: Time,
}

impl Place for Agent {
    fn value(&self, field: &str) -> Option<&str> {
        self.site.value(field)
    }
}

/// All agents that offered something, by their id.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    agents: BTreeMap<String, Agent>,
}

impl Seen {
    /// An agent offers this much in all.
    pub fn offered(&mut self, room: &Room, free: Need, now: Time) {
        if !self.agents.contains_key(&room.site.agent_id) && self.agents.len() >= AGENTS_MAX {
            return;
        }
        let agent = self.agents.entry(room.site.agent_id.clone()).or_insert_with(|| Agent {
            site: room.site.clone(),
            left: free,
            most: free,
            when: now,
        });
        agent.left = free;
        agent.most = agent.most.upper(&free);
        agent.when = now;
    }

    /// So much was left after tasks were placed.
    pub fn left(&mut self, agent_id: &str, left: Need) {
        if let Some(agent) = self.agents.get_mut(agent_id) {
            agent.left = left;
        }
    }

    /// The agent is gone.
    pub fn lost(&mut self, agent_id: &str) {
        self.agents.remove(agent_id);
    }

    /// All that is known, also of agents that are silent.
    pub fn agents(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values()
    }

    /// The agents that have offered something lately. One that is gone does not keep tasks off the others forever.
    pub fn fresh(&self, now: Time) -> impl Iterator<Item = &Agent> {
        self.agents.values().filter(move |agent| now < agent.when + FRESH)
    }
}
