//! Agents: total, allocated and free resources, and the changes since all clients were last considered.

use std::borrow::Cow;
use std::sync::Arc;

use base::{AgentId, Time};
use resources::{Name, Quantities, Resources};

use crate::clients::ClientIx;
use crate::refusals::AgentRefusals;
use crate::{AgentOptions, Held};

static NOTHING: Resources = Resources::new();

/// Resources that one client holds on one agent, without allocation info. An offer shares its value with the master's
/// offer; an absent value is empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holding {
    offered: Option<Arc<Resources>>,
    used: Option<Arc<Resources>>,
    /// Start times of the current offer and the current allocation.
    since: [Time; 2],
}

impl Holding {
    pub(crate) fn get(&self, held: Held) -> &Resources {
        let set = match held {
            Held::Offered => &self.offered,
            Held::Used => &self.used,
        };
        set.as_deref().unwrap_or(&NOTHING)
    }

    pub(crate) fn offered(&self) -> &Resources {
        self.get(Held::Offered)
    }

    pub(crate) fn used(&self) -> &Resources {
        self.get(Held::Used)
    }

    /// Returns the time since which the client holds resources in this state.
    pub(crate) fn since(&self, held: Held) -> Time {
        self.since[usize::from(held == Held::Used)]
    }

    pub(crate) fn of(&mut self, held: Held) -> &mut Option<Arc<Resources>> {
        match held {
            Held::Offered => &mut self.offered,
            Held::Used => &mut self.used,
        }
    }

    /// Adds resources to those that are held. The first value is shared, not copied.
    pub(crate) fn add(&mut self, held: Held, resources: &Arc<Resources>, now: Time) {
        if self.get(held).is_empty() {
            self.since[usize::from(held == Held::Used)] = now;
        }
        match self.of(held) {
            Some(set) => *Arc::make_mut(set) += &**resources,
            empty => *empty = (!resources.is_empty()).then(|| resources.clone()),
        }
    }

    /// Removes as much of `wanted` as is held, and returns that.
    pub(crate) fn remove<'a>(&mut self, held: Held, wanted: &'a Resources) -> Cow<'a, Resources> {
        let slot = self.of(held);
        let Some(set) = slot else { return Cow::Owned(Resources::new()) };
        if !set.contains(wanted) {
            let before = set.clone();
            let left = Arc::make_mut(set);
            *left -= wanted;
            let taken = &*before - left;
            if left.is_empty() {
                *slot = None;
            }
            return Cow::Owned(taken);
        }
        if wanted.contains(set) {
            *slot = None;
        } else {
            *Arc::make_mut(set) -= wanted;
        }
        Cow::Borrowed(wanted)
    }

    fn is_empty(&self) -> bool {
        self.offered.is_none() && self.used.is_none()
    }
}

/// Clients to consider at an agent's next visit.
#[derive(Debug, Default)]
pub(crate) struct ClientsToConsider {
    /// Whether all clients are considered, because more is free than when they were last considered.
    pub(crate) all: bool,
    /// Clients whose offer filters on the agent have expired.
    pub(crate) some: Vec<ClientIx>,
    /// Logical time (`Clients::now`) after which opened clients are considered.
    pub(crate) since: u64,
}

/// An agent, with its resources and their holders.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) id: AgentId,
    pub(crate) options: AgentOptions,
    pub(crate) active: bool,
    pub(crate) total: Arc<Resources>,
    /// Free resources: the total without what is held. Shared resources are always free. Shares its value with `total`
    /// or an offer where possible.
    pub(crate) free: Arc<Resources>,
    pub(crate) has_gpus: bool,
    /// Whether more is held than the total has, because the total has shrunk or the resources were never free.
    overheld: bool,
    /// Quantities of `free` that count for quota. They are maintained only while there are guarantees.
    pub(crate) free_counted: Quantities,
    /// Whether resources of the agent were withheld from a framework for guarantees.
    pub(crate) withheld: bool,
    /// Holdings sorted by client; no entry is empty.
    held: Vec<(ClientIx, Holding)>,
    pub(crate) refusals: AgentRefusals,
    pub(crate) clients_to_consider: ClientsToConsider,
    /// Index of the agent among those with free resources: see [`crate::allocator::Allocator`]'s `spare`.
    pub(crate) spare: Option<u32>,
    /// Whether the agent is queued for the next run (`queued`), and for the next interval run (`queued_late`).
    pub(crate) queued: bool,
    pub(crate) queued_late: bool,
}

impl Agent {
    pub(crate) fn new(id: AgentId, options: AgentOptions, total: Resources) -> Agent {
        let total = Arc::new(total);
        Agent {
            id,
            options,
            active: true,
            has_gpus: has_gpus(&total),
            overheld: false,
            free: total.clone(),
            total,
            free_counted: Quantities::new(),
            withheld: false,
            held: Vec::new(),
            refusals: AgentRefusals::default(),
            clients_to_consider: ClientsToConsider { all: true, ..ClientsToConsider::default() },
            spare: None,
            queued: false,
            queued_late: false,
        }
    }

    /// Replaces the total resources.
    pub(crate) fn set_total(&mut self, total: Resources) {
        self.has_gpus = has_gpus(&total);
        self.total = Arc::new(total);
        self.recount();
    }

    /// Returns the resources that a client holds on the agent.
    pub(crate) fn holding(&self, client: ClientIx) -> Option<&Holding> {
        self.held.binary_search_by_key(&client, |(c, _)| *c).ok().map(|at| &self.held[at].1)
    }

    /// Returns all clients that hold resources on the agent, with their holdings.
    pub(crate) fn holdings(&self) -> impl Iterator<Item = (ClientIx, &Holding)> {
        self.held.iter().map(|(client, holding)| (*client, holding))
    }

    /// Changes the resources that a client holds on the agent. Returns whether it holds any afterwards. The caller then
    /// calls [`Agent::recount`].
    pub(crate) fn change(&mut self, client: ClientIx, change: impl FnOnce(&mut Holding)) -> bool {
        let at = match self.held.binary_search_by_key(&client, |(c, _)| *c) {
            Ok(at) => at,
            Err(at) => {
                if self.held.is_empty() {
                    // Most agents have one holder.
                    self.held.reserve_exact(1);
                }
                self.held.insert(at, (client, Holding::default()));
                at
            }
        };
        change(&mut self.held[at].1);
        let empty = self.held[at].1.is_empty();
        if empty {
            self.held.remove(at);
        }
        !empty
    }

    /// Computes `free` from the total. An agent whose total fell below what is held is corrected by that.
    pub(crate) fn recount(&mut self) {
        self.overheld = false;
        if self.held.is_empty() {
            self.free = self.total.clone();
            return;
        }
        let mut free = Resources::clone(&self.total);
        for (_, holding) in &self.held {
            for resource in holding.offered().iter().chain(holding.used()).filter(|r| !r.is_shared()) {
                self.overheld |= !free.contains_resource(resource);
                free.subtract(resource);
            }
        }
        self.free = Arc::new(free);
    }

    /// Adds resources that are no longer held to `free`, with the result of [`Agent::recount`] but without a pass over
    /// all holdings.
    pub(crate) fn regain(&mut self, returned: &Resources) {
        if self.held.is_empty() || self.overheld {
            return self.recount();
        }
        let free = Arc::make_mut(&mut self.free);
        if !returned.iter().all(|resource| free.give_back(resource, &self.total)) {
            return self.recount();
        }
        if cfg!(debug_assertions) {
            let regained = self.free.clone();
            self.recount();
            assert_eq!(regained.as_slice(), self.free.as_slice(), "what came back to agent {}", self.id);
        }
    }
}

fn has_gpus(total: &Resources) -> bool {
    total.get_scalar(&Name::Gpus).is_some_and(resources::Amount::is_positive)
}
