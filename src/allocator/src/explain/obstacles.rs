//! Reasons that prevent an offer of one agent to one client: each rule of the run separately, in its order.

use resources::{Limits, Quantities, Resource, Resources, Role};

use super::{HeldBy, Inactivity, Obstacle};
use crate::Held;
use crate::agents::Agent;
use crate::allocator::Allocator;
use crate::clients::ClientIx;
use crate::headroom::{QuotaLedger, Stage, within};
use crate::portion::is_enough;
use crate::roles::RoleIx;

/// A client, and the least resources of a useful offer.
pub(super) struct Question<'a> {
    pub(super) client: ClientIx,
    pub(super) need: &'a Quantities,
}

impl Allocator {
    /// Returns the first obstacle to an offer of an agent to a client.
    pub(super) fn obstacle_of(&self, ix: u32, question: &Question<'_>) -> Obstacle {
        let agent = &self.agents[ix as usize];
        let offered = agent.holding(question.client).filter(|holding| !holding.offered().is_empty());
        if let Some(holding) = offered.filter(|holding| self.is_useful(question, holding.offered())) {
            return Obstacle::Offered(holding.since(Held::Offered));
        }
        let whole = self.agent_obstacle(agent, question.client);
        let what = whole.or_else(|| self.free_obstacle(agent, question));
        what.unwrap_or_else(|| self.part_obstacle(agent, question))
    }

    /// Returns the obstacle that keeps the whole agent from the client.
    fn agent_obstacle(&self, agent: &Agent, client: ClientIx) -> Option<Obstacle> {
        let state = self.clients.get(client);
        let role = &self.roles.get(state.role).role;
        let framework = &self.frameworks[state.framework as usize];
        let can = framework.capabilities;
        if !agent.active {
            let why = agent.options.unhealthy.clone();
            return Some(why.map_or(Obstacle::Inactive(Inactivity::Any), Obstacle::Unhealthy));
        }
        if self.whitelist.as_ref().is_some_and(|hosts| !hosts.contains(&agent.options.hostname)) {
            return Some(Obstacle::NotWhitelisted);
        }
        if !framework.constraints.allow(role, &agent.options) {
            return Some(Obstacle::Constraints);
        }
        if can.multi_role && !agent.options.capabilities.multi_role {
            return Some(Obstacle::OldAgent("MULTI_ROLE"));
        }
        if role.parent().is_some() && !agent.options.capabilities.hierarchical_role {
            return Some(Obstacle::OldAgent("HIERARCHICAL_ROLE"));
        }
        if agent.has_gpus && self.config.filter_gpu_resources && !can.gpu_resources {
            return Some(Obstacle::Capability("GPU_RESOURCES"));
        }
        let remote = agent.options.region.is_some() && agent.options.region != self.config.region;
        (remote && !can.region_aware).then_some(Obstacle::Capability("REGION_AWARE"))
    }

    /// Returns the obstacle that leaves too little of the agent: other clients hold it, or this client may not have it.
    fn free_obstacle(&self, agent: &Agent, question: &Question<'_>) -> Option<Obstacle> {
        let state = self.clients.get(question.client);
        let role = &self.roles.get(state.role).role;
        let can = self.frameworks[state.framework as usize].capabilities;
        if !self.is_useful(question, &agent.total) {
            return Some(Obstacle::TooSmall(agent.total.quantities()));
        }
        if !self.is_useful(question, &agent.free) {
            return Some(Obstacle::Held(self.holders(agent)));
        }
        let own = agent.free.filter(|r| r.is_allocatable_to(role));
        if !self.is_useful(question, &own) {
            return Some(Obstacle::Reserved(others(&agent.free, role)));
        }
        let mut left = own;
        let strips = [
            (can.shared_resources, "SHARED_RESOURCES"),
            (can.revocable_resources, "REVOCABLE_RESOURCES"),
            (can.reservation_refinement, "RESERVATION_REFINEMENT"),
        ];
        for (able, capability) in strips {
            if !able {
                left = left.filter(|r| !takes(r, capability));
            }
            if !self.is_useful(question, &left) {
                return Some(Obstacle::Stripped(capability));
            }
        }
        None
    }

    /// Returns the obstacle to an offer of the part that the client may be offered, or [`Obstacle::Nothing`] with that
    /// part.
    fn part_obstacle(&self, agent: &Agent, question: &Question<'_>) -> Obstacle {
        let client = question.client;
        let state = self.clients.get(client);
        let role = &self.roles.get(state.role).role;
        let can = self.frameworks[state.framework as usize].capabilities;
        let seen = agent.free.filter(|r: &Resource| {
            r.is_allocatable_to(role)
                && (can.shared_resources || !r.is_shared())
                && (can.revocable_resources || !r.is_revocable())
                && (can.reservation_refinement || !r.has_refined_reservations())
        });
        let mut obstacle = None;
        for stage in [Stage::Guarantees, Stage::Shares] {
            let mut ledger = QuotaLedger::new(&self.roles, &self.available, stage);
            if stage == Stage::Guarantees && !ledger.is_unmet(state.role) {
                continue;
            }
            let cut = ledger.bound(state.role).and_then(|bound| ledger.cut(bound, &seen));
            let offer = cut.unwrap_or_else(|| seen.clone());
            let now = if self.is_useful(question, &offer) {
                match self.refusal_of(agent, client, &offer) {
                    Some(until) => Obstacle::Refused(until),
                    None if !self.is_within_cap(state.framework, &offer, &[]) => Obstacle::HoldsTooMuch,
                    None => return Obstacle::Nothing(offer),
                }
            } else if self.is_useful(question, &within(&seen, &self.limits_left(state.role))) {
                Obstacle::Withheld
            } else {
                Obstacle::Limit(role.top_level())
            };
            obstacle = Some(now);
        }
        obstacle.unwrap_or_else(|| Obstacle::TooSmall(agent.total.quantities()))
    }

    /// Returns the quantities that the limits of a role leave.
    fn limits_left(&self, role: RoleIx) -> Limits {
        let account = self.roles.get(self.roles.top(role)).account();
        account.map_or_else(Limits::new, |account| account.quota.limits.minus(&account.charged))
    }

    /// Returns the end of the refusal of an offer, or `None` if it is not refused. The end is `None` for a refusal
    /// until the next interval run.
    fn refusal_of(&self, agent: &Agent, client: ClientIx, offer: &Resources) -> Option<Option<base::Time>> {
        let refusals = agent.refusals.iter(&self.clients);
        let blocking = refusals.filter(|(who, refused, _)| *who == client && refused.contains(offer));
        // The longest refusal; one until the next interval run is the shortest.
        blocking.map(|(_, _, until)| until).max()
    }

    /// Returns whether an offer of these resources is large enough, and contains the need.
    fn is_useful(&self, question: &Question<'_>, resources: &Resources) -> bool {
        let own = self.clients.get(question.client).min_allocatable.as_ref();
        let amounts = resources.quantities();
        is_enough(resources, &amounts, own.unwrap_or(&self.config.min_allocatable)) && amounts.contains(question.need)
    }

    fn holders(&self, agent: &Agent) -> Vec<HeldBy> {
        let mut list = Vec::new();
        for (client, holding) in agent.holdings() {
            let (framework, role) = self.names(client);
            let name = &self.frameworks[self.clients.get(client).framework as usize].title;
            for held in [Held::Offered, Held::Used] {
                let resources = holding.get(held);
                if !resources.is_empty() {
                    list.push(HeldBy {
                        framework: framework.clone(),
                        name: name.clone(),
                        role: role.clone(),
                        held,
                        amounts: resources.quantities(),
                        since: holding.since(held),
                    });
                }
            }
        }
        list.sort_by(|a, b| (&a.framework, &a.role).cmp(&(&b.framework, &b.role)));
        list
    }
}

/// Returns whether a framework needs a capability to be offered a resource.
fn takes(resource: &Resource, capability: &str) -> bool {
    match capability {
        "SHARED_RESOURCES" => resource.is_shared(),
        "REVOCABLE_RESOURCES" => resource.is_revocable(),
        _ => resource.has_refined_reservations(),
    }
}

/// Returns the roles for which free resources are reserved that this role may not have.
fn others(free: &Resources, role: &Role) -> Vec<Role> {
    let not_own = |r: &&Resource| !r.is_allocatable_to(role);
    let mut roles: Vec<Role> = free.iter().filter(not_own).filter_map(|r| r.reservation_role().cloned()).collect();
    roles.sort();
    roles.dedup();
    roles
}
