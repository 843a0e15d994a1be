//! The allocator's state, and the small steps that all its parts share.

use std::sync::Arc;

use base::{AgentId, FrameworkId, Time};
use resources::{Conversion, Limits, Quantities, Resources, Role};
use rustc_hash::FxHashMap;
use slab::Slab;

use crate::agents::Agent;
use crate::booking::SharedCounts;
use crate::clients::{ClientIx, Clients};
use crate::frameworks::Framework;
use crate::maintenance::Maintenance;
use crate::refusals::Endings;
use crate::rng::Rng;
use crate::roles::Roles;
use crate::tree::Tree;
use crate::{Config, Weight};

/// Who is offered what. See the crate's text.
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
    /// By node of the tree, and by role.
    pub(crate) shared: SharedCounts,
    pub(crate) shared_roles: SharedCounts,
    pub(crate) endings: Endings,
    pub(crate) maintenance: Maintenance,
    /// What all agents have free of what counts for quota: kept only while something is guaranteed.
    pub(crate) available: Quantities,
    /// Agents on which somebody was kept from something by what is set aside, and how much could be given at most then.
    pub(crate) held_back: Vec<u32>,
    pub(crate) bounds_seen: Limits,
    /// Nothing is offered before that many agents are there, or that time has come.
    pub(crate) recovering: Option<(usize, Time)>,
    /// What all agents have; shared resources count once per agent.
    pub(crate) cluster: Quantities,
    /// Hostnames that may be offered; none: all.
    pub(crate) whitelist: Option<std::collections::BTreeSet<String>>,
    /// Agents to visit in the next run, and those that wait for the next interval run.
    pub(crate) queue: Vec<u32>,
    pub(crate) queue_late: Vec<u32>,
    /// The clients that were opened since the last run: for them every agent with something free is to be visited.
    pub(crate) opened: Vec<ClientIx>,
    /// The agents with something free.
    pub(crate) spare: Vec<u32>,
    pub(crate) caps: crate::holding::Caps,
    /// When what is counted happens, and when shares are held against what is fair next.
    pub(crate) now: Time,
    pub(crate) next_sample: Option<Time>,
    pub(crate) last_interval: Time,
    /// When what waits for the next interval run has waited long enough.
    pub(crate) rest_until: Option<Time>,
    /// The free resources of all agents that have none.
    pub(crate) nothing: Arc<Resources>,
}

impl Allocator {
    /// An allocator that knows nobody yet.
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
            endings: Endings::default(),
            maintenance: Maintenance::default(),
            available: Quantities::new(),
            held_back: Vec::new(),
            bounds_seen: Limits::new(),
            recovering: None,
            cluster: Quantities::new(),
            whitelist: None,
            queue: Vec::new(),
            queue_late: Vec::new(),
            opened: Vec::new(),
            spare: Vec::new(),
            caps: crate::holding::Caps::default(),
            now: Time::EPOCH,
            next_sample: None,
            last_interval: Time::EPOCH,
            rest_until: None,
            nothing: Arc::default(),
            config,
        }
    }

    /// Sets a role's weight; 1 is none. It changes who comes first, not what anybody has.
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

    /// The client of a framework in a role, if there is one.
    pub(crate) fn client(&self, framework: &FrameworkId, role: &Role) -> Option<ClientIx> {
        self.frameworks[self.framework(framework)? as usize].clients.get(role).copied()
    }

    /// There is more to be had on an agent: everybody is to be asked.
    pub(crate) fn freed(&mut self, agent: u32) {
        self.agents[agent as usize].unasked.everybody = true;
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

    /// A client may take what it did not take before.
    pub(crate) fn open(&mut self, client: ClientIx) {
        self.clients.open(client);
        self.opened.push(client);
    }
}

/// Resources without allocation info, which is how they are kept here.
pub(crate) fn bare(resources: &Resources) -> std::borrow::Cow<'_, Resources> {
    if resources.iter().any(|r| r.allocation().is_some()) {
        std::borrow::Cow::Owned(resources.unallocated())
    } else {
        std::borrow::Cow::Borrowed(resources)
    }
}

/// The same for the steps of an operation.
pub(crate) fn bare_conversions(conversions: &[Conversion]) -> Vec<Conversion> {
    let step = |c: &Conversion| Conversion {
        consumed: bare(&c.consumed).into_owned(),
        converted: bare(&c.converted).into_owned(),
        must_be_gone: c.must_be_gone.clone().map(|r| r.with_allocation(None)),
    };
    conversions.iter().map(step).collect()
}
