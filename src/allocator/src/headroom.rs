//! Amounts of free resources that a client may be offered: limits of roles, and the amounts withheld for unsatisfied
//! guarantees.
//!
//! Guaranteed amounts are withheld in the whole cluster, not on particular agents: a client that is offered unreserved,
//! non-revocable resources must leave as much free, anywhere, as all guarantees lack (ALL-31). A [`QuotaLedger`] is the
//! state of that during one visit to an agent; the visit's result is allocated afterwards.

use std::ops::ControlFlow;

use resources::{Amount, Limits, Name, Quantities, Resource, Resources};

use crate::allocator::Allocator;
use crate::roles::{RoleIx, Roles};

/// The two parts of a run (ALL-32, ALL-33).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Unsatisfied guarantees are served, together with other resources that their roles may have.
    Guarantees,
    /// The remaining resources are offered by share.
    Shares,
}

/// Returns whether a resource counts for quota and headroom: it is neither reserved nor revocable. Shared resources are
/// always reserved.
pub(crate) fn counts(resource: &Resource) -> bool {
    resource.is_unreserved() && !resource.is_revocable()
}

/// Returns the quantities of the resources that count.
pub(crate) fn counted(resources: &Resources) -> Quantities {
    let mut sum = Quantities::new();
    for resource in resources.iter().filter(|r| counts(r)) {
        if let Some(amount) = resource.amount() {
            sum.add(resource.name(), amount);
        }
    }
    sum
}

/// Returns the amount of each name that clients without a guarantee may be offered: the free amount minus the withheld
/// one. A name of which nothing is withheld has no bound.
pub(crate) fn bounds(available: &Quantities, required: &Quantities) -> Limits {
    required.iter().map(|(name, withheld)| (name.clone(), available.get(&name).minus_floored(withheld))).collect()
}

/// Role whose limits and guarantees apply to a client: its top-level role, or `None` for all roles without quota.
pub(crate) type Bound = Option<RoleIx>;

/// State of quota and headroom during one visit.
pub(crate) struct QuotaLedger<'a> {
    roles: &'a Roles,
    stage: Stage,
    available: Quantities,
    required: Quantities,
    bounds: Limits,
    /// Quantities that this visit has offered to top-level roles with quota.
    given: Vec<(RoleIx, Quantities)>,
    /// Roles whose limits have restricted an offer.
    pub(crate) limited_roles: Vec<RoleIx>,
    /// Whether withheld amounts have restricted an offer.
    pub(crate) withheld: bool,
}

impl<'a> QuotaLedger<'a> {
    pub(crate) fn new(roles: &'a Roles, available: &Quantities, stage: Stage) -> QuotaLedger<'a> {
        let required = roles.accounts.required.clone();
        QuotaLedger {
            roles,
            stage,
            bounds: bounds(available, &required),
            available: available.clone(),
            required,
            given: Vec::new(),
            limited_roles: Vec::new(),
            withheld: false,
        }
    }

    /// Returns the bounds of a role's clients, or `None` if there are none at all.
    pub(crate) fn bound(&self, role: RoleIx) -> Option<Bound> {
        let top = self.roles.top(role);
        match self.roles.get(top).account() {
            Some(account) if !account.quota.limits.is_empty() || self.stage == Stage::Guarantees => Some(Some(top)),
            _ if !self.bounds.is_empty() => Some(None),
            _ => None,
        }
    }

    /// Returns whether amounts are withheld, which bounds every client.
    pub(crate) fn has_bounds(&self) -> bool {
        !self.bounds.is_empty()
    }

    /// Returns whether the guarantees of a role are unsatisfied, after what this visit has offered.
    pub(crate) fn is_unmet(&self, role: RoleIx) -> bool {
        let top = self.roles.top(role);
        let Some(account) = self.roles.get(top).account() else { return false };
        !account.unmet.is_empty() && (self.given.iter().all(|(to, _)| *to != top) || !self.unmet(Some(top)).is_empty())
    }

    /// Returns whether a guarantee lacks one of these amounts.
    pub(crate) fn serves(&self, amounts: &Quantities) -> bool {
        amounts.iter().any(|(name, _)| self.required.get(&name).is_positive())
    }

    /// Cuts resources down to those that a client may be offered; `None` if nothing is cut. In the first part of a run,
    /// nothing is left if it would serve no guarantee.
    pub(crate) fn cut(&mut self, bound: Bound, resources: &Resources) -> Option<Resources> {
        let there = counted(resources);
        let unmet = self.unmet(bound);
        let serves = |amounts: &Quantities| unmet.iter().any(|(name, _)| amounts.get(&name).is_positive());
        let guarantees = self.stage == Stage::Guarantees;
        if guarantees && !serves(&there) {
            return Some(Resources::new());
        }
        let mut targets = Quantities::new();
        for (name, amount) in there.iter() {
            targets.set(&name, self.target(bound, &name, amount, unmet.get(&name)));
        }
        if targets == there {
            return None;
        }
        let cut = shrink(resources, targets);
        Some(if guarantees && !serves(&counted(&cut)) { Resources::new() } else { cut })
    }

    /// Returns how much of an amount may be offered if a guarantee lacks `unmet` of it. Records what restricts the
    /// rest.
    fn target(&mut self, bound: Bound, name: &Name, amount: Amount, unmet: Amount) -> Amount {
        let mut target = amount;
        let unmet = unmet.min(amount);
        if let Some(left) = self.bounds.get(name)
            && amount - unmet > left
        {
            self.withheld = true;
            target = unmet + left;
        }
        if let Some(top) = bound
            && let Some(room) = self.room(top, name)
            && room < amount
        {
            if !self.limited_roles.contains(&top) {
                self.limited_roles.push(top);
            }
            target = target.min(room);
        }
        target
    }

    /// Returns the quantities that the guarantees of a role lack now, if guarantees are served in this part of the run.
    fn unmet(&self, bound: Bound) -> Quantities {
        let account = bound.filter(|_| self.stage == Stage::Guarantees).and_then(|top| self.roles.get(top).account());
        account.map_or_else(Quantities::new, |account| self.missing(bound, &account.unmet))
    }

    fn missing(&self, bound: Bound, unmet: &Quantities) -> Quantities {
        match self.given.iter().find(|(top, _)| Some(*top) == bound) {
            Some((_, given)) => unmet.saturating_sub(given),
            None => unmet.clone(),
        }
    }

    fn room(&self, top: RoleIx, name: &Name) -> Option<Amount> {
        let room = self.roles.get(top).account()?.room(name)?;
        let given = self.given.iter().find(|(role, _)| *role == top);
        Some(given.map_or(room, |(_, given)| room.minus_floored(given.get(name))))
    }

    /// Records that resources are offered to a role.
    pub(crate) fn give(&mut self, role: RoleIx, resources: &Resources) {
        let amounts = counted(resources);
        let top = self.roles.top(role);
        self.available -= &amounts;
        if let Some(account) = self.roles.get(top).account() {
            let before = self.missing(Some(top), &account.unmet);
            match self.given.iter_mut().find(|(role, _)| *role == top) {
                Some((_, given)) => *given += &amounts,
                None => self.given.push((top, amounts)),
            }
            self.required -= &before;
            self.required += &self.missing(Some(top), &account.unmet);
        }
        self.bounds = bounds(&self.available, &self.required);
    }
}

impl Allocator {
    /// Updates the sums after a change of an agent's free resources.
    pub(crate) fn free_changed(&mut self, ix: u32) {
        self.set_spare(ix, !self.agents[ix as usize].free.is_empty());
        if self.roles.accounts.guaranteed > 0 {
            let agent = &mut self.agents[ix as usize];
            self.available -= &agent.free_counted;
            agent.free_counted = counted(&agent.free);
            self.available += &agent.free_counted;
        }
    }

    /// Computes the sums again after the first guarantee was set, or the last one removed.
    pub(crate) fn recount_available(&mut self) {
        let kept = self.roles.accounts.guaranteed > 0;
        self.available = Quantities::new();
        for (_, agent) in &mut self.agents {
            agent.free_counted = if kept { counted(&agent.free) } else { Quantities::new() };
            self.available += &agent.free_counted;
        }
    }

    /// Opens clients again whose limits leave more than before, whose guarantees lack more, or from which less is
    /// withheld. Call it before a run.
    pub(crate) fn open_less_restricted(&mut self) {
        let accounts = &mut self.roles.accounts;
        let mut roles = std::mem::take(&mut accounts.raised_limits);
        let raised_shortfalls = std::mem::take(&mut accounts.raised_shortfalls);
        if !self.withheld.is_empty() {
            // If withheld amounts have not restricted any offer, a role gains nothing from a guarantee.
            roles.extend(raised_shortfalls);
            let bounds = bounds(&self.available, &accounts.required);
            let more = |(name, then): (Name, Amount)| bounds.get(&name).is_none_or(|now| now > then);
            if self.bounds_seen.iter().any(more) {
                self.queue_withheld();
            }
        }
        for role in roles {
            let Some(state) = self.roles.try_get(role) else { continue };
            let mut clients = Vec::new();
            self.tree.walk_below(state.node, |client| {
                clients.push(client);
                ControlFlow::Continue(())
            });
            for client in clients {
                self.open(client);
            }
        }
    }

    fn queue_withheld(&mut self) {
        for ix in std::mem::take(&mut self.withheld) {
            if let Some(agent) = self.agents.get_mut(ix as usize)
                && std::mem::take(&mut agent.withheld)
            {
                self.freed(ix);
            }
        }
    }

    /// Records the reason that prevented an offer of an agent.
    pub(crate) fn record_restrictions(&mut self, ix: u32, limited_roles: &[RoleIx], withheld: bool) {
        for role in limited_roles {
            self.roles.mark_limited(*role);
        }
        let agent = &mut self.agents[ix as usize];
        if withheld && !std::mem::replace(&mut agent.withheld, true) {
            self.withheld.push(ix);
        }
    }

    /// Records the bounds at the end of a run. If they rise, agents whose resources were withheld are visited again.
    pub(crate) fn record_bounds(&mut self) {
        if !self.withheld.is_empty() {
            self.bounds_seen = bounds(&self.available, &self.roles.accounts.required);
        }
    }
}

/// Returns the resources within limits. Only those that count are cut.
pub(crate) fn within(resources: &Resources, limits: &Limits) -> Resources {
    let there = counted(resources);
    let most = |(name, amount): (Name, Amount)| (name.clone(), limits.get(&name).map_or(amount, |l| l.min(amount)));
    shrink(resources, there.iter().map(most).collect())
}

/// Cuts the resources that count down to these amounts. Divisible resources come first, then indivisible ones, smallest
/// first, as far as they fit. So the result for smaller amounts is contained in that for larger ones. (Mesos uses a
/// random order.)
fn shrink(resources: &Resources, mut left: Quantities) -> Resources {
    let mut kept: Vec<Option<Resource>> = resources.iter().map(|r| (!is_cut(r)).then(|| r.clone())).collect();
    let mut parts: Vec<(usize, &Resource)> = resources.iter().enumerate().filter(|(_, r)| is_cut(r)).collect();
    parts.sort_by_key(|(_, resource)| resource.amount().filter(|_| resource.is_indivisible()));
    for (at, resource) in parts {
        let most = left.get(resource.name());
        let mut part = resource.clone();
        if most.is_positive() && part.shrink(most) {
            left.set(part.name(), most - part.amount().unwrap_or_default());
            kept[at] = Some(part);
        }
    }
    kept.into_iter().flatten().collect()
}

/// Returns whether a resource is a scalar that counts.
fn is_cut(resource: &Resource) -> bool {
    counts(resource) && resource.amount().is_some()
}
