//! State of the allocator, and the small steps that its parts share.

use std::sync::Arc;

use base::{AgentId, FrameworkId, Time};
use resources::{Conversion, Limits, Quantities, Resources, Role};
use rustc_hash::FxHashMap;
use slab::Slab;

use crate::agents::Agent;
use crate::allocations::SharedCounts;
use crate::clients::{ClientIx, Clients};
use crate::frameworks::Framework;
use crate::maintenance::Maintenance;
use crate::refusals::RefusalExpiries;
use crate::rng::Rng;
use crate::roles::Roles;
use crate::tree::Tree;
use crate::{Config, Weight};

/// Decides which resources are offered to which framework. See the crate documentation.
#[derive(Debug)]
pub struct Allocator {
    pub(crate) config: Config,
    pub(crate) rng: Rng,
    pub(crate) tree: Tree,
    pub(crate) roles: Roles,
    pub(crate) clients: Clients,
    pub(crate) frameworks: Slab<Framework>,
    pub(crate) framework_ix: FxHashMap<FrameworkId, u32>,
    pub(crate) agents: Slab<Agent>,
    pub(crate) agent_ix: FxHashMap<AgentId, u32>,
    /// Shared resources by node of the tree, and by role.
    pub(crate) shared: SharedCounts,
    pub(crate) shared_roles: SharedCounts,
    pub(crate) refusal_expiries: RefusalExpiries,
    pub(crate) maintenance: Maintenance,
    /// Free quantities of all agents that count for quota. They are maintained only while there are guarantees.
    pub(crate) available: Quantities,
    /// Agents whose resources are withheld for quota guarantees, and the largest quantities that could be offered at
    /// that time.
    pub(crate) withheld: Vec<u32>,
    pub(crate) bounds_seen: Limits,
    /// Number of agents that must have registered before offers are made, and the time at which offers start in any
    /// case.
    pub(crate) recovering: Option<(usize, Time)>,
    /// Total quantities of all agents; shared resources count once for each agent.
    pub(crate) cluster: Quantities,
    /// Hostnames whose agents may be offered; `None` allows all.
    pub(crate) whitelist: Option<std::collections::BTreeSet<String>>,
    /// Agents to visit in the next run (`queue`), and in the next interval run (`queue_late`).
    pub(crate) queue: Vec<u32>,
    pub(crate) queue_late: Vec<u32>,
    /// Clients opened since the last run: every agent with free resources is visited for them.
    pub(crate) opened: Vec<ClientIx>,
    /// Agents with free resources.
    pub(crate) spare: Vec<u32>,
    pub(crate) caps: crate::offer_limits::CappedFrameworks,
    /// Time of the current inputs, and time of the next comparison of shares with fair shares.
    pub(crate) now: Time,
    pub(crate) next_sample: Option<Time>,
    pub(crate) last_interval: Time,
    /// Time at which resources that wait for the next interval run have waited long enough.
    pub(crate) interval_due: Option<Time>,
    /// Shared empty value of agents without free resources.
    pub(crate) nothing: Arc<Resources>,
}

impl Allocator {
    /// Returns an allocator without agents and frameworks.
    #[must_use]
    pub fn new(config: Config) -> Allocator {
        let mut tree = Tree::new(config.fair_sharing_excluded.clone());
        tree.set_sorters(config.role_sorter, config.framework_sorter);
        Allocator {
            rng: Rng::new(config.seed),
            tree,
            roles: Roles::new(config.min_allocatable.clone()),
            clients: Clients::default(),
            frameworks: Slab::new(),
            framework_ix: FxHashMap::default(),
            agents: Slab::new(),
            agent_ix: FxHashMap::default(),
            shared: SharedCounts::default(),
            shared_roles: SharedCounts::default(),
            refusal_expiries: RefusalExpiries::default(),
            maintenance: Maintenance::default(),
            available: Quantities::new(),
            withheld: Vec::new(),
            bounds_seen: Limits::new(),
            recovering: None,
            cluster: Quantities::new(),
            whitelist: None,
            queue: Vec::new(),
            queue_late: Vec::new(),
            opened: Vec::new(),
            spare: Vec::new(),
            caps: crate::offer_limits::CappedFrameworks::default(),
            now: Time::EPOCH,
            next_sample: None,
            last_interval: Time::EPOCH,
            interval_due: None,
            nothing: Arc::default(),
            config,
        }
    }

    /// Sets a role's weight; the default is 1. It changes the order of roles, not the resources that frameworks hold.
    pub fn set_weight(&mut self, role: &Role, weight: Weight) {
        let ix = self.roles.ensure(role, &mut self.tree);
        self.roles.set_weight(ix, weight, &mut self.tree);
        self.roles.drop_unused(ix, &mut self.tree);
    }

    pub(crate) fn framework(&self, id: &FrameworkId) -> Option<u32> {
        self.framework_ix.get(id).copied()
    }

    pub(crate) fn agent(&self, id: &AgentId) -> Option<u32> {
        self.agent_ix.get(id).copied()
    }

    /// Returns the client of a framework in a role.
    pub(crate) fn client(&self, framework: &FrameworkId, role: &Role) -> Option<ClientIx> {
        self.frameworks[self.framework(framework)? as usize].clients.get(role).copied()
    }

    /// Queues an agent that has more free resources for a visit for all clients.
    pub(crate) fn freed(&mut self, agent: u32) {
        self.agents[agent as usize].clients_to_consider.all = true;
        self.enqueue(agent);
    }

    pub(crate) fn enqueue(&mut self, agent: u32) {
        let state = &mut self.agents[agent as usize];
        if !state.queued {
            state.queued = true;
            self.queue.push(agent);
        }
    }

    pub(crate) fn enqueue_late(&mut self, agent: u32) {
        let state = &mut self.agents[agent as usize];
        if !state.queued_late {
            state.queued_late = true;
            self.queue_late.push(agent);
        }
    }

    /// Marks that a client may accept resources that it refused before.
    pub(crate) fn open(&mut self, client: ClientIx) {
        self.clients.open(client);
        self.opened.push(client);
    }
}

/// Returns resources without allocation info, the form in which the allocator keeps them.
pub(crate) fn without_allocation(resources: &Resources) -> std::borrow::Cow<'_, Resources> {
    if resources.iter().any(|r| r.allocation().is_some()) {
        std::borrow::Cow::Owned(resources.unallocated())
    } else {
        std::borrow::Cow::Borrowed(resources)
    }
}

/// Returns conversions without allocation info.
pub(crate) fn conversions_without_allocation(conversions: &[Conversion]) -> Vec<Conversion> {
    let step = |c: &Conversion| Conversion {
        consumed: without_allocation(&c.consumed).into_owned(),
        converted: without_allocation(&c.converted).into_owned(),
        must_be_gone: c.must_be_gone.clone().map(|r| r.with_allocation(None)),
    };
    conversions.iter().map(step).collect()
}
