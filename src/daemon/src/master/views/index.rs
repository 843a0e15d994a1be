//! Relations of a snapshot's entities: one pass over it, so that each document needs one more.
//!
//! It is built for each document.

use std::sync::Arc;

use base::ExecutorId;
use master::{Agent, AgentKey, Executor, FrameworkKey, Offer, OfferKey, Snapshot};
use resources::Resources;
use rustc_hash::FxHashMap;

use super::pieces::Pieces;

/// What belongs to one framework.
#[derive(Default)]
pub(super) struct Belongings<'s> {
    /// What its tasks and executors take.
    pub(super) used: Resources,
    /// What it is offered.
    pub(super) offered: Resources,
    /// Its outstanding offers.
    pub(super) offers: Vec<(OfferKey, &'s Offer)>,
    /// Its outstanding inverse offers.
    pub(super) inverse_offers: Vec<OfferKey>,
    /// Its executors, and where they run.
    pub(super) executors: Vec<(&'s Agent, &'s ExecutorId, &'s Executor)>,
}

/// The relations.
pub(super) struct Index<'s> {
    frameworks: FxHashMap<FrameworkKey, Belongings<'s>>,
    agents: FxHashMap<AgentKey, &'s Arc<Agent>>,
    none: Belongings<'s>,
}

impl<'s> Index<'s> {
    pub(super) fn new(snapshot: &'s Snapshot, pieces: &Pieces) -> Index<'s> {
        let mut frameworks: FxHashMap<FrameworkKey, Belongings<'s>> = FxHashMap::default();
        let mut agents = FxHashMap::default();
        for (key, agent) in snapshot.agents.iter() {
            agents.insert(AgentKey(key), agent);
            for (framework, executors) in &agent.executors {
                let own = frameworks.entry(*framework).or_default();
                for (id, executor) in executors {
                    own.used += &executor.resources;
                    own.executors.push((agent, id, executor));
                }
            }
        }
        for (key, framework) in snapshot.frameworks.iter() {
            let own = frameworks.entry(FrameworkKey(key)).or_default();
            own.used += &pieces.used(&framework.tasks);
        }
        for (key, offer) in snapshot.offers.iter() {
            let own = frameworks.entry(offer.framework).or_default();
            own.offered += &offer.resources;
            own.offers.push((OfferKey(key), offer));
        }
        for (key, offer) in &*snapshot.inverse_offers {
            frameworks.entry(offer.framework).or_default().inverse_offers.push(*key);
        }
        Index { frameworks, agents, none: Belongings::default() }
    }

    /// What belongs to a framework; nothing if it has ended.
    pub(super) fn of(&self, framework: FrameworkKey) -> &Belongings<'s> {
        self.frameworks.get(&framework).unwrap_or(&self.none)
    }

    pub(super) fn agent(&self, key: AgentKey) -> Option<&'s Arc<Agent>> {
        self.agents.get(&key).copied()
    }
}
