//! State of a master at one instant, for readers. Tables are shared with the core, and copied where the core changes
//! them.
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

/// State of a master at an instant.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Time at which the snapshot was taken.
    pub time: Time,
    /// Time at which this master was elected.
    pub started: Time,
    /// `MasterInfo` of this master.
    pub info: Arc<mesos::MasterInfo>,
    /// Registered agents.
    pub agents: Table<Agent>,
    /// Frameworks that are not completed.
    pub frameworks: Table<Framework>,
    /// Frameworks that completed last, oldest first.
    pub completed: Table<Framework>,
    /// Outstanding offers.
    pub offers: Table<Offer>,
    /// Operations on agents whose final status is not acknowledged, oldest first.
    pub operations: Table<mesos::Operation>,
    /// Agents of the registry that have not reregistered since this master was elected.
    pub recovered: Arc<BTreeMap<AgentId, Arc<mesos::SlaveInfo>>>,
    /// Number of unreachable agents.
    pub unreachable: usize,
    /// Weights of roles that were set.
    pub weights: BTreeMap<String, f64>,
    /// Quotas by role.
    pub quotas: Arc<BTreeMap<Role, Quota>>,
    /// Roles whose quotas were emptied.
    pub emptied_quotas: Arc<BTreeSet<Role>>,
    /// Maintenance schedule and machines under maintenance.
    pub maintenance: Maintenance,
    /// Outstanding inverse offers.
    pub inverse_offers: Arc<BTreeMap<OfferKey, InverseOffer>>,
    /// Roles that are in use, with their frameworks and resources.
    pub roles: Vec<RoleView>,
    /// Values of the master's counters.
    pub counters: Counters,
    /// Number of operators that are subscribed to the event stream.
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

    /// Returns the row of an agent.
    pub fn agent(&self, key: AgentKey) -> Option<&Arc<Agent>> {
        self.agents.get(key.0)
    }

    /// Returns the row of a framework, or `None` if it is completed.
    pub fn framework(&self, key: FrameworkKey) -> Option<&Arc<Framework>> {
        self.frameworks.get(key.0)
    }

    /// Returns an offer as it is sent to its framework.
    pub fn offer_to_proto(&self, key: OfferKey) -> Option<mesos::Offer> {
        let offer = self.offers.get(key.0)?;
        let (agent, framework) = (self.agent(offer.agent)?, self.framework(offer.framework)?);
        Some(offer_to_proto(id_of(&self.info.id, key), offer, agent, framework))
    }

    /// Returns an inverse offer as it is sent to its framework.
    pub fn inverse_offer_to_proto(&self, key: OfferKey) -> Option<mesos::InverseOffer> {
        let offer = self.inverse_offers.get(&key)?;
        let (agent, framework) = (self.agent(offer.agent)?, self.framework(offer.framework)?);
        Some(inverse_offer_to_proto(id_of(&self.info.id, key), offer, agent, framework))
    }

    /// Returns the resources of each framework's executors. It visits all agents once.
    pub fn executor_resources(&self) -> BTreeMap<FrameworkKey, Resources> {
        let mut sums: BTreeMap<FrameworkKey, Resources> = BTreeMap::new();
        for (framework, executors) in self.agents.values().flat_map(|agent| &agent.executors) {
            let sum = sums.entry(*framework).or_default();
            executors.values().for_each(|executor| *sum += &executor.resources);
        }
        sums
    }
}
