//! First part of a run: unsatisfied guarantees are served before shares count (ALL-32). Also finds the clients that
//! need not be considered, because limits leave them nothing.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use base::Time;
use resources::Resources;

use crate::Offering;
use crate::allocator::Allocator;
use crate::bits::Bits;
use crate::clients::ClientIx;
use crate::cycle::{Candidates, VisitResult};
use crate::headroom::{QuotaLedger, Stage, counted, counts};
use crate::portion::{OfferDecision, VisitPortions};
use crate::visits::AgentsToVisit;

/// Clients that may be offered resources of an agent whose free resources all count for quota: all but those whose
/// limits leave less than the minimum offer. The set is computed when it is first needed in a run, and again when many
/// more roles are capped.
#[derive(Default)]
pub(crate) struct EligibleClients {
    clients: Option<Bits>,
    capped: usize,
}

impl EligibleClients {
    /// Returns the clients, or `None` for all clients.
    pub(crate) fn of(&mut self, allocator: &Allocator) -> Option<&Bits> {
        let capped = allocator.roles.accounts.capped;
        if capped == 0 {
            return None;
        }
        if self.clients.is_none() || capped - self.capped.min(capped) > self.capped / 2 {
            self.clients = Some(allocator.eligible());
            self.capped = capped;
        }
        self.clients.as_ref()
    }
}

impl Allocator {
    /// Returns the state of quota at the start of a visit, or `None` if no role has quota.
    pub(crate) fn ledger(&self, stage: Stage) -> Option<QuotaLedger<'_>> {
        (self.roles.accounts.count > 0).then(|| QuotaLedger::new(&self.roles, &self.available, stage))
    }

    fn eligible(&self) -> Bits {
        let mut eligible = self.tree.listed().clone();
        for client in self.tree.listed().iter() {
            let state = self.clients.get(client);
            let account = self.roles.get(self.roles.top(state.role)).account();
            if state.min_allocatable.is_none() && account.is_some_and(|account| account.capped) {
                eligible.clear(client);
            }
        }
        eligible
    }

    /// Visits agents for roles with unsatisfied guarantees. Returns the shared resources that were offered, by agent:
    /// they are not offered again in this run. The order of the agents changes if there was anything to serve.
    pub(crate) fn serve_guarantees(
        &mut self,
        to_visit: &mut AgentsToVisit,
        offerings: &mut Vec<Offering>,
    ) -> BTreeMap<u32, Resources> {
        let mut shared = BTreeMap::new();
        if self.roles.accounts.unmet.is_empty() {
            return shared;
        }
        self.draw_all(to_visit);
        for ix in to_visit.left.iter().rev().copied() {
            if self.roles.accounts.unmet.is_empty() {
                break;
            }
            self.begin_visit(ix);
            let mut again = true;
            while again {
                let result = self.consider_guaranteed(ix);
                let offered: Resources = result.offers.iter().map(|(_, offer)| offer.shared()).sum();
                if !offered.is_empty() {
                    shared.insert(ix, offered);
                }
                again = result.may_offer_again();
                self.allocate_result(ix, result, offerings);
            }
        }
        to_visit.left.reverse();
        self.rng.shuffle(&mut to_visit.left);
        to_visit.left.reverse();
        to_visit.left.retain(|ix| !self.agents[*ix as usize].free.is_empty());
        shared
    }

    /// Returns what each client is offered of an agent for a guarantee.
    fn consider_guaranteed(&self, ix: u32) -> VisitResult {
        let mut ledger = QuotaLedger::new(&self.roles, &self.available, Stage::Guarantees);
        let mut offers = Vec::new();
        if !ledger.serves(&self.agents[ix as usize].free_counted) {
            return VisitResult::new(offers, None);
        }
        let candidates = self.candidates_of(ix);
        let mut portions = VisitPortions::new(&self.agents[ix as usize], &self.config, None);
        let (cut, mut capped) = (portions.is_cut(), Vec::new());
        let mut consider = |client: ClientIx| {
            let state = self.clients.get(client);
            if !ledger.is_unmet(state.role) {
                return ControlFlow::Continue(());
            }
            let Some(epoch) = self.clients.epoch(client) else { return ControlFlow::Continue(()) };
            let role = &self.roles.get(state.role).role;
            let framework = &self.frameworks[state.framework as usize];
            // The guarantees of a framework that waits for the next interval run stay withheld; no other framework
            // waits for it.
            let OfferDecision::Offer(offer) = portions.offer(client, epoch, state, role, framework, Some(&mut ledger))
            else {
                return ControlFlow::Continue(());
            };
            if !self.is_within_cap(state.framework, &offer, &offers) {
                capped.push(state.framework);
                return ControlFlow::Continue(());
            }
            portions.take(&offer);
            ledger.give(state.role, &offer);
            offers.push((client, offer));
            if cut || !ledger.serves(&counted(portions.free())) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let unmet = &self.roles.accounts.unmet;
        match &candidates {
            Candidates::Some(some) => self.consider_some(some, consider),
            // A search for a few roles is cheaper than a walk over all clients.
            Candidates::All if unmet.len() * 4 < self.tree.active_clients() => {
                self.tree.walk_siblings(unmet.iter().map(|role| self.roles.get(*role).node), consider);
            }
            Candidates::All => self.tree.walk(&mut consider),
        }
        VisitResult { capped, again: cut, ..VisitResult::new(offers, Some(ledger)) }
    }

    /// Returns whether an agent has indivisible resources that count for quota.
    pub(crate) fn has_whole_parts(&self, ix: u32) -> bool {
        self.roles.accounts.count > 0 && self.agents[ix as usize].free.iter().any(|r| counts(r) && r.is_indivisible())
    }

    /// Holds back all offers after a failover of the master until `agents` agents are registered, or until `until`.
    /// Otherwise the resources of roles with quota could be offered to roles whose agents reregister first (ALL-80).
    pub fn pause_until_agents(&mut self, agents: usize, until: Time) {
        self.recovering = Some((agents, until)).filter(|(agents, _)| *agents > self.agents.len());
    }

    /// Returns whether offers are held back until agents have reregistered.
    pub(crate) fn is_paused(&mut self, now: Time) -> bool {
        self.recovering = self.recovering.filter(|(agents, until)| self.agents.len() < *agents && now < *until);
        self.recovering.is_some()
    }
}
