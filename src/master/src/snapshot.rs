//! All that a reader may see, as of one instant: shared with the core, copied where the core changes it.
//!
//! It is not an answer yet; see `views.rs` for single entities, and the daemon for documents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use allocator::{Quota, RoleView};
use base::{AgentId, Time};
use protos::mesos;
use resources::{Resources, Role};

use crate::counters::Counters;
use crate::master::Master;
use crate::offers::{id_of, inverse_offer_to_proto, offer_to_proto};
use crate::state::{Agent, AgentKey, Framework, FrameworkKey, InverseOffer, Maintenance, Offer, OfferKey};
use crate::table::Table;

/// A master's state at an instant.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// When it was taken.
    pub time: Time,
    /// When this master began to lead.
    pub started: Time,
    /// The `MasterInfo` of this master.
    pub info: Arc<mesos::MasterInfo>,
    /// The registered agents.
    pub agents: Table<Agent>,
    /// The frameworks that have not ended.
    pub frameworks: Table<Framework>,
    /// The last frameworks that have ended, oldest first.
    pub completed: Table<Framework>,
    /// The outstanding offers.
    pub offers: Table<Offer>,
    /// Operations on agents whose end is not acknowledged, oldest first.
    pub operations: Table<mesos::Operation>,
    /// Agents of the registry that have not come back since this master began.
    pub recovered: Arc<BTreeMap<AgentId, Arc<mesos::SlaveInfo>>>,
    /// Number of agents that are unreachable.
    pub unreachable: usize,
    /// Weights that were set.
    pub weights: BTreeMap<String, f64>,
    /// Roles with a quota.
    pub quotas: Arc<BTreeMap<Role, Quota>>,
    /// Roles that had a quota until it was set to nothing.
    pub emptied_quotas: Arc<BTreeSet<Role>>,
    /// The maintenance of the cluster.
    pub maintenance: Maintenance,
    /// Outstanding inverse offers.
    pub inverse_offers: Arc<BTreeMap<OfferKey, InverseOffer>>,
    /// The roles that are in use, and what they have.
    pub roles: Vec<RoleView>,
    /// What has been counted.
    pub counters: Counters,
    /// Number of operators that listen to the event stream.
    pub subscribers: usize,
}

impl Snapshot {
    pub(crate) fn new(master: &Master) -> Snapshot {
        Snapshot {
            time: master.now,
            started: master.started,
            info: Arc::clone(&master.info),
            agents: master.agents.rows().clone(),
            frameworks: master.frameworks.rows().clone(),
            completed: master.frameworks.completed().clone(),
            offers: master.offers.rows().clone(),
            operations: master.operations.rows().clone(),
            recovered: Arc::clone(master.absent.recovered()),
            unreachable: master.absent.unreachable(),
            weights: master.weights.clone(),
            quotas: Arc::clone(&master.quotas),
            emptied_quotas: Arc::clone(&master.emptied_quotas),
            maintenance: master.maintenance.clone(),
            inverse_offers: Arc::clone(master.offers.inverse()),
            roles: master.allocation.allocator().roles(),
            counters: master.counters.clone(),
            subscribers: master.subscribers.len(),
        }
    }

    /// An agent's row.
    pub fn agent(&self, key: AgentKey) -> Option<&Arc<Agent>> {
        self.agents.get(key.0)
    }

    /// A framework's row, unless it has ended.
    pub fn framework(&self, key: FrameworkKey) -> Option<&Arc<Framework>> {
        self.frameworks.get(key.0)
    }

    /// An offer as its framework sees it.
    pub fn offer_to_proto(&self, key: OfferKey) -> Option<mesos::Offer> {
        let offer = self.offers.get(key.0)?;
        let (agent, framework) = (self.agent(offer.agent)?, self.framework(offer.framework)?);
        Some(offer_to_proto(id_of(&self.info.id, key), offer, agent, framework))
    }

    /// An inverse offer as its framework sees it.
    pub fn inverse_offer_to_proto(&self, key: OfferKey) -> Option<mesos::InverseOffer> {
        let offer = self.inverse_offers.get(&key)?;
        let (agent, framework) = (self.agent(offer.agent)?, self.framework(offer.framework)?);
        Some(inverse_offer_to_proto(id_of(&self.info.id, key), offer, agent, framework))
    }

    /// What each framework's executors take, by framework: one pass over all agents.
    pub fn executor_resources(&self) -> BTreeMap<FrameworkKey, Resources> {
        let mut sums: BTreeMap<FrameworkKey, Resources> = BTreeMap::new();
        for (framework, executors) in self.agents.values().flat_map(|agent| &agent.executors) {
            let sum = sums.entry(*framework).or_default();
            executors.values().for_each(|executor| *sum += &executor.resources);
        }
        sums
    }
}
