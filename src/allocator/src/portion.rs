//! Part of an agent's free resources that one client may be offered, by reservations, capabilities, constraints and the
//! minimum offer.
//!
//! Clients that may see the same resources share one value, which is computed once per visit.

use std::sync::Arc;

use resources::{Quantities, Resource, Resources, Role};

use rustc_hash::FxHashMap;

use crate::agents::Agent;
use crate::clients::{Client, ClientIx};
use crate::frameworks::Framework;
use crate::headroom::{Bound, QuotaLedger};
use crate::policies::Slicer;
use crate::{Config, FrameworkCapabilities};

/// Free resources of one agent during one visit, and the portions of them that clients may be offered.
pub(crate) struct VisitPortions<'a> {
    agent: &'a Agent,
    config: &'a Config,
    free: Arc<Resources>,
    remote: bool,
    /// Whether free resources are shared, revocable or refined, so that the capabilities of a framework matter.
    special: bool,
    /// Roles for which free resources are reserved.
    reserved: Vec<Role>,
    made: Vec<Portion>,
    /// Indices of the portions in `made` that follow from reservations and capabilities alone.
    plain: Vec<usize>,
    /// Indices of the portions that bounds have cut, by the index of the uncut portion and the bound.
    bounded: FxHashMap<(usize, Bound), usize>,
    /// Last refusal that was compared with a portion, index of that portion, and whether the refusal blocks it.
    last: Option<(*const Resources, usize, bool)>,
    /// Division of the agent into slices; `None` if it is offered whole.
    slicer: Option<Slicer>,
}

/// Result of considering a client for an agent.
pub(crate) enum OfferDecision {
    /// The client may be offered nothing, or has refused it beyond the next interval run.
    NoOffer,
    /// The client would be offered these resources, but has refused them until the next interval run. No client after
    /// it in the order may have them before: a refusal for no time gives the client its turn again in that run.
    Waits(Arc<Resources>),
    /// The client is offered these resources.
    Offer(Arc<Resources>),
}

struct Portion {
    /// For each role in `reserved`, whether its resources are included; and which kinds of resources were removed.
    reserved: Vec<bool>,
    stripped: (bool, bool, bool),
    resources: Arc<Resources>,
    amounts: Quantities,
    /// Whether the portion contains the minimum offer of frameworks without a minimum of their own.
    enough: bool,
}

impl<'a> VisitPortions<'a> {
    /// Returns the portions of an agent. `without` are shared resources that the run has offered already: they are
    /// free, but are not offered again in the run.
    pub(crate) fn new(agent: &'a Agent, config: &'a Config, without: Option<&Resources>) -> VisitPortions<'a> {
        let mut portions = VisitPortions {
            agent,
            config,
            free: Arc::default(),
            remote: agent.options.region.is_some() && agent.options.region != config.region,
            special: false,
            reserved: Vec::new(),
            made: Vec::new(),
            plain: Vec::new(),
            bounded: FxHashMap::default(),
            last: None,
            slicer: config.policies.offer_granularity.as_ref().and_then(|most| Slicer::new(&agent.total, most)),
        };
        portions.set_free(match without {
            Some(offered) => Arc::new(&*agent.free - offered),
            None => agent.free.clone(),
        });
        portions
    }

    fn set_free(&mut self, free: Arc<Resources>) {
        self.made.clear();
        self.plain.clear();
        self.bounded.clear();
        self.last = None;
        self.special = false;
        self.reserved.clear();
        for resource in free.iter() {
            self.special |= resource.is_shared() || resource.is_revocable() || resource.has_refined_reservations();
            if let Some(role) = resource.reservation_role()
                && !self.reserved.contains(role)
            {
                self.reserved.push(role.clone());
            }
        }
        self.free = free;
    }

    /// Returns whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.free.is_empty()
    }

    /// Returns whether the agent is offered in slices. After each slice the order of clients changes.
    pub(crate) fn is_cut(&self) -> bool {
        self.slicer.is_some()
    }

    /// Returns what the client would be offered of the agent now.
    pub(crate) fn offer(
        &mut self,
        ix: ClientIx,
        epoch: u64,
        client: &Client,
        role: &Role,
        framework: &Framework,
        ledger: Option<&mut QuotaLedger<'_>>,
    ) -> OfferDecision {
        let capabilities = framework.capabilities;
        if !self.may_see(role, capabilities) {
            return OfferDecision::NoOffer;
        }
        let mut at = self.portion(role, capabilities);
        if let Some(ledger) = ledger
            && let Some(bound) = ledger.bound(client.role)
        {
            at = self.bounded(at, bound, ledger);
        }
        let portion = &self.made[at];
        let enough = match &client.min_allocatable {
            None => portion.enough,
            Some(minimum) => is_enough(&portion.resources, &portion.amounts, minimum),
        };
        if !enough || !framework.constraints.allow(role, &self.agent.options) {
            return OfferDecision::NoOffer;
        }
        let mut waits_for_interval = false;
        for (refused, resting) in self.agent.refusals.of(ix, epoch) {
            let blocked = match self.last {
                Some((last, portion, blocked)) if std::ptr::eq(last, &**refused) && portion == at => blocked,
                _ => refused.contains(&portion.resources),
            };
            self.last = Some((Arc::as_ptr(refused), at, blocked));
            if blocked && !resting {
                return OfferDecision::NoOffer;
            }
            waits_for_interval |= blocked;
        }
        let offer = portion.resources.clone();
        if waits_for_interval { OfferDecision::Waits(offer) } else { OfferDecision::Offer(offer) }
    }

    /// Returns whether the agent as a whole may be offered to such a framework.
    fn may_see(&self, role: &Role, capabilities: FrameworkCapabilities) -> bool {
        let agent = self.agent.options.capabilities;
        (capabilities.gpu_resources || !self.agent.has_gpus || !self.config.filter_gpu_resources)
            && (capabilities.region_aware || !self.remote)
            && (agent.multi_role || !capabilities.multi_role)
            && (agent.hierarchical_role || role.parent().is_none())
    }

    /// Returns the index of the portion that such a framework may see in that role.
    fn portion(&mut self, role: &Role, capabilities: FrameworkCapabilities) -> usize {
        let stripped = if self.special {
            (!capabilities.shared_resources, !capabilities.revocable_resources, !capabilities.reservation_refinement)
        } else {
            (false, false, false)
        };
        let own = |reserved: &Role| role.is_same_or_subrole_of(reserved);
        let same = |at: &usize| {
            let p = &self.made[*at];
            p.stripped == stripped && p.reserved.iter().zip(&self.reserved).all(|(has, r)| *has == own(r))
        };
        if let Some(at) = self.plain.iter().copied().find(same) {
            return at;
        }
        let resources = if self.special || !self.reserved.is_empty() {
            Arc::new(self.visible(role, stripped))
        } else {
            self.free.clone()
        };
        let resources = match &self.slicer {
            Some(slicer) => Arc::new(slicer.cut(&resources, |part| self.is_worth_it(part))),
            None => resources,
        };
        let reserved = self.reserved.iter().map(own).collect();
        self.plain.push(self.made.len());
        self.add(reserved, stripped, resources)
    }

    fn add(&mut self, reserved: Vec<bool>, stripped: (bool, bool, bool), resources: Arc<Resources>) -> usize {
        let amounts = resources.quantities();
        let enough = is_enough(&resources, &amounts, &self.config.min_allocatable);
        self.made.push(Portion { reserved, stripped, resources, amounts, enough });
        self.made.len() - 1
    }

    /// Returns the index of what quota and headroom leave of a portion.
    fn bounded(&mut self, at: usize, bound: Bound, ledger: &mut QuotaLedger<'_>) -> usize {
        if let Some(bounded) = self.bounded.get(&(at, bound)) {
            return *bounded;
        }
        let to = match ledger.cut(bound, &self.made[at].resources) {
            None => at,
            Some(cut) => self.add(Vec::new(), (false, false, false), Arc::new(cut)),
        };
        self.bounded.insert((at, bound), to);
        to
    }

    /// Returns whether no free resource is reserved, shared or revocable. Then all scalars count for quota.
    pub(crate) fn is_plain(&self) -> bool {
        !self.special && self.reserved.is_empty()
    }

    /// Returns whether withheld amounts leave less than the minimum offer of frameworks without a minimum of their own.
    pub(crate) fn is_withheld(&self, ledger: &mut QuotaLedger<'_>) -> bool {
        self.is_plain()
            && ledger.has_bounds()
            && ledger
                .cut(None, &self.free)
                .is_some_and(|cut| !is_enough(&cut, &cut.quantities(), &self.config.min_allocatable))
    }

    /// Returns the resources that are left for other clients.
    pub(crate) fn free(&self) -> &Resources {
        &self.free
    }

    fn is_worth_it(&self, part: &Resources) -> bool {
        is_enough(part, &part.quantities(), &self.config.min_allocatable)
    }

    /// Returns the free resources without those reserved for other roles and those of the given kinds: shared,
    /// revocable, refined.
    fn visible(&self, role: &Role, (shared, revocable, refined): (bool, bool, bool)) -> Resources {
        self.free.filter(|r: &Resource| {
            r.is_allocatable_to(role)
                && !(shared && r.is_shared())
                && !(revocable && r.is_revocable())
                && !(refined && r.has_refined_reservations())
        })
    }

    /// Removes an offer from the resources that are left. Shared resources are removed too: they are offered once in a
    /// run.
    pub(crate) fn take(&mut self, offer: &Arc<Resources>) {
        let left = if Arc::ptr_eq(offer, &self.free) { Resources::new() } else { &*self.free - &**offer };
        self.set_free(Arc::new(left));
    }
}

/// Returns whether resources contain one of the alternatives; without alternatives, whether they are not empty.
pub(crate) fn is_enough(resources: &Resources, amounts: &Quantities, minimum: &[Quantities]) -> bool {
    !resources.is_empty() && (minimum.is_empty() || minimum.iter().any(|m| amounts.contains(m)))
}
