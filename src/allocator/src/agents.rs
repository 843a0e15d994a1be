//! Agents: what each has, who holds what of it, what is free, and what has changed since everybody was last asked.

use std::borrow::Cow;
use std::sync::Arc;

use base::{AgentId, Time};
use resources::{Name, Quantities, Resources};

use crate::clients::ClientIx;
use crate::refusals::AgentRefusals;
use crate::{AgentOptions, Held};

static NOTHING: Resources = Resources::new();

/// What one client holds on one agent, without allocation info. An offer shares its value with the offering; what is
/// not there is nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holding {
    offered: Option<Arc<Resources>>,
    used: Option<Arc<Resources>>,
    /// Since when there is something in each.
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

    /// Since when something has been held in this way.
    pub(crate) fn since(&self, held: Held) -> Time {
        self.since[usize::from(held == Held::Used)]
    }

    pub(crate) fn of(&mut self, held: Held) -> &mut Option<Arc<Resources>> {
        match held {
            Held::Offered => &mut self.offered,
            Held::Used => &mut self.used,
        }
    }

    /// Adds to what is held; the first is not copied.
    pub(crate) fn add(&mut self, held: Held, resources: &Arc<Resources>, now: Time) {
        if self.get(held).is_empty() {
            self.since[usize::from(held == Held::Used)] = now;
        }
        match self.of(held) {
            Some(set) => *Arc::make_mut(set) += &**resources,
            empty => *empty = (!resources.is_empty()).then(|| resources.clone()),
        }
    }

    /// Takes as much of `wanted` out as is there, and returns that.
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

/// Who is to be asked when an agent is visited next.
#[derive(Debug, Default)]
pub(crate) struct Unasked {
    /// Everybody: there is more to be had than when they were asked.
    pub(crate) everybody: bool,
    /// These: a refusal of theirs has ended here.
    pub(crate) some: Vec<ClientIx>,
    /// And those that were opened after this moment.
    pub(crate) since: u64,
}

/// One agent.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) id: AgentId,
    pub(crate) options: AgentOptions,
    pub(crate) active: bool,
    pub(crate) total: Arc<Resources>,
    /// Total without what is held; shared resources are always free. Shares its value with `total` or an offer where it can.
    pub(crate) free: Arc<Resources>,
    pub(crate) has_gpus: bool,
    /// More is held than there is: the total has shrunk, or something was never free.
    overheld: bool,
    /// Of what is free, what counts for quota; kept only while something is guaranteed.
    pub(crate) open: Quantities,
    /// Somebody was kept from something here by what is set aside for guarantees.
    pub(crate) held_back: bool,
    /// Sorted by client; nobody holds nothing.
    held: Vec<(ClientIx, Holding)>,
    pub(crate) refusals: AgentRefusals,
    pub(crate) unasked: Unasked,
    /// Its place among those with something free; see [`crate::visits::Spare`].
    pub(crate) spare: Option<u32>,
    /// Waits in the queue of the next run; of the next interval run.
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
            open: Quantities::new(),
            held_back: false,
            held: Vec::new(),
            refusals: AgentRefusals::default(),
            unasked: Unasked { everybody: true, ..Unasked::default() },
            spare: None,
            queued: false,
            queued_late: false,
        }
    }

    /// Replaces what it has in all.
    pub(crate) fn set_total(&mut self, total: Resources) {
        self.has_gpus = has_gpus(&total);
        self.total = Arc::new(total);
        self.recount();
    }

    /// What a client holds here.
    pub(crate) fn holding(&self, client: ClientIx) -> Option<&Holding> {
        self.held.binary_search_by_key(&client, |(c, _)| *c).ok().map(|at| &self.held[at].1)
    }

    /// Everybody who holds something here, and what.
    pub(crate) fn holdings(&self) -> impl Iterator<Item = (ClientIx, &Holding)> {
        self.held.iter().map(|(client, holding)| (*client, holding))
    }

    /// Changes what a client holds here. [`Agent::recount`] comes after. True if it holds something then.
    pub(crate) fn change(&mut self, client: ClientIx, change: impl FnOnce(&mut Holding)) -> bool {
        let at = match self.held.binary_search_by_key(&client, |(c, _)| *c) {
            Ok(at) => at,
            Err(at) => {
                if self.held.is_empty() {
                    // Mostly there is one holder.
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

    /// Works out what is free: always from the total, so that an agent that shrank below what is held mends by itself.
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

    /// What nobody holds any more is free again: as [`Agent::recount`] has it, without a look at what all others hold.
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
