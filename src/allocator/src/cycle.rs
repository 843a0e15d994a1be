//! The allocation run: the agents that are visited, the clients that are considered, and the offers.
//!
//! A run visits only agents on which something has changed since all clients refused, and considers only clients whose
//! answer may have changed. So its result equals that of considering every client for every agent, and a run without
//! changes costs nothing.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use base::Time;
use resources::Resources;

use crate::Offering;
use crate::agents::ClientsToConsider;
use crate::allocator::Allocator;
use crate::bits::Bits;
use crate::clients::ClientIx;
use crate::guarantees::EligibleClients;
use crate::headroom::{QuotaLedger, Stage};
use crate::portion::{OfferDecision, VisitPortions};
use crate::refusals::{self, nanos};
use crate::roles::RoleIx;
use crate::visits::AgentsToVisit;

/// Clients that a visit to an agent considers.
pub(crate) enum Candidates {
    All,
    /// These clients, sorted by number.
    Some(Vec<ClientIx>),
}

/// Result of a visit to an agent.
pub(crate) struct VisitResult {
    pub(crate) offers: Vec<(ClientIx, Arc<Resources>)>,
    /// Roles whose limits have restricted an offer.
    pub(crate) limited_roles: Vec<RoleIx>,
    /// Whether resources withheld for guarantees have prevented an offer.
    pub(crate) withheld: bool,
    /// Frameworks that were skipped because they hold too much as offers.
    pub(crate) capped: Vec<u32>,
    /// Whether the next client in the order waits for the next interval run.
    pub(crate) waits_for_interval: bool,
    /// Whether only one slice of the agent was offered, so that another visit offers the next one.
    pub(crate) again: bool,
}

impl VisitResult {
    pub(crate) fn new(offers: Vec<(ClientIx, Arc<Resources>)>, ledger: Option<QuotaLedger<'_>>) -> VisitResult {
        let (limited_roles, withheld) =
            ledger.map_or((Vec::new(), false), |ledger| (ledger.limited_roles, ledger.withheld));
        VisitResult { offers, limited_roles, withheld, capped: Vec::new(), waits_for_interval: false, again: false }
    }

    /// Returns whether another slice may be offered. Shared resources are offered once in a run.
    pub(crate) fn may_offer_again(&self) -> bool {
        let shared = |offer: &Resources| offer.iter().any(resources::Resource::is_shared);
        self.again
            && !self.waits_for_interval
            && !self.offers.is_empty()
            && !self.offers.iter().any(|(_, offer)| shared(offer))
    }
}

impl Allocator {
    /// Offers resources that were freed or requested since the last run. The returned offers are allocated.
    ///
    /// Call it after each batch of inputs. Clients whose refusal has expired are not considered for that alone: they
    /// wait for [`Allocator::allocate_all`], so that expiring refusals do not cause a run each.
    #[must_use]
    pub fn allocate(&mut self, now: Time) -> Vec<Offering> {
        self.end_refusals(now);
        self.run(now, false)
    }

    /// Performs an interval run: like [`Allocator::allocate`], and also considers clients whose refusal has expired.
    ///
    /// Call it at [`Allocator::next_wake`], or at every allocation interval.
    #[must_use]
    pub fn allocate_all(&mut self, now: Time) -> Vec<Offering> {
        self.last_interval = now;
        self.interval_due = None;
        self.maintenance.interval();
        self.end_refusals(now);
        for (agent, client) in self.refusal_expiries.take_until_interval() {
            self.end_refusal(agent, client, nanos(now), true);
        }
        self.run(now, true)
    }

    /// Returns the time of the next interval run that has something to do: when a refusal expires, but at least one
    /// interval after the last one. Returns `None` if nothing happens without further inputs.
    #[must_use]
    pub fn next_wake(&self) -> Option<Time> {
        let ended = [self.refusal_expiries.next(), self.maintenance.next()].into_iter().flatten().min();
        let ended = ended.map(|ends| ends.max(self.last_interval + self.config.allocation_interval));
        let recovered = self.recovering.map(|(_, until)| until);
        [ended, self.interval_due, recovered].into_iter().flatten().min()
    }

    /// Schedules the next interval run at the first multiple of the interval after `now`, counted from the last run.
    /// Intervals without work have no run, which does not shorten the wait.
    pub(crate) fn await_interval(&mut self, now: Time) {
        let interval = self.config.allocation_interval.as_nanos().max(1);
        let past = now.since(self.last_interval).as_nanos() % interval;
        let left = u64::try_from(interval - past).unwrap_or(u64::MAX);
        self.interval_due.get_or_insert(now + Duration::from_nanos(left));
    }

    fn end_refusals(&mut self, now: Time) {
        let at = nanos(now);
        while let Some((agent, client)) = self.refusal_expiries.pop(at) {
            self.end_refusal(agent, client, at, false);
        }
        if self.refusal_expiries.is_crowded(self.clients.all_refusals()) {
            let agents = self.agents.iter_mut().map(|(ix, agent)| (ix as u32, &mut agent.refusals));
            self.refusal_expiries.rebuild(agents, &self.clients);
        }
    }

    fn end_refusal(&mut self, agent: u32, client: ClientIx, now: u64, until_interval: bool) {
        let Some(state) = self.agents.get_mut(agent as usize) else { return };
        if refusals::end(&mut state.refusals, client, now, until_interval, &mut self.clients) {
            state.clients_to_consider.some.push(client);
            self.enqueue_late(agent);
        }
    }

    fn run(&mut self, now: Time, interval: bool) -> Vec<Offering> {
        let mut offerings = Vec::new();
        self.sample_fairness(now);
        self.open_clients_below_cap();
        self.open_less_restricted();
        self.caps.begin_run();
        let paused = self.is_paused(now);
        let mut opened = if paused { Vec::new() } else { std::mem::take(&mut self.opened) };
        opened.retain(|client| self.may_be_considered(*client));
        let mut to_visit =
            if paused { AgentsToVisit::default() } else { self.candidates(interval, !opened.is_empty()) };
        if !to_visit.left.is_empty() {
            self.tree.settle();
            let shared = self.serve_guarantees(&mut to_visit, &mut offerings);
            let mut eligible = EligibleClients::default();
            self.in_order(&mut to_visit);
            let (mut left, mut out) = (self.is_any_client_left(&opened, &mut to_visit), self.caps.skipped_for_run());
            while left && let Some(agent) = self.next_agent(&mut to_visit) {
                if self.may_visit(agent) {
                    self.visit(agent, shared.get(&agent), &mut eligible, &mut offerings);
                }
                if self.caps.skipped_for_run() != out {
                    (left, out) = (self.is_any_client_left(&opened, &mut to_visit), self.caps.skipped_for_run());
                }
            }
            self.record_bounds();
        }
        if !self.queue_late.is_empty() {
            self.await_interval(now);
        }
        offerings
    }

    /// Returns whether a client is left to consider for the remaining agents. A client that is no longer considered is
    /// at its cap. It is opened when it holds less, and then considered for every agent. So agents that are not visited
    /// need no record of it.
    fn is_any_client_left(&self, opened: &[ClientIx], to_visit: &mut AgentsToVisit) -> bool {
        if to_visit.changed.is_some() && !opened.iter().any(|client| self.may_be_considered(*client)) {
            to_visit.only_changed();
        }
        to_visit.changed.is_some() || self.tree.listed().iter().any(|client| self.may_be_considered(client))
    }

    /// Returns whether a client has not suppressed its role and may hold more in this run.
    fn may_be_considered(&self, client: ClientIx) -> bool {
        let state = self.clients.try_get(client);
        state.is_some_and(|state| {
            state.node.is_some_and(|node| self.tree.is_active(node)) && !self.caps.is_skipped_for_run(state.framework)
        })
    }

    /// Returns the agents to visit. Agents that may not be offered remain as they are until they may.
    fn candidates(&mut self, interval: bool, opened: bool) -> AgentsToVisit {
        let mut queued = std::mem::take(&mut self.queue);
        for agent in &queued {
            self.agents[*agent as usize].queued = false;
        }
        if interval {
            for agent in std::mem::take(&mut self.queue_late) {
                self.agents[agent as usize].queued_late = false;
                queued.push(agent);
            }
        }
        if interval || opened {
            queued.sort_unstable();
            queued.dedup();
        }
        if opened {
            return self.plan_round(self.spare.clone(), Some(queued));
        }
        self.plan_round(queued, None)
    }

    pub(crate) fn may_visit(&self, ix: u32) -> bool {
        let agent = &self.agents[ix as usize];
        agent.active
            && !agent.free.is_empty()
            && self.whitelist.as_ref().is_none_or(|hosts| hosts.contains(&agent.options.hostname))
    }

    /// Considers, in order of share, the clients that may be offered the free resources of an agent.
    fn visit(
        &mut self,
        ix: u32,
        shared: Option<&Resources>,
        eligible: &mut EligibleClients,
        offerings: &mut Vec<Offering>,
    ) {
        self.begin_visit(ix);
        let candidates = self.candidates_of(ix);
        // Shared resources that were offered for a guarantee are still free for other clients, but not in this run.
        self.agents[ix as usize].clients_to_consider =
            ClientsToConsider { all: shared.is_some(), ..ClientsToConsider::default() };
        let mut again = true;
        while again {
            let result = self.consider(ix, &candidates, shared, eligible.of(self));
            self.agents[ix as usize].clients_to_consider.since = self.clients.now();
            again = result.may_offer_again();
            self.allocate_result(ix, result, offerings);
        }
    }

    /// Returns the clients to consider for an agent.
    pub(crate) fn candidates_of(&self, ix: u32) -> Candidates {
        let clients_to_consider = &self.agents[ix as usize].clients_to_consider;
        if clients_to_consider.all {
            return Candidates::All;
        }
        let mut some = clients_to_consider.some.clone();
        some.extend(self.clients.opened_since(clients_to_consider.since));
        // Clients that wait for the next interval run precede those after them in the order.
        some.extend(self.agents[ix as usize].refusals.until_interval(&self.clients));
        some.sort_unstable();
        some.dedup();
        Candidates::Some(some)
    }

    /// Allocates the result of a visit.
    pub(crate) fn allocate_result(&mut self, ix: u32, result: VisitResult, offerings: &mut Vec<Offering>) {
        self.record_restrictions(ix, &result.limited_roles, result.withheld);
        for framework in result.capped {
            self.caps.cap(framework);
        }
        // If resources are indivisible, quota may allow the larger one when the smaller one is gone.
        let mut again = result.waits_for_interval || (!result.offers.is_empty() && self.has_whole_parts(ix));
        for (client, resources) in result.offers {
            self.allocate_offer(ix, client, &resources);
            // Shared resources are still free for other clients, but not in this run.
            again |= resources.iter().any(resources::Resource::is_shared);
            offerings.push(self.offering(ix, client, resources));
        }
        if again {
            self.agents[ix as usize].clients_to_consider.all = true;
            self.enqueue_late(ix);
        }
    }

    /// Returns what each client is offered when resources are divided by share. Nothing is booked here: within one
    /// visit the order does not change.
    fn consider(
        &self,
        ix: u32,
        candidates: &Candidates,
        shared: Option<&Resources>,
        eligible: Option<&Bits>,
    ) -> VisitResult {
        let open = if matches!(candidates, Candidates::All) { self.open_at_once(ix) } else { None };
        if open.as_ref().is_some_and(|(_, count)| *count == 0) {
            return VisitResult::new(Vec::new(), None);
        }
        let mut portions = VisitPortions::new(&self.agents[ix as usize], &self.config, shared);
        let mut ledger = self.ledger(Stage::Shares);
        let cut = portions.is_cut();
        let (mut offers, mut capped, mut waits_for_interval) = (Vec::new(), Vec::new(), false);
        let eligible = eligible.filter(|_| portions.is_plain());
        if let Some(ledger) = &mut ledger
            && self.clients.own_minima() == 0
            && portions.is_withheld(ledger)
        {
            return VisitResult { withheld: true, ..VisitResult::new(offers, None) };
        }
        let consider = |client| {
            let Some(epoch) = self.clients.epoch(client) else { return ControlFlow::Continue(()) };
            let state = self.clients.get(client);
            let role = &self.roles.get(state.role).role;
            if self.caps.is_skipped_for_run(state.framework) {
                return ControlFlow::Continue(());
            }
            let framework = &self.frameworks[state.framework as usize];
            let (offer, waits) = match portions.offer(client, epoch, state, role, framework, ledger.as_mut()) {
                OfferDecision::NoOffer => return ControlFlow::Continue(()),
                OfferDecision::Waits(offer) => (offer, true),
                OfferDecision::Offer(offer) => (offer, false),
            };
            if !self.is_within_cap(state.framework, &offer, &offers) {
                capped.push(state.framework);
                return ControlFlow::Continue(());
            }
            if waits {
                waits_for_interval = true;
                return ControlFlow::Break(());
            }
            portions.take(&offer);
            if let Some(ledger) = &mut ledger {
                ledger.give(state.role, &offer);
            }
            offers.push((client, offer));
            if cut || portions.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        match candidates {
            Candidates::All => self.consider_all(ix, eligible, open, consider),
            Candidates::Some(some) => {
                let some =
                    some.iter().copied().filter(|client| eligible.is_none_or(|eligible| eligible.contains(*client)));
                self.consider_some(&some.collect::<Vec<_>>(), consider);
            }
        }
        VisitResult { capped, waits_for_interval, again: cut, ..VisitResult::new(offers, ledger) }
    }

    /// Considers some clients, sorted by number, in the order of the tree.
    pub(crate) fn consider_some(&self, some: &[ClientIx], mut consider: impl FnMut(ClientIx) -> ControlFlow<()>) {
        // Sorting is cheaper than a walk over all clients only if they are few.
        if some.len() * 8 < self.tree.active_clients() {
            let leaves = some.iter().filter_map(|client| self.clients.try_get(*client)?.node);
            let mut leaves: Vec<_> = leaves.filter(|leaf| self.tree.is_active(*leaf)).collect();
            self.tree.walk_some(&mut leaves, consider);
        } else {
            self.tree.walk(|client| match some.binary_search(&client) {
                Ok(_) => consider(client),
                Err(_) => ControlFlow::Continue(()),
            });
        }
    }

    /// Considers all clients in the order of the tree. After some refusals, the clients that have refused everything
    /// are looked up together and skipped. If `eligible` is set, only its clients are considered.
    fn consider_all(
        &self,
        agent: u32,
        eligible: Option<&Bits>,
        open: Option<(Bits, usize)>,
        mut consider: impl FnMut(ClientIx) -> ControlFlow<()>,
    ) {
        let mut said_no = [0; 4];
        let mut asked = 0;
        let of_eligible = |eligible: &Bits| self.without_refusers(agent, eligible.clone());
        let mut open = eligible.map(of_eligible).or(open);
        if open.as_ref().is_some_and(|(_, left)| *left == 0) {
            return;
        }
        self.tree.walk(|client| {
            if let Some((open, left)) = &mut open {
                if !open.clear(client) {
                    return ControlFlow::Continue(());
                }
                *left -= 1;
                return match consider(client) {
                    ControlFlow::Continue(()) if *left > 0 => ControlFlow::Continue(()),
                    _ => ControlFlow::Break(()),
                };
            }
            said_no[asked] = client;
            asked += 1;
            let answer = consider(client);
            if asked == said_no.len() && answer.is_continue() {
                let mut left = self.tree.listed().clone();
                for client in said_no {
                    left.clear(client);
                }
                let (left, count) = self.without_refusers(agent, left);
                open = Some((left, count));
                return if count == 0 { ControlFlow::Break(()) } else { answer };
            }
            answer
        });
    }

    /// Removes the clients that have refused all free resources of an agent. Returns the others, and their number.
    fn without_refusers(&self, agent: u32, mut clients: Bits) -> (Bits, usize) {
        let agent = &self.agents[agent as usize];
        agent.refusals.clear_refusers(&agent.free, &self.clients, &mut clients);
        let count = clients.count();
        (clients, count)
    }

    /// Returns the active clients without refusers, if so many clients have refused something that only a few can be
    /// left. Otherwise it is cheaper to consider each of them first.
    fn open_at_once(&self, agent: u32) -> Option<(Bits, usize)> {
        let refusals = self.agents[agent as usize].refusals.len();
        let crowded = refusals > 0 && refusals * 8 >= self.tree.active_clients() * 7;
        crowded.then(|| self.without_refusers(agent, self.tree.listed().clone()))
    }

    pub(crate) fn offering(&self, agent: u32, client: ClientIx, resources: Arc<Resources>) -> Offering {
        let state = self.clients.get(client);
        Offering {
            framework: self.frameworks[state.framework as usize].id.clone(),
            role: self.roles.get(state.role).role.clone(),
            agent: self.agents[agent as usize].id.clone(),
            resources,
        }
    }
}
