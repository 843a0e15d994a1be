//! Booking: the one place where what a client holds changes, and with it the agent, the role, and every share.
//!
//! Offered and used count alike for shares; the difference is kept for reports.

use std::collections::BTreeMap;

use resources::{Quantities, Resources};

use crate::Held;
use crate::allocator::Allocator;
use crate::clients::ClientIx;
use crate::roles::Books;
use crate::tree::{NodeIx, Tree};

/// Which shared resources are counted at which node of the tree: each counts once per agent, however many copies are held.
#[derive(Debug, Default)]
pub(crate) struct SharedCounts {
    counts: BTreeMap<(NodeIx, u32), Resources>,
}

impl SharedCounts {
    /// Counts copies at a node and all above it; amounts are added where the resource is new.
    fn add(&mut self, node: NodeIx, agent: u32, shared: &Resources, tree: &mut Tree) {
        let mut next = Some(node);
        while let Some(at) = next {
            let counted = self.counts.entry((at, agent)).or_default();
            let new = shared.filter(|r| counted.count(r) == 0);
            *counted += shared;
            tree.adjust(at, &new.quantities(), &Quantities::new());
            next = tree.parent(at);
        }
    }

    /// Takes copies off; amounts go where no copy is left.
    fn subtract(&mut self, node: NodeIx, agent: u32, shared: &Resources, tree: &mut Tree) {
        let mut next = Some(node);
        while let Some(at) = next {
            if let Some(counted) = self.counts.get_mut(&(at, agent)) {
                let there = shared.filter(|r| counted.count(r) > 0);
                *counted -= shared;
                let gone = there.filter(|r| counted.count(r) == 0);
                if counted.is_empty() {
                    self.counts.remove(&(at, agent));
                }
                tree.adjust(at, &Quantities::new(), &gone.quantities());
            }
            next = tree.parent(at);
        }
    }
}

/// Whether a booking is one that counts ("allocations made so far") or a correction of an old one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    Yes,
    No,
}

impl Allocator {
    /// Gives resources of an agent to a client. Neither carries an allocation.
    pub(crate) fn book(&mut self, agent: u32, client: ClientIx, resources: &Resources, held: Held) {
        if resources.is_empty() {
            return;
        }
        self.hold(agent, client, resources, held, Counted::Yes);
        self.agents[agent as usize].recount();
    }

    /// Takes resources back from a client; what it does not hold is left out. Returns what came back.
    pub(crate) fn unbook(&mut self, agent: u32, client: ClientIx, resources: &Resources, held: Held) -> Resources {
        let returned = self.unhold(agent, client, resources, held);
        if !returned.is_empty() {
            self.agents[agent as usize].recount();
            self.freed(agent);
        }
        returned
    }

    /// Turns what is offered to a client into what it uses. What is not offered is left out.
    pub(crate) fn take_up(&mut self, agent: u32, client: ClientIx, resources: &Resources) {
        let mut taken = Resources::new();
        self.agents[agent as usize].change(client, |holding| {
            taken = remove(&mut holding.offered, resources);
            holding.used += &taken;
        });
        let amounts = taken.quantities();
        let state = self.clients.get_mut(client);
        state.offered -= &amounts;
        state.used += &amounts;
    }

    /// Replaces resources that a client holds by others: the result of an operation. The caller has checked that they are there.
    pub(crate) fn rebook(
        &mut self,
        agent: u32,
        client: ClientIx,
        consumed: &Resources,
        converted: &Resources,
        held: Held,
    ) {
        self.unhold(agent, client, consumed, held);
        self.hold(agent, client, converted, held, Counted::No);
    }

    fn hold(&mut self, agent: u32, client: ClientIx, resources: &Resources, held: Held, counted: Counted) {
        self.agents[agent as usize].change(client, |holding| *holding.of(held) += resources);
        let state = self.clients.get_mut(client);
        state.agents.insert(agent);
        let amounts = resources.quantities();
        *match held {
            Held::Offered => &mut state.offered,
            Held::Used => &mut state.used,
        } += &amounts;
        let (role, node) = (state.role, state.node);
        self.roles.book(role, |books| add_to(books, resources));
        if let Some(node) = node {
            self.count(node, agent, resources, counted);
        }
    }

    /// Counts what a client holds on an agent in the tree.
    fn count(&mut self, node: NodeIx, agent: u32, resources: &Resources, counted: Counted) {
        let (shared, own) = split(resources);
        match counted {
            Counted::Yes => self.tree.allocated(node, &own),
            Counted::No => self.tree.reallocated(node, &own),
        }
        if let Some(shared) = shared {
            self.shared.add(node, agent, &shared, &mut self.tree);
        }
    }

    fn unhold(&mut self, agent: u32, client: ClientIx, resources: &Resources, held: Held) -> Resources {
        let mut returned = Resources::new();
        let still =
            self.agents[agent as usize].change(client, |holding| returned = remove(holding.of(held), resources));
        let state = self.clients.get_mut(client);
        if !still {
            state.agents.remove(&agent);
        }
        if returned.is_empty() {
            return returned;
        }
        let amounts = returned.quantities();
        *match held {
            Held::Offered => &mut state.offered,
            Held::Used => &mut state.used,
        } -= &amounts;
        let (role, node) = (state.role, state.node);
        self.roles.book(role, |books| take_from(books, &returned));
        if let Some(node) = node {
            let (shared, own) = split(&returned);
            self.tree.unallocated(node, &own);
            if let Some(shared) = shared {
                self.shared.subtract(node, agent, &shared, &mut self.tree);
            }
        }
        returned
    }

    /// Lets all that a client holds on all agents count in the tree: its framework has become known.
    pub(crate) fn count_holdings(&mut self, client: ClientIx) {
        let state = self.clients.get(client);
        let Some(node) = state.node else { return };
        let mut agents: Vec<u32> = state.agents.iter().copied().collect();
        agents.sort_unstable();
        for agent in agents {
            let holding = self.agents[agent as usize].holding(client).cloned().unwrap_or_default();
            self.count(node, agent, &(holding.offered + &holding.used), Counted::Yes);
        }
    }
}

/// Shared resources (if any), and the amounts of the others.
fn split(resources: &Resources) -> (Option<Resources>, Quantities) {
    if resources.iter().any(resources::Resource::is_shared) {
        let (shared, own) = resources.partition(resources::Resource::is_shared);
        (Some(shared), own.quantities())
    } else {
        (None, resources.quantities())
    }
}

/// Takes as much of `wanted` out as is there, and returns that.
fn remove(from: &mut Resources, wanted: &Resources) -> Resources {
    if from.contains(wanted) {
        *from -= wanted;
        return wanted.clone();
    }
    let before = from.clone();
    *from -= wanted;
    before - &*from
}

fn sums(resources: &Resources) -> (Quantities, Quantities) {
    let (mut reserved, mut unreserved) = (Quantities::new(), Quantities::new());
    for resource in resources {
        if let Some(amount) = resource.amount() {
            if resource.is_reserved() {
                reserved.add(resource.name(), amount);
            } else if !resource.is_revocable() {
                unreserved.add(resource.name(), amount);
            }
        }
    }
    (reserved, unreserved)
}

fn add_to(books: &mut Books, resources: &Resources) {
    let (reserved, unreserved) = sums(resources);
    books.held_reserved += &reserved;
    books.held_unreserved += &unreserved;
}

fn take_from(books: &mut Books, resources: &Resources) {
    let (reserved, unreserved) = sums(resources);
    books.held_reserved -= &reserved;
    books.held_unreserved -= &unreserved;
}
