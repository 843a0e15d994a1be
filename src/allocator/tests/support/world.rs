//! A cluster in which the real allocator and the naive one receive every step.
//!
//! After each step, for every agent: free, offered and used resources add up to the total, and are equal to those of
//! the naive allocator; for every role the sums agree. After each run: every visited agent's offers are exactly those
//! of the naive allocator, and after an interval run there is nothing left that any framework would be offered.

use std::collections::BTreeSet;
use std::time::Duration;

use allocator::{
    AgentOptions, Allocator, Config, Filter, FrameworkOptions, Held, Holder, InverseAnswer, InverseOffering, Offering,
    Quota, Unavailability, Weight,
};
use base::{AgentId, FrameworkId, Time};
use resources::{Conversion, Quantities, Resources, Role};

use super::oracle::{Agent, Framework, Holding, Oracle, Part, Refusal, Until, Window, counted, index};

pub struct World {
    pub allocator: Allocator,
    pub oracle: Oracle,
    pub now: Time,
    /// Inverse offers that the last run made.
    pub inverse: Vec<InverseOffering>,
}

fn holder(holding: &Holding) -> Holder<'_> {
    Holder { framework: &holding.0, role: &holding.1, agent: &holding.2 }
}

impl World {
    pub fn new(config: Config) -> World {
        let oracle = Oracle::new(config.clone());
        World { allocator: Allocator::new(config), oracle, now: Time::from_secs(1000), inverse: Vec::new() }
    }

    pub fn tick(&mut self, by: Duration) {
        self.now = self.now + by;
    }

    // Frameworks.

    pub fn add_framework(&mut self, id: &FrameworkId, options: &FrameworkOptions, active: bool) {
        let fresh = !self.oracle.frameworks.contains_key(id);
        // Resources that agents have reported count once per agent and role, now that the framework is known.
        let brought: Vec<Role> =
            self.oracle.held.keys().filter(|(f, _, _)| f == id).map(|(_, r, _)| r.clone()).collect();
        let used = self.oracle.held.iter().filter(|((f, _, _), _)| f == id);
        let used: Vec<_> = used.map(|((_, r, a), sets)| (a.clone(), r.clone(), sets[1].clone())).collect();
        self.allocator.add_framework(id, options, active, &used);
        let framework = Framework { options: FrameworkOptions::default(), active };
        if fresh {
            self.oracle.frameworks.insert(id.clone(), framework);
            for role in brought {
                self.oracle.count(id, &role);
            }
        } else {
            if let Some(old) = self.oracle.frameworks.get_mut(id) {
                old.active = active;
            }
            self.oracle.refusals.retain(|r| active || r.framework != *id);
        }
        self.oracle.reconnect(id, active);
        self.set_options(id, options);
        self.check();
    }

    pub fn update_framework(&mut self, id: &FrameworkId, options: &FrameworkOptions) {
        self.allocator.update_framework(id, options);
        self.set_options(id, options);
        self.check();
    }

    fn set_options(&mut self, id: &FrameworkId, options: &FrameworkOptions) {
        // New roles are added before former ones are removed.
        let Some(framework) = self.oracle.frameworks.get_mut(id) else { return };
        let old = framework.options.roles.clone();
        framework.options = options.clone();
        framework.options.roles.extend(old);
        self.oracle.settle();
        if let Some(framework) = self.oracle.frameworks.get_mut(id) {
            framework.options.roles = options.roles.clone();
        }
        self.oracle.refusals.retain(|r| r.framework != *id || options.roles.contains(&r.role));
    }

    pub fn remove_framework(&mut self, id: &FrameworkId) {
        self.allocator.remove_framework(id);
        self.oracle.frameworks.remove(id);
        self.oracle.held.retain(|(f, _, _), _| f != id);
        self.oracle.refusals.retain(|r| r.framework != *id);
        self.oracle.windows.values_mut().for_each(|window| window.forget(id));
        self.check();
    }

    pub fn set_framework_active(&mut self, id: &FrameworkId, active: bool) {
        if active {
            self.allocator.activate_framework(id);
        } else {
            self.allocator.deactivate_framework(id);
            self.oracle.refusals.retain(|r| r.framework != *id);
        }
        self.oracle.reconnect(id, active);
        if let Some(framework) = self.oracle.frameworks.get_mut(id) {
            framework.active = active;
        }
        self.check();
    }

    pub fn suppress(&mut self, id: &FrameworkId, roles: &BTreeSet<Role>) {
        self.allocator.suppress(id, roles);
        if let Some(framework) = self.oracle.frameworks.get_mut(id) {
            let roles = if roles.is_empty() { framework.options.roles.clone() } else { roles.clone() };
            framework.options.suppressed_roles.extend(roles);
        }
        self.check();
    }

    pub fn revive(&mut self, id: &FrameworkId, roles: &BTreeSet<Role>) {
        self.allocator.revive(id, roles);
        if let Some(framework) = self.oracle.frameworks.get_mut(id) {
            framework.options.suppressed_roles.retain(|role| !roles.is_empty() && !roles.contains(role));
        }
        self.oracle.refusals.retain(|r| r.framework != *id || !(roles.is_empty() || roles.contains(&r.role)));
        self.oracle.reconnect(id, true);
        self.check();
    }

    pub fn set_weight(&mut self, role: &Role, weight: Weight) {
        self.allocator.set_weight(role, weight);
        self.oracle.weights.insert(role.clone(), weight);
        self.check();
    }

    pub fn set_quota(&mut self, role: &Role, quota: Quota) {
        self.allocator.set_quota(role, quota.clone());
        match quota.is_default() {
            true => drop(self.oracle.quotas.remove(role)),
            false => drop(self.oracle.quotas.insert(role.clone(), quota)),
        }
        self.check();
    }

    // Agents.

    pub fn add_agent(
        &mut self,
        id: &AgentId,
        options: AgentOptions,
        total: &Resources,
        used: &[(FrameworkId, Role, Resources)],
    ) {
        self.allocator.add_agent(id, options.clone(), total, used);
        self.oracle.agents.insert(id.clone(), Agent { options, total: total.clone(), active: true });
        for (framework, role, resources) in used {
            self.oracle.hold(&(framework.clone(), role.clone(), id.clone()), resources, Held::Used);
            if self.oracle.frameworks.contains_key(framework) {
                self.oracle.count(framework, role);
            }
        }
        self.check();
    }

    pub fn update_agent(&mut self, id: &AgentId, total: &Resources) {
        let Some(agent) = self.oracle.agents.get_mut(id) else { return };
        self.allocator.update_agent(id, agent.options.clone(), total);
        agent.total = total.clone();
        self.check();
    }

    pub fn remove_agent(&mut self, id: &AgentId) {
        self.allocator.remove_agent(id);
        self.oracle.agents.remove(id);
        self.oracle.windows.remove(id);
        self.oracle.held.retain(|(_, _, a), _| a != id);
        self.oracle.refusals.retain(|r| r.agent != *id);
        self.check();
    }

    pub fn set_agent_active(&mut self, id: &AgentId, active: bool) {
        if active {
            self.allocator.activate_agent(id)
        } else {
            self.allocator.deactivate_agent(id)
        }
        if let Some(agent) = self.oracle.agents.get_mut(id) {
            agent.active = active;
        }
        self.check();
    }

    pub fn set_whitelist(&mut self, hostnames: Option<BTreeSet<String>>) {
        self.allocator.set_whitelist(hostnames.clone());
        self.oracle.whitelist = hostnames;
        self.check();
    }

    /// Holds back offers until this many agents are registered, or that time has passed.
    pub fn hold(&mut self, agents: usize, span: Duration) {
        self.allocator.pause_until_agents(agents, self.now + span);
        self.oracle.hold = Some((agents, self.now + span)).filter(|_| self.oracle.agents.len() < agents);
        self.check();
    }

    // Maintenance.

    pub fn set_unavailability(&mut self, id: &AgentId, unavailability: Option<Unavailability>) -> Vec<FrameworkId> {
        let asked = self.allocator.set_unavailability(id, unavailability);
        let window = unavailability.filter(|_| self.oracle.agents.contains_key(id)).map(|_| Window::default());
        let old = match window {
            Some(window) => self.oracle.windows.insert(id.clone(), window),
            None => self.oracle.windows.remove(id),
        };
        assert_eq!(asked, old.map_or_else(Vec::new, |old| old.asked.into_iter().collect()), "asked to leave {id}");
        self.check();
        asked
    }

    pub fn leave(&mut self, who: &FrameworkId, at: &AgentId, answer: Option<InverseAnswer>, filter: Option<Filter>) {
        self.allocator.answer_inverse_offer(who, at, answer, filter, self.now);
        if let Some(window) = self.oracle.windows.get_mut(at).filter(|_| self.oracle.frameworks.contains_key(who)) {
            let asked = window.asked.remove(who);
            if let Some(answer) = answer.filter(|_| asked) {
                window.answers.insert(who.clone(), answer);
            }
            match filter.map(|filter| filter.refuse).filter(|refuse| !refuse.is_zero()) {
                Some(refuse) => drop(window.filters.insert(who.clone(), self.now + refuse)),
                None => drop(window.resting.insert(who.clone())),
            }
        }
        self.check();
    }

    /// Checks that inverse offers go exactly to the frameworks that hold resources, are connected, and have neither an
    /// outstanding inverse offer nor a filter.
    fn check_inverse(&mut self, interval: bool) {
        self.inverse = self.allocator.inverse_offers(self.now);
        let made: BTreeSet<_> = self.inverse.iter().map(|o| (o.agent.clone(), o.framework.clone())).collect();
        assert_eq!(made.len(), self.inverse.len(), "asked twice: {:?}", self.inverse);
        let expected = self.oracle.inverse_offers(self.now, interval);
        let (least, most) = expected;
        assert!(made.is_subset(&most), "asked against the rules: {made:?}, not {most:?}");
        assert!(made.is_superset(&least), "not asked: {least:?}, only {made:?}");
        for (agent, framework) in made {
            self.oracle.windows.entry(agent).or_default().asked.insert(framework);
        }
        if interval {
            self.oracle.windows.values_mut().for_each(|window| window.resting.clear());
        }
        for (agent, window) in &self.oracle.windows {
            let asked: Vec<_> = window.asked.iter().cloned().collect();
            assert_eq!(self.allocator.inverse_offers_out(agent), asked, "asked to leave {agent}");
            let answers = self.allocator.inverse_answers(agent).into_iter().map(|v| (v.framework, v.answer));
            assert_eq!(answers.collect::<std::collections::BTreeMap<_, _>>(), window.answers, "answers of {agent}");
        }
    }

    // Results of offers.

    pub fn recover(&mut self, holding: &Holding, resources: &Resources, held: Held, filter: Option<Filter>) {
        self.allocator.recover(holder(holding), resources, held, filter, self.now);
        self.oracle.unhold(holding, resources, held);
        if let Some(filter) = filter
            && !resources.is_empty()
        {
            let least = self.oracle.config.allocation_interval;
            let until = match filter.refuse {
                Duration::ZERO => Until::NextInterval,
                refuse => Until::After(self.now + refuse.max(least)),
            };
            let (framework, role, agent) = holding.clone();
            if until == Until::NextInterval {
                self.oracle.rested.insert(agent.clone());
            }
            let subscribed = self.oracle.frameworks.get(&framework).is_some_and(|f| f.options.roles.contains(&role));
            // A longer refusal replaces those until the next interval run that it covers.
            let same = |r: &Refusal| (&r.framework, &r.role, &r.agent) == (&framework, &role, &agent) && !r.ended;
            if subscribed && until != Until::NextInterval {
                let covers = |r: &Refusal| r.until == Until::NextInterval && resources.contains(&r.refused);
                self.oracle.refusals.retain(|r| !(same(r) && covers(r)));
            }
            if subscribed {
                self.oracle.refusals.push(Refusal {
                    framework,
                    role,
                    agent,
                    refused: resources.clone(),
                    until,
                    ended: false,
                });
            }
        }
        self.check();
    }

    pub fn mark_used(&mut self, holding: &Holding, resources: &Resources) {
        self.allocator.mark_offered_used(holder(holding), resources);
        self.oracle.unhold(holding, resources, Held::Offered);
        self.oracle.hold(holding, resources, Held::Used);
        self.check();
    }

    pub fn add_shared_copies(&mut self, holding: &Holding, shared: &Resources) {
        self.allocator.add_shared_copies(holder(holding), shared);
        let used = self.oracle.held.get(holding).map_or(Resources::new(), |sets| sets[index(Held::Used)].shared());
        self.oracle.hold(holding, &shared.filter(|r| used.count(r) > 0), Held::Used);
        self.check();
    }

    pub fn transform(&mut self, holding: &Holding, conversion: &Conversion, held: Held) -> Result<(), String> {
        let steps = std::slice::from_ref(conversion);
        self.allocator.transform(holder(holding), steps, held).map_err(|e| e.to_string())?;
        if let Some(agent) = self.oracle.agents.get_mut(&holding.2) {
            agent.total -= &conversion.consumed;
            agent.total += &conversion.converted;
        }
        self.oracle.unhold(holding, &conversion.consumed, held);
        self.oracle.hold(holding, &conversion.converted, held);
        self.check();
        Ok(())
    }

    pub fn update_available(&mut self, id: &AgentId, conversion: &Conversion) -> Result<(), String> {
        self.allocator.update_available(id, std::slice::from_ref(conversion)).map_err(|e| e.to_string())?;
        if let Some(agent) = self.oracle.agents.get_mut(id) {
            agent.total -= &conversion.consumed;
            agent.total += &conversion.converted;
        }
        self.check();
        Ok(())
    }

    // Runs.

    pub fn allocate(&mut self) -> Vec<Offering> {
        let offerings = self.allocator.allocate(self.now);
        self.run(&offerings, false);
        self.check_inverse(false);
        offerings
    }

    pub fn allocate_all(&mut self) -> Vec<Offering> {
        let offerings = self.allocator.allocate_all(self.now);
        self.run(&offerings, true);
        self.check_inverse(true);
        offerings
    }

    /// Checks the time of the allocator's next interval run: it is not later than any client that waits needs.
    fn check_wake(&self) {
        let end = |r: &Refusal| if let Until::After(until) = r.until { until } else { Time::EPOCH };
        // A refusal that a longer one covers makes no difference.
        let covered = |r: &Refusal| {
            self.oracle.refusals.iter().any(|o| {
                (&o.framework, &o.role, &o.agent) == (&r.framework, &r.role, &r.agent)
                    && !o.ended
                    && end(o) > end(r)
                    && o.refused.contains(&r.refused)
            })
        };
        let over = |r: &&Refusal| r.ended || r.until == Until::NextInterval;
        let waits = self.oracle.refusals.iter().filter(over).any(|r| !covered(r));
        let timed = self.oracle.refusals.iter().filter(|r| !over(r) && !covered(r)).map(end).min();
        let wake = self.allocator.next_wake();
        assert!(!waits || wake.is_some(), "a client waits for an interval run that never comes");
        let latest = self.now + self.oracle.config.allocation_interval;
        assert!(!waits || wake <= Some(latest), "an interval run is at most an interval away: {wake:?}");
        assert!(
            timed.is_none()
                || wake.is_some_and(|at| at <= timed.unwrap_or_default().max(latest) + Duration::from_nanos(1))
        );
    }

    /// Compares a run with the naive allocator, visit by visit in the order in which the real one made them: first
    /// those that serve guarantees, until no guarantee can be served; then those by share.
    fn run(&mut self, offerings: &[Offering], interval: bool) {
        self.oracle.end_refusals(self.now, interval);
        self.oracle.start_run();
        if interval {
            self.oracle.rested.clear();
        }
        self.oracle.hold =
            self.oracle.hold.filter(|(agents, until)| self.oracle.agents.len() < *agents && self.now < *until);
        if self.oracle.hold.is_some() {
            assert!(offerings.is_empty(), "offers are held until agents are back");
            return self.check();
        }
        let left = self.part(offerings, Part::Guarantees, interval);
        let left = self.part(left, Part::Shares, interval);
        assert!(left.is_empty(), "not by the rules: {left:?}");
        self.check_nothing_left(Part::Guarantees, interval);
        self.check();
    }

    /// Compares the visits of one part. Returns the offers of the next part.
    fn part<'a>(&mut self, offerings: &'a [Offering], part: Part, interval: bool) -> &'a [Offering] {
        let mut rest = offerings;
        let mut visited = BTreeSet::new();
        while let Some(first) = rest.first() {
            let expected = self.oracle.visit(&first.agent, true, part);
            if expected.is_empty() {
                break;
            }
            let count = rest.iter().take(expected.len()).take_while(|o| o.agent == first.agent).count();
            let (visit, others) = rest.split_at(count);
            let made: Vec<_> =
                visit.iter().map(|o| (o.role.clone(), o.framework.clone(), (*o.resources).clone())).collect();
            assert_eq!(made, expected, "offers on {} ({part:?})", first.agent);
            assert!(visited.insert(first.agent.clone()), "{} was visited twice in a part of a run", first.agent);
            for offer in visit {
                let holding = (offer.framework.clone(), offer.role.clone(), offer.agent.clone());
                self.oracle.hold(&holding, &offer.resources, Held::Offered);
                self.oracle.count(&offer.framework, &offer.role);
                self.oracle.offered(&offer.agent, &offer.resources);
            }
            rest = others;
        }
        self.check_nothing_left(part, interval);
        rest
    }

    fn check_nothing_left(&self, part: Part, interval: bool) {
        for (id, agent) in &self.oracle.agents {
            // In other runs shared resources wait for the interval. So do clients whose refusal has ended, and an agent
            // on which a client was suppressed since, because the order may differ then.
            let rests = self.oracle.rested.contains(id);
            let complete = interval || (agent.total.shared().is_empty() && !rests);
            let left = self.oracle.visit(id, interval, part);
            assert!(!complete || left.is_empty(), "no client was offered what is left on {id} ({part:?}): {left:?}");
        }
    }

    // Checks.

    /// Checks that the two allocators agree, and that nothing is lost or created.
    fn check(&mut self) {
        self.oracle.settle();
        for (id, agent) in &self.oracle.agents {
            self.check_agent(id, agent);
        }
        self.check_roles();
        let refusals = self.oracle.agents.keys().map(|id| self.allocator.refusals(id).len() as u64).sum::<u64>();
        assert_eq!(self.allocator.refusal_count(), refusals, "refusals in force");
        self.check_wake();
    }

    fn check_agent(&self, id: &AgentId, agent: &Agent) {
        let view = self.allocator.agent_view(id).expect("the agent is there");
        assert_eq!(view.total, agent.total, "total of {id}");
        assert_eq!(view.free, self.oracle.free(id), "free on {id}");
        for (which, list) in [&view.offered, &view.used].into_iter().enumerate() {
            let held: Vec<_> =
                self.oracle.held.iter().filter(|((_, _, a), sets)| a == id && !sets[which].is_empty()).collect();
            assert_eq!(list.len(), held.len(), "holders on {id}");
            for (framework, role, resources) in list {
                let sets = self.oracle.held.get(&(framework.clone(), role.clone(), id.clone()));
                assert_eq!(sets.map(|sets| &sets[which]), Some(resources), "held by {framework} on {id}");
            }
        }
        let held: Resources = view.offered.iter().chain(&view.used).map(|(_, _, r)| r.non_shared()).sum();
        if agent.total.contains(&held) {
            assert_eq!(held + &view.free, agent.total, "nothing is lost or made on {id}");
        }
    }

    fn check_roles(&self) {
        for view in self.allocator.roles() {
            let of_role = |which: usize| {
                let held = self.oracle.held.iter().filter(|((_, role, _), _)| *role == view.role);
                held.fold(Quantities::new(), |sum, (_, sets)| sum + &sets[which].quantities())
            };
            assert_eq!(view.offered, of_role(0), "offered to {}", view.role);
            assert_eq!(view.used, of_role(1), "used by {}", view.role);
            let reserved = self.oracle.agents.values().flat_map(|agent| agent.total.reservations());
            let reserved = reserved.filter(|(role, _)| role.is_same_or_subrole_of(&view.role));
            let reserved = reserved.fold(Quantities::new(), |sum, (_, r)| sum + &r.quantities());
            let below = |role: &Role| role.is_same_or_subrole_of(&view.role);
            let (held_reserved, held_unreserved) = self.oracle.held_in(below);
            assert_eq!(view.held_reserved, held_reserved, "reserved and held in {}", view.role);
            assert_eq!(view.held_unreserved, held_unreserved, "unreserved and held in {}", view.role);
            assert_eq!(view.reserved, reserved, "reserved for {}", view.role);
            let quota = self.oracle.quotas.get(&view.role).cloned().unwrap_or_default();
            assert_eq!(view.quota, quota, "quota of {}", view.role);
            assert_eq!(view.charged, reserved.clone() + &held_unreserved, "charged to {}", view.role);
            let used = self.oracle.held.iter().filter(|((_, role, _), _)| below(role));
            let used = used.fold(Quantities::new(), |sum, (_, sets)| sum + &counted(&sets[1]));
            assert_eq!(view.consumed, reserved + &used, "consumed by {}", view.role);
        }
        assert_eq!(self.allocator.quotas(), self.oracle.quotas);
        let headroom = self.allocator.headroom();
        assert_eq!((headroom.available, headroom.required), (self.oracle.available(), self.oracle.required()));
    }
}
