//! Booking of resources: the only code that changes what a client holds, and with it the agent, the role, and all
//! shares.
//!
//! Offered and used resources count alike for shares; the difference is kept for reports.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use resources::{Quantities, Resource, Resources};

use crate::Held;
use crate::allocator::Allocator;
use crate::clients::ClientIx;
use crate::tree::NodeIx;

/// Counts of shared resources by place (a node of the tree, a role): each resource counts there once for each agent,
/// however many copies are held.
#[derive(Debug, Default)]
pub(crate) struct SharedCounts {
    counts: BTreeMap<(u32, u32), Resources>,
}

impl SharedCounts {
    /// Adds copies. Returns the quantities that are new at the place.
    fn add(&mut self, place: u32, agent: u32, shared: &Resources) -> Quantities {
        let counted = self.counts.entry((place, agent)).or_default();
        let new = absent(counted, shared);
        *counted += shared;
        new
    }

    /// Removes copies. Returns the quantities of which no copy is left.
    fn subtract(&mut self, place: u32, agent: u32, shared: &Resources) -> Quantities {
        let Some(counted) = self.counts.get_mut(&(place, agent)) else { return Quantities::new() };
        let there = shared.filter(|r| counted.count(r) > 0);
        *counted -= shared;
        let gone = absent(counted, &there);
        if counted.is_empty() {
            self.counts.remove(&(place, agent));
        }
        gone
    }
}

/// Returns the quantities of the shared resources of which `there` has no copy.
fn absent(there: &Resources, shared: &Resources) -> Quantities {
    shared.filter(|r| there.count(r) == 0).quantities()
}

/// Whether a booking counts as an allocation, or corrects an earlier one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    Yes,
    No,
}

/// Quantities of booked resources.
struct Sums {
    /// Quantities without those of shared resources.
    own: Quantities,
    /// Reserved part of `own`, and the part of it that is neither reserved nor revocable.
    reserved: Quantities,
    unreserved: Quantities,
    shared: Resources,
}

impl Sums {
    fn of(resources: &Resources) -> Sums {
        let (mut own, mut reserved, mut unreserved) = (Quantities::new(), Quantities::new(), Quantities::new());
        let mut any_shared = false;
        for resource in resources {
            if resource.is_shared() {
                any_shared = true;
            } else if let Some(amount) = resource.amount() {
                own.add(resource.name(), amount);
                if resource.is_reserved() {
                    reserved.add(resource.name(), amount);
                } else if !resource.is_revocable() {
                    unreserved.add(resource.name(), amount);
                }
            }
        }
        let shared = if any_shared { resources.shared() } else { Resources::new() };
        Sums { own, reserved, unreserved, shared }
    }
}

impl Allocator {
    /// Books resources that a client already uses on an agent, without allocation info.
    pub(crate) fn allocate_used(&mut self, agent: u32, client: ClientIx, resources: &Resources) {
        self.allocate_resources(agent, client, resources, Counted::Yes);
    }

    /// Adds copies of shared resources that a client holds. It does not count as an allocation, since nothing was
    /// offered.
    pub(crate) fn add_copies(&mut self, agent: u32, client: ClientIx, copies: &Resources) {
        self.allocate_resources(agent, client, copies, Counted::No);
    }

    fn allocate_resources(&mut self, agent: u32, client: ClientIx, used: &Resources, counted: Counted) {
        if used.is_empty() {
            return;
        }
        self.add_holding(agent, client, &Arc::new(used.clone()), Held::Used, counted);
        self.agents[agent as usize].recount();
        self.free_changed(agent);
    }

    /// Books an offer of an agent's resources to a client.
    pub(crate) fn allocate_offer(&mut self, ix: u32, client: ClientIx, resources: &Arc<Resources>) {
        self.add_holding(ix, client, resources, Held::Offered, Counted::Yes);
        self.clients.get_mut(client).ledger.sent(self.now);
        let agent = &mut self.agents[ix as usize];
        if Arc::ptr_eq(&agent.free, resources) && !resources.iter().any(Resource::is_shared) {
            // In the common case all free resources are offered.
            agent.free = self.nothing.clone();
        } else {
            agent.recount();
        }
        self.free_changed(ix);
    }

    /// Removes resources from a client. Those that it does not hold are ignored.
    pub(crate) fn release(&mut self, agent: u32, client: ClientIx, resources: &Resources, held: Held) {
        let returned = self.remove_holding(agent, client, resources, held);
        if !returned.is_empty() {
            self.agents[agent as usize].regain(&returned);
            self.free_changed(agent);
            self.freed(agent);
        }
    }

    /// Moves resources of a client from offered to used. Those that are not offered are ignored.
    pub(crate) fn mark_used(&mut self, agent: u32, client: ClientIx, resources: &Resources) {
        let taken = self.take(agent, client, resources, Held::Offered);
        if !taken.is_empty() {
            let sums = Sums::of(&taken);
            self.put(agent, client, &Arc::new(taken.into_owned()), Held::Used, &sums);
            self.roles.change_sums(self.clients.get(client).role, |_, role_sums| {
                role_sums.used_unreserved += &sums.unreserved
            });
        }
    }

    /// Adds resources to a client's holding on an agent, and to the client's sums.
    fn put(&mut self, agent: u32, client: ClientIx, resources: &Arc<Resources>, held: Held, sums: &Sums) {
        let (mut more, now) = (None, self.now);
        let holds = self.agents[agent as usize].change(client, |holding| {
            if sums.shared.is_empty() {
                holding.add(held, resources, now);
            } else {
                let before = holding.get(held).quantities();
                holding.add(held, resources, now);
                more = Some(holding.get(held).quantities() - &before);
            }
        });
        let state = self.clients.get_mut(client);
        if holds {
            state.agents.insert(agent);
        }
        *state.sum(held) += more.as_ref().unwrap_or(&sums.own);
    }

    /// Removes as much of `wanted` as a client holds on an agent, also from the client's sums. Returns what was
    /// removed.
    fn take<'a>(&mut self, agent: u32, client: ClientIx, wanted: &'a Resources, held: Held) -> Cow<'a, Resources> {
        // If copies of shared resources remain, so do their quantities.
        let mut less = None;
        let mut taken = Cow::Borrowed(wanted);
        let still = self.agents[agent as usize].change(client, |holding| {
            let shared = holding.get(held).iter().any(Resource::is_shared);
            let before = shared.then(|| holding.get(held).quantities());
            taken = holding.remove(held, wanted);
            less = before.map(|before| before - &holding.get(held).quantities());
        });
        let less = less.unwrap_or_else(|| taken.quantities());
        if held == Held::Offered {
            self.caps.mark_below_cap(self.clients.get(client).framework);
        }
        let state = self.clients.get_mut(client);
        if !still {
            state.agents.remove(&agent);
        }
        *state.sum(held) -= &less;
        if held == Held::Offered {
            self.note_waiting(client);
        }
        taken
    }

    /// Replaces resources that a client holds by the result of an operation. The caller has checked that they are held.
    pub(crate) fn replace_allocation(
        &mut self,
        agent: u32,
        client: ClientIx,
        consumed: &Resources,
        converted: &Resources,
        held: Held,
    ) {
        self.remove_holding(agent, client, consumed, held);
        self.add_holding(agent, client, &Arc::new(converted.clone()), held, Counted::No);
    }

    fn add_holding(&mut self, agent: u32, client: ClientIx, resources: &Arc<Resources>, held: Held, counted: Counted) {
        let sums = Sums::of(resources);
        self.put(agent, client, resources, held, &sums);
        self.maintenance.touch(agent);
        let state = self.clients.get(client);
        let (role, node) = (state.role, state.node);
        self.roles.change_sums(role, |_, role_sums| {
            role_sums.held_reserved += &sums.reserved;
            role_sums.held_unreserved += &sums.unreserved;
            if held == Held::Used {
                role_sums.used_unreserved += &sums.unreserved;
            }
        });
        let shared = &sums.shared;
        if !shared.is_empty() {
            self.roles.change_sums(role, |ix, role_sums| {
                role_sums.held_reserved += &self.shared_roles.add(ix, agent, shared)
            });
        }
        if let Some(node) = node {
            self.count(node, agent, &sums.own, shared, counted);
            self.note_share(client);
        }
    }

    /// Adds resources that a client holds on an agent to the shares in the tree.
    fn count(&mut self, node: NodeIx, agent: u32, own: &Quantities, shared: &Resources, counted: Counted) {
        match counted {
            Counted::Yes => self.tree.allocated(node, own),
            Counted::No => self.tree.reallocated(node, own),
        }
        let mut next = Some(node).filter(|_| !shared.is_empty());
        while let Some(at) = next {
            let new = self.shared.add(at, agent, shared);
            self.tree.adjust(at, &new, &Quantities::new());
            next = self.tree.parent(at);
        }
    }

    /// Removes resources from a client's holding on an agent and from all shares. Returns what was removed.
    fn remove_holding<'a>(
        &mut self,
        agent: u32,
        client: ClientIx,
        wanted: &'a Resources,
        held: Held,
    ) -> Cow<'a, Resources> {
        let returned = self.take(agent, client, wanted, held);
        if returned.is_empty() {
            return returned;
        }
        let sums = Sums::of(&returned);
        let shared = &sums.shared;
        let state = self.clients.get(client);
        let (role, node) = (state.role, state.node);
        self.roles.change_sums(role, |_, role_sums| {
            role_sums.held_reserved -= &sums.reserved;
            role_sums.held_unreserved -= &sums.unreserved;
            if held == Held::Used {
                role_sums.used_unreserved -= &sums.unreserved;
            }
        });
        if !shared.is_empty() {
            self.roles.change_sums(role, |ix, role_sums| {
                role_sums.held_reserved -= &self.shared_roles.subtract(ix, agent, shared)
            });
        }
        if let Some(node) = node {
            self.tree.unallocated(node, &sums.own);
            let mut next = Some(node).filter(|_| !shared.is_empty());
            while let Some(at) = next {
                let gone = self.shared.subtract(at, agent, shared);
                self.tree.adjust(at, &Quantities::new(), &gone);
                next = self.tree.parent(at);
            }
            self.note_share(client);
        }
        returned
    }

    /// Adds all that a client holds on all agents to the shares in the tree, because its framework has subscribed.
    pub(crate) fn count_holdings(&mut self, client: ClientIx) {
        let state = self.clients.get(client);
        let Some(node) = state.node else { return };
        let mut agents: Vec<u32> = state.agents.iter().copied().collect();
        agents.sort_unstable();
        for agent in agents {
            let holding = self.agents[agent as usize].holding(client).cloned().unwrap_or_default();
            let sums = Sums::of(&(holding.offered().clone() + holding.used()));
            self.count(node, agent, &sums.own, &sums.shared, Counted::Yes);
        }
        self.note_share(client);
    }
}
