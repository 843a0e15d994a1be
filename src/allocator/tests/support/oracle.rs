//! A naive allocator, written from the rules alone: no indexes, no caches, everything computed again each time.
//!
//! It receives the same calls as the real one. It does not choose the order in which agents are visited (a shuffle may
//! be anything), but states what must be offered on a given agent.

use std::collections::{BTreeMap, BTreeSet};

use allocator::{AgentOptions, Config, FrameworkOptions, Held, InverseAnswer, Quota, Weight};
use base::{AgentId, FrameworkId, Time};
use resources::{Amount, Name, Quantities, Resource, Resources, Role};

pub struct Agent {
    pub options: AgentOptions,
    pub total: Resources,
    pub active: bool,
}

pub struct Framework {
    pub options: FrameworkOptions,
    pub active: bool,
}

/// End of a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until {
    NextInterval,
    After(Time),
}

pub struct Refusal {
    pub framework: FrameworkId,
    pub role: Role,
    pub agent: AgentId,
    pub refused: Resources,
    pub until: Until,
    /// Whether the refusal has ended, but no interval run has considered the client since.
    pub ended: bool,
}

/// Frameworks that are asked to vacate an agent under maintenance, and their answers.
#[derive(Default)]
pub struct Window {
    pub asked: BTreeSet<FrameworkId>,
    pub answers: BTreeMap<FrameworkId, InverseAnswer>,
    /// Times before which frameworks are not asked again.
    pub filters: BTreeMap<FrameworkId, Time>,
    /// Frameworks that need not be asked again before the next interval run.
    pub resting: BTreeSet<FrameworkId>,
}

impl Window {
    pub fn forget(&mut self, id: &FrameworkId) {
        self.asked.remove(id);
        self.answers.remove(id);
        self.filters.remove(id);
        self.resting.remove(id);
    }
}

/// The two parts of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    Guarantees,
    Shares,
}

/// Offers of a visit: role, framework and resources.
pub type Offers = Vec<(Role, FrameworkId, Resources)>;

pub type Asked = BTreeSet<(AgentId, FrameworkId)>;

pub type Holding = (FrameworkId, Role, AgentId);

#[derive(Default)]
pub struct Oracle {
    pub config: Config,
    pub agents: BTreeMap<AgentId, Agent>,
    pub frameworks: BTreeMap<FrameworkId, Framework>,
    pub held: BTreeMap<Holding, [Resources; 2]>,
    pub refusals: Vec<Refusal>,
    /// Agents with an offer filter that lasts until the next interval run.
    pub rested: BTreeSet<AgentId>,
    pub weights: BTreeMap<Role, Weight>,
    pub quotas: BTreeMap<Role, Quota>,
    /// Maintenance windows by agent.
    pub windows: BTreeMap<AgentId, Window>,
    /// Number of agents without which no offers are made, and the time at which offers start in any case.
    pub hold: Option<(usize, Time)>,
    pub whitelist: Option<BTreeSet<String>>,
    /// Numbers of allocations so far: of frameworks in roles (`framework_counts`), of roles by their own frameworks
    /// (`own_counts`), and of roles with all roles below them (`inner_counts`).
    framework_counts: BTreeMap<(Role, FrameworkId), u64>,
    own_counts: BTreeMap<Role, u64>,
    inner_counts: BTreeMap<Role, u64>,
    /// Shared resources that this run has offered.
    offered_shared: BTreeMap<AgentId, Resources>,
}

pub fn index(held: Held) -> usize {
    match held {
        Held::Offered => 0,
        Held::Used => 1,
    }
}

/// Returns resources with one copy of each shared one.
fn once(resources: &Resources) -> Resources {
    resources.single_copies()
}

impl Oracle {
    pub fn new(config: Config) -> Oracle {
        Oracle { config, ..Oracle::default() }
    }

    // Holdings.

    pub fn hold(&mut self, holding: &Holding, resources: &Resources, held: Held) {
        if !resources.is_empty() {
            self.held.entry(holding.clone()).or_default()[index(held)] += resources;
        }
    }

    pub fn unhold(&mut self, holding: &Holding, resources: &Resources, held: Held) {
        if let Some(sets) = self.held.get_mut(holding) {
            sets[index(held)] -= resources;
            if sets.iter().all(Resources::is_empty) {
                self.held.remove(holding);
            }
        }
    }

    /// Returns the total without what is held; shared resources are always free.
    pub fn free(&self, agent: &AgentId) -> Resources {
        let mut free = self.agents[agent].total.clone();
        for ((_, _, at), sets) in &self.held {
            if at == agent {
                sets.iter().for_each(|set| free -= &set.non_shared());
            }
        }
        free
    }

    /// Returns the sum of what the holders for which `of` is true hold on all agents, with shared resources once per
    /// agent.
    fn amounts(&self, of: impl Fn(&FrameworkId, &Role) -> bool) -> Quantities {
        let mut by_agent: BTreeMap<&AgentId, Resources> = BTreeMap::new();
        for ((framework, role, agent), sets) in &self.held {
            if of(framework, role) && self.frameworks.contains_key(framework) {
                sets.iter().for_each(|set| *by_agent.entry(agent).or_default() += set);
            }
        }
        by_agent.values().fold(Quantities::new(), |sum, set| sum + &once(set).quantities())
    }

    /// Returns the held quantities in some roles: of reserved resources, and of those that are neither reserved nor
    /// revocable.
    pub fn held_in(&self, of: impl Fn(&Role) -> bool) -> (Quantities, Quantities) {
        let mut by_agent: BTreeMap<&AgentId, Resources> = BTreeMap::new();
        for ((_, role, agent), sets) in &self.held {
            if of(role) {
                sets.iter().for_each(|set| *by_agent.entry(agent).or_default() += set);
            }
        }
        let sum = |keep: fn(&Resource) -> bool| {
            by_agent.values().fold(Quantities::new(), |sum, set| sum + &once(&set.filter(keep)).quantities())
        };
        (sum(|r| r.is_reserved()), sum(|r| r.is_unreserved() && !r.is_revocable()))
    }

    // The order.

    /// Returns the frameworks of a role: those that are subscribed, or still hold resources.
    fn members(&self, role: &Role) -> BTreeSet<FrameworkId> {
        let subscribed =
            self.frameworks.iter().filter(|(_, f)| f.options.roles.contains(role)).map(|(id, _)| id.clone());
        let holding = self
            .held
            .keys()
            .filter(|(id, r, _)| r == role && self.frameworks.contains_key(id))
            .map(|(id, _, _)| id.clone());
        subscribed.chain(holding).collect()
    }

    fn roles_with_members(&self) -> BTreeSet<Role> {
        let subscribed = self.frameworks.values().flat_map(|f| f.options.roles.iter().cloned());
        let holding =
            self.held.keys().filter(|(id, _, _)| self.frameworks.contains_key(id)).map(|(_, role, _)| role.clone());
        subscribed.chain(holding).collect()
    }

    /// Removes the counts of roles and members that no longer exist, and starts those of new ones. Call it after every
    /// change.
    pub fn settle(&mut self) {
        let leaves = self.roles_with_members();
        let inner: BTreeSet<Role> = leaves.iter().flat_map(|role| role.ancestors().collect::<Vec<_>>()).collect();
        self.own_counts.retain(|role, _| leaves.contains(role));
        for role in &leaves {
            self.own_counts.entry(role.clone()).or_default();
        }
        self.inner_counts.retain(|role, _| inner.contains(role));
        for role in inner {
            // A leaf that gains a child role keeps its count.
            let own = self.own_counts.get(&role).copied().unwrap_or_default();
            self.inner_counts.entry(role).or_insert(own);
        }
        let members: BTreeSet<(Role, FrameworkId)> =
            leaves.iter().flat_map(|role| self.members(role).into_iter().map(|id| (role.clone(), id))).collect();
        self.framework_counts.retain(|key, _| members.contains(key));
        for key in members {
            self.framework_counts.entry(key).or_default();
        }
    }

    /// Counts one more allocation.
    pub fn count(&mut self, framework: &FrameworkId, role: &Role) {
        self.settle();
        *self.framework_counts.entry((role.clone(), framework.clone())).or_default() += 1;
        *self.own_counts.entry(role.clone()).or_default() += 1;
        for role in std::iter::once(role.clone()).chain(role.ancestors()) {
            if let Some(count) = self.inner_counts.get_mut(&role) {
                *count += 1;
            }
        }
    }

    fn share(&self, amounts: &Quantities) -> f64 {
        let total = self.agents.values().fold(Quantities::new(), |sum, agent| sum + &once(&agent.total).quantities());
        let counted = amounts.iter().filter(|(name, _)| !self.config.fair_sharing_excluded.contains(name));
        counted.map(|(name, amount)| amount.ratio_of(total.get(&name))).fold(0.0, f64::max)
    }

    /// Returns the frameworks in roles that may be offered resources, in the order in which they are considered.
    pub fn order(&self) -> Vec<(Role, FrameworkId)> {
        self.below(None)
    }

    fn below(&self, parent: Option<&Role>) -> Vec<(Role, FrameworkId)> {
        let leaves = self.roles_with_members();
        let children: BTreeSet<Role> = leaves
            .iter()
            .flat_map(|role| std::iter::once(role.clone()).chain(role.ancestors()).collect::<Vec<_>>())
            .filter(|role| role.parent().as_ref() == parent)
            .collect();
        let mut keys: Vec<(f64, u64, String, Option<Role>)> = Vec::new();
        for role in children {
            let weight = self.weights.get(&role).map_or(1.0, |w| w.value());
            let share = self.share(&self.amounts(|_, r| r.is_same_or_subrole_of(&role))) / weight;
            let count =
                self.inner_counts.get(&role).or_else(|| self.own_counts.get(&role)).copied().unwrap_or_default();
            keys.push((share, count, role.as_str().to_owned(), Some(role)));
        }
        if let Some(own) = parent.filter(|role| leaves.contains(*role)) {
            let share = self.share(&self.amounts(|_, r| r == own));
            keys.push((share, self.own_counts[own], format!("{own}/."), None));
        }
        keys.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| (a.1, &a.2).cmp(&(b.1, &b.2))));
        let list = |key: (f64, u64, String, Option<Role>)| match key.3 {
            Some(role) => self.below(Some(&role)),
            None => parent.map(|role| self.frameworks_of(role)).unwrap_or_default(),
        };
        keys.into_iter().flat_map(list).collect()
    }

    fn frameworks_of(&self, role: &Role) -> Vec<(Role, FrameworkId)> {
        let active = |id: &FrameworkId| {
            let f = &self.frameworks[id];
            f.active && f.options.roles.contains(role) && !f.options.suppressed_roles.contains(role)
        };
        let key = |id: FrameworkId| {
            let share = self.share(&self.amounts(|f, r| *f == id && r == role));
            (share, self.framework_counts[&(role.clone(), id.clone())], id)
        };
        let mut keys: Vec<_> = self.members(role).into_iter().filter(active).map(key).collect();
        keys.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| (a.1, &a.2).cmp(&(b.1, &b.2))));
        keys.into_iter().map(|(_, _, id)| (role.clone(), id)).collect()
    }

    // Offers.

    pub fn start_run(&mut self) {
        self.offered_shared.clear();
    }

    pub fn offered(&mut self, agent: &AgentId, resources: &Resources) {
        *self.offered_shared.entry(agent.clone()).or_default() += &resources.shared();
    }

    /// Returns the offers that a visit to an agent makes. `asked_again` says whether refusals that have ended since the
    /// last interval run still count as refusals.
    pub fn visit(&self, id: &AgentId, asked_again: bool, part: Part) -> Offers {
        let agent = &self.agents[id];
        let listed = self.whitelist.as_ref().is_none_or(|hosts| hosts.contains(&agent.options.hostname));
        if !agent.active || !listed {
            return Vec::new();
        }
        let mut free = self.free(id);
        if let Some(offered) = self.offered_shared.get(id) {
            free -= offered;
        }
        let mut offers = Vec::new();
        for (role, framework) in self.order() {
            match self.offer(&free, id, (&role, &framework), asked_again, part, &offers) {
                None => {}
                // The client has its turn again in the next interval run. If shares decide, no client after it is
                // served first.
                Some((_, true)) if part == Part::Shares => break,
                Some((_, true)) => {}
                Some((offer, false)) => {
                    free -= &offer;
                    offers.push((role, framework, offer));
                }
            }
        }
        offers
    }

    /// Returns the resources to offer, if any, and whether they were refused until the next interval run.
    fn offer(
        &self,
        free: &Resources,
        id: &AgentId,
        (role, framework_id): (&Role, &FrameworkId),
        asked_again: bool,
        part: Part,
        given: &Offers,
    ) -> Option<(Resources, bool)> {
        let agent = &self.agents[id];
        let framework = &self.frameworks[framework_id];
        let can = framework.options.capabilities;
        let has_gpus = agent.total.gpus().is_positive();
        let remote = agent.options.region.is_some() && agent.options.region != self.config.region;
        let hidden = (has_gpus && self.config.filter_gpu_resources && !can.gpu_resources)
            || (remote && !can.region_aware)
            || (can.multi_role && !agent.options.capabilities.multi_role)
            || (role.as_str().contains('/') && !agent.options.capabilities.hierarchical_role)
            || !framework.options.constraints.allow(role, &agent.options);
        if hidden {
            return None;
        }
        let seen = free.filter(|r: &Resource| {
            let reserved_for_another = r.reservation_role().is_some_and(|to| !role.is_same_or_subrole_of(to));
            !(reserved_for_another
                || (r.is_shared() && !can.shared_resources)
                || (r.is_revocable() && !can.revocable_resources)
                || (r.reservations().len() > 1 && !can.reservation_refinement))
        });
        let offer = self.within_quota(&seen, &role.top_level(), part, given)?;
        let minimum = framework.options.min_allocatable.get(role).unwrap_or(&self.config.min_allocatable);
        let amounts = offer.quantities();
        if offer.is_empty() || (!minimum.is_empty() && !minimum.iter().any(|least| amounts.contains(least))) {
            return None;
        }
        let mut refusals = self.refusals.iter().filter(|r| {
            (&r.framework, &r.role, &r.agent) == (framework_id, role, id)
                && (!r.ended || !asked_again)
                && r.refused.contains(&offer)
        });
        let rests = refusals.clone().next().is_some();
        refusals.all(|r| r.until == Until::NextInterval).then_some((offer, rests))
    }

    // Maintenance.

    /// Makes filters void, after REVIVE or a change of the connection. A disconnected framework has no outstanding
    /// inverse offers.
    pub fn reconnect(&mut self, id: &FrameworkId, active: bool) {
        if self.frameworks.contains_key(id) {
            for window in self.windows.values_mut() {
                window.filters.remove(id);
                if !active {
                    window.asked.remove(id);
                }
            }
        }
    }

    /// Returns the inverse offers that must be made now, and those that may be made.
    pub fn inverse_offers(&self, now: Time, interval: bool) -> (Asked, Asked) {
        let (mut least, mut most) = (Asked::new(), Asked::new());
        for (agent, window) in self.windows.iter().filter(|(id, _)| self.agents[*id].active) {
            let holders: BTreeSet<_> = self.held.keys().filter(|(_, _, at)| at == agent).map(|(f, _, _)| f).collect();
            for id in holders {
                let active = self.frameworks.get(id).is_some_and(|framework| framework.active);
                let filtered = window.filters.get(id).is_some_and(|until| *until >= now);
                if active && !filtered && !window.asked.contains(id) {
                    most.insert((agent.clone(), id.clone()));
                    if interval || !window.resting.contains(id) {
                        least.insert((agent.clone(), id.clone()));
                    }
                }
            }
        }
        (least, most)
    }

    // Quota.

    /// Returns the quantities that a top-level role consumes: all that is reserved for it or below it, and other
    /// resources that are held.
    pub fn charged(&self, top: &Role) -> Quantities {
        let below = |role: &Role| role.is_same_or_subrole_of(top);
        let reserved = self.agents.values().flat_map(|agent| agent.total.reservations());
        let reserved = reserved.filter(|(role, _)| below(role));
        let reserved = reserved.fold(Quantities::new(), |sum, (_, r)| sum + &r.quantities());
        reserved + &self.held_in(below).1
    }

    /// Returns the free quantities on all agents that are neither reserved nor revocable.
    pub fn available(&self) -> Quantities {
        self.agents.keys().fold(Quantities::new(), |sum, id| sum + &counted(&self.free(id)))
    }

    /// Returns the sum of the quantities that guarantees lack.
    pub fn required(&self) -> Quantities {
        let top = self.quotas.iter().filter(|(role, _)| !role.as_str().contains('/'));
        top.fold(Quantities::new(), |sum, (role, quota)| sum + &quota.guarantees.saturating_sub(&self.charged(role)))
    }

    /// Cuts the resources that a framework may see down to those that its role may have, after what this visit has
    /// offered to other clients.
    fn within_quota(&self, seen: &Resources, top: &Role, part: Part, given: &Offers) -> Option<Resources> {
        let given_to = |role: &Role| {
            let offers = given.iter().filter(|(to, _, _)| to.is_same_or_subrole_of(role));
            offers.fold(Quantities::new(), |sum, (_, _, offer)| sum + &counted(offer))
        };
        let unmet =
            |role: &Role, quota: &Quota| quota.guarantees.saturating_sub(&(self.charged(role) + &given_to(role)));
        let top_level = self.quotas.iter().filter(|(role, _)| !role.as_str().contains('/'));
        let required = top_level.clone().fold(Quantities::new(), |sum, (role, quota)| sum + &unmet(role, quota));
        let mut available = self.available();
        given.iter().for_each(|(_, _, offer)| available -= &counted(offer));
        let quota = self.quotas.get(top).cloned().unwrap_or_default();
        let own = if part == Part::Guarantees { unmet(top, &quota) } else { Quantities::new() };
        let charged = self.charged(top) + &given_to(top);
        let there = counted(seen);
        let mut allowed = Quantities::new();
        for (name, amount) in there.iter() {
            let guaranteed = own.get(&name).min(amount);
            // Resources without a guarantee are not withheld.
            let beyond = match required.get(&name).is_positive() {
                true => available.get(&name).minus_floored(required.get(&name)),
                false => amount,
            };
            let most = guaranteed + beyond.min(amount - guaranteed);
            let room = quota.limits.get(&name).map(|limit| limit.minus_floored(charged.get(&name)));
            allowed.set(&name, room.map_or(most, |room| most.min(room)));
        }
        let offer = cut(seen, &allowed);
        let left = counted(&offer);
        let serves = own.iter().any(|(name, _)| left.get(&name).is_positive());
        (part == Part::Shares || serves).then_some(offer)
    }

    /// Ends refusals that have expired and, with an interval run, those that lasted until it.
    pub fn end_refusals(&mut self, now: Time, interval: bool) {
        for refusal in &mut self.refusals {
            refusal.ended |= match refusal.until {
                Until::NextInterval => interval,
                Until::After(until) => until < now,
            };
        }
        if interval {
            self.refusals.retain(|r| !r.ended);
        }
    }
}

/// Returns the quantities that are neither reserved nor revocable.
pub fn counted(resources: &Resources) -> Quantities {
    resources.filter(|r| r.is_unreserved() && !r.is_revocable()).quantities()
}

/// Keeps this much of each name that is neither reserved nor revocable, and all other resources.
fn cut(resources: &Resources, allowed: &Quantities) -> Resources {
    let mut kept = resources.filter(|r| r.is_reserved() || r.is_revocable() || r.amount().is_none());
    let open = resources.filter(|r| r.is_unreserved() && !r.is_revocable() && r.amount().is_some());
    let names: BTreeSet<Name> = open.iter().map(|r| r.name().clone()).collect();
    for name in names {
        let mut left = allowed.get(&name);
        let mut parts: Vec<&Resource> = open.iter().filter(|r| *r.name() == name).collect();
        // Divisible resources first, then the smallest.
        parts.sort_by_key(|r| if r.is_indivisible() { r.amount() } else { None });
        for part in parts {
            let amount = part.amount().unwrap_or_default();
            let taken = if amount <= left {
                amount
            } else if part.is_indivisible() {
                Amount::ZERO
            } else {
                left
            };
            if taken.is_positive() {
                kept.add(part.clone().with_value(resources::Value::Scalar(taken)));
                left -= taken;
            }
        }
    }
    kept
}
