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
use crate::agents::Unasked;
use crate::allocator::Allocator;
use crate::bits::Bits;
use crate::clients::ClientIx;
use crate::guarantees::Takers;
use crate::headroom::{Ledger, Stage};
use crate::portion::{Answer, Portions};
use crate::refusals::{self, nanos};
use crate::roles::RoleIx;
use crate::visits::Round;

/// Clients that a visit to an agent considers.
pub(crate) enum Candidates {
    All,
    /// These clients, sorted by number.
    Some(Vec<ClientIx>),
}

/// Result of a visit to an agent.
pub(crate) struct Answers {
    pub(crate) offers: Vec<(ClientIx, Arc<Resources>)>,
    /// Roles whose limits have restricted an offer.
    pub(crate) short: Vec<RoleIx>,
    /// Whether resources withheld for guarantees have prevented an offer.
    pub(crate) held_back: bool,
    /// Frameworks that were skipped because they hold too much as offers.
    pub(crate) capped: Vec<u32>,
    /// Whether the next client in the order waits for the next interval run.
    pub(crate) rests: bool,
    /// Whether only one slice of the agent was offered, so that another visit offers the next one.
    pub(crate) again: bool,
}

impl Answers {
    pub(crate) fn new(offers: Vec<(ClientIx, Arc<Resources>)>, ledger: Option<Ledger<'_>>) -> Answers {
        let (short, held_back) = ledger.map_or((Vec::new(), false), |ledger| (ledger.short, ledger.held_back));
        Answers { offers, short, held_back, capped: Vec::new(), rests: false, again: false }
    }

    /// Returns whether another slice may be offered. Shared resources are offered once in a run.
    pub(crate) fn is_to_go_on(&self) -> bool {
        let shared = |offer: &Resources| offer.iter().any(resources::Resource::is_shared);
        self.again && !self.rests && !self.offers.is_empty() && !self.offers.iter().any(|(_, offer)| shared(offer))
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
        self.rest_until = None;
        self.maintenance.interval();
        self.end_refusals(now);
        for (agent, client) in self.endings.take_resting() {
            self.end_refusal(agent, client, nanos(now), true);
        }
        self.run(now, true)
    }

    /// Returns the time of the next interval run that has something to do: when a refusal expires, but at least one
    /// interval after the last one. Returns `None` if nothing happens without further inputs.
    #[must_use]
    pub fn next_wake(&self) -> Option<Time> {
        let ended = [self.endings.next(), self.maintenance.next()].into_iter().flatten().min();
        let ended = ended.map(|ends| ends.max(self.last_interval + self.config.allocation_interval));
        let recovered = self.recovering.map(|(_, until)| until);
        [ended, self.rest_until, recovered].into_iter().flatten().min()
    }

    /// Schedules the next interval run at the first multiple of the interval after `now`, counted from the last run.
    /// Intervals without work have no run, which does not shorten the wait.
    pub(crate) fn await_interval(&mut self, now: Time) {
        let interval = self.config.allocation_interval.as_nanos().max(1);
        let past = now.since(self.last_interval).as_nanos() % interval;
        let left = u64::try_from(interval - past).unwrap_or(u64::MAX);
        self.rest_until.get_or_insert(now + Duration::from_nanos(left));
    }

    fn end_refusals(&mut self, now: Time) {
        let at = nanos(now);
        while let Some((agent, client)) = self.endings.pop(at) {
            self.end_refusal(agent, client, at, false);
        }
        if self.endings.is_crowded(self.clients.all_refusals()) {
            let agents = self.agents.iter_mut().map(|(ix, agent)| (ix as u32, &mut agent.refusals));
            self.endings.rebuild(agents, &self.clients);
        }
    }

    fn end_refusal(&mut self, agent: u32, client: ClientIx, now: u64, resting: bool) {
        let Some(state) = self.agents.get_mut(agent as usize) else { return };
        if refusals::end(&mut state.refusals, client, now, resting, &mut self.clients) {
            state.unasked.some.push(client);
            self.enqueue_late(agent);
        }
    }

    fn run(&mut self, now: Time, interval: bool) -> Vec<Offering> {
        let mut offerings = Vec::new();
        self.sample_fairness(now);
        self.open_loose();
        self.wake();
        self.caps.begin_run();
        let paused = self.is_paused(now);
        let mut opened = if paused { Vec::new() } else { std::mem::take(&mut self.opened) };
        opened.retain(|client| self.is_asked(*client));
        let mut round = if paused { Round::default() } else { self.candidates(interval, !opened.is_empty()) };
        if !round.left.is_empty() {
            self.tree.settle();
            let shared = self.serve_guarantees(&mut round, &mut offerings);
            let mut takers = Takers::default();
            self.in_order(&mut round);
            let (mut left, mut out) = (self.anybody_left(&opened, &mut round), self.caps.out());
            while left && let Some(agent) = self.next_agent(&mut round) {
                if self.may_visit(agent) {
                    self.visit(agent, shared.get(&agent), &mut takers, &mut offerings);
                }
                if self.caps.out() != out {
                    (left, out) = (self.anybody_left(&opened, &mut round), self.caps.out());
                }
            }
            self.note_bounds();
        }
        if !self.queue_late.is_empty() {
            self.await_interval(now);
        }
        offerings
    }

    /// Returns whether a client is left to consider for the remaining agents. A client that is no longer considered is
    /// at its cap. It is opened when it holds less, and then considered for every agent. So agents that are not visited
    /// need no record of it.
    fn anybody_left(&self, opened: &[ClientIx], round: &mut Round) -> bool {
        if round.changed.is_some() && !opened.iter().any(|client| self.is_asked(*client)) {
            round.only_changed();
        }
        round.changed.is_some() || self.tree.listed().iter().any(|client| self.is_asked(client))
    }

    /// Returns whether a client has not suppressed its role and may hold more in this run.
    fn is_asked(&self, client: ClientIx) -> bool {
        let state = self.clients.try_get(client);
        state.is_some_and(|state| {
            state.node.is_some_and(|node| self.tree.is_active(node)) && !self.caps.is_out(state.framework)
        })
    }

    /// Returns the agents to visit. Agents that may not be offered remain as they are until they may.
    fn candidates(&mut self, interval: bool, opened: bool) -> Round {
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
            return self.round(self.spare.clone(), Some(queued));
        }
        self.round(queued, None)
    }

    pub(crate) fn may_visit(&self, ix: u32) -> bool {
        let agent = &self.agents[ix as usize];
        agent.active
            && !agent.free.is_empty()
            && self.whitelist.as_ref().is_none_or(|hosts| hosts.contains(&agent.options.hostname))
    }

    /// Considers, in order of share, the clients that may be offered the free resources of an agent.
    fn visit(&mut self, ix: u32, shared: Option<&Resources>, takers: &mut Takers, offerings: &mut Vec<Offering>) {
        self.begin_visit(ix);
        let candidates = self.candidates_of(ix);
        // Shared resources that were offered for a guarantee are still free for other clients, but not in this run.
        self.agents[ix as usize].unasked = Unasked { all: shared.is_some(), ..Unasked::default() };
        let mut again = true;
        while again {
            let answers = self.ask(ix, &candidates, shared, takers.of(self));
            self.agents[ix as usize].unasked.since = self.clients.now();
            again = answers.is_to_go_on();
            self.book_answers(ix, answers, offerings);
        }
    }

    /// Returns the clients to consider for an agent.
    pub(crate) fn candidates_of(&self, ix: u32) -> Candidates {
        let unasked = &self.agents[ix as usize].unasked;
        if unasked.all {
            return Candidates::All;
        }
        let mut some = unasked.some.clone();
        some.extend(self.clients.opened_since(unasked.since));
        // Clients that wait for the next interval run precede those after them in the order.
        some.extend(self.agents[ix as usize].refusals.resting(&self.clients));
        some.sort_unstable();
        some.dedup();
        Candidates::Some(some)
    }

    /// Allocates the result of a visit.
    pub(crate) fn book_answers(&mut self, ix: u32, answers: Answers, offerings: &mut Vec<Offering>) {
        self.note_kept(ix, &answers.short, answers.held_back);
        for framework in answers.capped {
            self.caps.cap(framework);
        }
        // If resources are indivisible, quota may allow the larger one when the smaller one is gone.
        let mut again = answers.rests || (!answers.offers.is_empty() && self.has_whole_parts(ix));
        for (client, resources) in answers.offers {
            self.book_offer(ix, client, &resources);
            // Shared resources are still free for other clients, but not in this run.
            again |= resources.iter().any(resources::Resource::is_shared);
            offerings.push(self.offering(ix, client, resources));
        }
        if again {
            self.agents[ix as usize].unasked.all = true;
            self.enqueue_late(ix);
        }
    }

    /// Returns what each client is offered when resources are divided by share. Nothing is booked here: within one
    /// visit the order does not change.
    fn ask(&self, ix: u32, candidates: &Candidates, shared: Option<&Resources>, takers: Option<&Bits>) -> Answers {
        let open = if matches!(candidates, Candidates::All) { self.open_at_once(ix) } else { None };
        if open.as_ref().is_some_and(|(_, count)| *count == 0) {
            return Answers::new(Vec::new(), None);
        }
        let mut portions = Portions::new(&self.agents[ix as usize], &self.config, shared);
        let mut ledger = self.ledger(Stage::Shares);
        let cut = portions.is_cut();
        let (mut offers, mut capped, mut rests) = (Vec::new(), Vec::new(), false);
        let takers = takers.filter(|_| portions.is_plain());
        if let Some(ledger) = &mut ledger
            && self.clients.own_minima() == 0
            && portions.is_set_aside(ledger)
        {
            return Answers { held_back: true, ..Answers::new(offers, None) };
        }
        let ask = |client| {
            let Some(epoch) = self.clients.epoch(client) else { return ControlFlow::Continue(()) };
            let state = self.clients.get(client);
            let role = &self.roles.get(state.role).role;
            if self.caps.is_out(state.framework) {
                return ControlFlow::Continue(());
            }
            let framework = &self.frameworks[state.framework as usize];
            let (offer, waits) = match portions.offer(client, epoch, state, role, framework, ledger.as_mut()) {
                Answer::No => return ControlFlow::Continue(()),
                Answer::Rests(offer) => (offer, true),
                Answer::Takes(offer) => (offer, false),
            };
            if !self.is_within_cap(state.framework, &offer, &offers) {
                capped.push(state.framework);
                return ControlFlow::Continue(());
            }
            if waits {
                rests = true;
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
            Candidates::All => self.ask_all(ix, takers, open, ask),
            Candidates::Some(some) => {
                let some = some.iter().copied().filter(|client| takers.is_none_or(|takers| takers.contains(*client)));
                self.ask_some(&some.collect::<Vec<_>>(), ask);
            }
        }
        Answers { capped, rests, again: cut, ..Answers::new(offers, ledger) }
    }

    /// Considers some clients, sorted by number, in the order of the tree.
    pub(crate) fn ask_some(&self, some: &[ClientIx], mut ask: impl FnMut(ClientIx) -> ControlFlow<()>) {
        // Sorting is cheaper than a walk over all clients only if they are few.
        if some.len() * 8 < self.tree.active_clients() {
            let leaves = some.iter().filter_map(|client| self.clients.try_get(*client)?.node);
            let mut leaves: Vec<_> = leaves.filter(|leaf| self.tree.is_active(*leaf)).collect();
            self.tree.walk_some(&mut leaves, ask);
        } else {
            self.tree.walk(|client| match some.binary_search(&client) {
                Ok(_) => ask(client),
                Err(_) => ControlFlow::Continue(()),
            });
        }
    }

    /// Considers all clients in the order of the tree. After some refusals, the clients that have refused everything
    /// are looked up together and skipped. If `takers` is set, only its clients are considered.
    fn ask_all(
        &self,
        agent: u32,
        takers: Option<&Bits>,
        open: Option<(Bits, usize)>,
        mut ask: impl FnMut(ClientIx) -> ControlFlow<()>,
    ) {
        let mut said_no = [0; 4];
        let mut asked = 0;
        let of_takers = |takers: &Bits| self.without_refusers(agent, takers.clone());
        let mut open = takers.map(of_takers).or(open);
        if open.as_ref().is_some_and(|(_, left)| *left == 0) {
            return;
        }
        self.tree.walk(|client| {
            if let Some((open, left)) = &mut open {
                if !open.clear(client) {
                    return ControlFlow::Continue(());
                }
                *left -= 1;
                return match ask(client) {
                    ControlFlow::Continue(()) if *left > 0 => ControlFlow::Continue(()),
                    _ => ControlFlow::Break(()),
                };
            }
            said_no[asked] = client;
            asked += 1;
            let answer = ask(client);
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
        agent.refusals.strike(&agent.free, &self.clients, &mut clients);
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
