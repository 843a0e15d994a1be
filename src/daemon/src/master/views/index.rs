//! Relations of a snapshot's entities: built in one pass, so that each document needs only one more.
//!
//! It is built for each document.

use std::sync::Arc;

use base::ExecutorId;
use master::{Agent, AgentKey, Executor, FrameworkKey, Offer, OfferKey, Snapshot};
use resources::Resources;
use rustc_hash::FxHashMap;

use super::chunk_cache::ChunkCache;

/// The resources, offers and executors of a framework.
#[derive(Default)]
pub(super) struct FrameworkHoldings<'s> {
    /// Resources that its tasks and executors use.
    pub(super) used: Resources,
    /// Resources that are offered to the framework.
    pub(super) offered: Resources,
    /// Outstanding offers to the framework.
    pub(super) offers: Vec<(OfferKey, &'s Offer)>,
    /// Keys of the outstanding inverse offers to the framework.
    pub(super) inverse_offers: Vec<OfferKey>,
    /// Executors of the framework, with their agents.
    pub(super) executors: Vec<(&'s Agent, &'s ExecutorId, &'s Executor)>,
}

/// The relations of a snapshot: frameworks with their resources and offers, agents by key.
pub(super) struct Index<'s> {
    frameworks: FxHashMap<FrameworkKey, FrameworkHoldings<'s>>,
    agents: FxHashMap<AgentKey, &'s Arc<Agent>>,
    none: FrameworkHoldings<'s>,
}

impl<'s> Index<'s> {
    pub(super) fn new(snapshot: &'s Snapshot, chunk_cache: &ChunkCache) -> Index<'s> {
        let mut frameworks: FxHashMap<FrameworkKey, FrameworkHoldings<'s>> = FxHashMap::default();
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
            own.used += &chunk_cache.used(&framework.tasks);
        }
        for (key, offer) in snapshot.offers.iter() {
            let own = frameworks.entry(offer.framework).or_default();
            own.offered += &offer.resources;
            own.offers.push((OfferKey(key), offer));
        }
        for (key, offer) in &*snapshot.inverse_offers {
            frameworks.entry(offer.framework).or_default().inverse_offers.push(*key);
        }
        Index { frameworks, agents, none: FrameworkHoldings::default() }
    }

    /// Returns the resources, offers and executors of a framework; none if it has ended.
    pub(super) fn of(&self, framework: FrameworkKey) -> &FrameworkHoldings<'s> {
        self.frameworks.get(&framework).unwrap_or(&self.none)
    }

    pub(super) fn agent(&self, key: AgentKey) -> Option<&'s Arc<Agent>> {
        self.agents.get(&key).copied()
    }
}
