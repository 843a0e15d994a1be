//! Fairness measurement: shares compared with fair shares, and how offers ended.
//!
//! Each event of an offer costs a few additions in the [ledger](Ledger) of its framework and role. Fair shares
//! ([water-filling](filling) over the current demand) are computed for readers, and in runs at most every
//! [`SAMPLE_EVERY`], for the comparison over time.

mod filling;
mod ledger;
mod measures;
mod targets;

use std::time::Duration;

use base::{FrameworkId, Time};
use resources::{Resources, Role};

use crate::allocator::{Allocator, without_allocation};
use crate::clients::ClientIx;

pub use filling::{Competitor, fill};
pub(crate) use ledger::Ledger;
pub use ledger::{HOLDING_BOUNDS, Holding, OfferCounts, OfferEnd, ResourceSeconds, Sampled, Waiting};
pub use measures::Measures;

/// Minimum interval between samples of shares and fair shares.
pub const SAMPLE_EVERY: Duration = Duration::from_secs(5);

/// An offer that is no longer outstanding.
#[derive(Clone, Copy, Debug)]
pub struct EndedOffer<'a> {
    /// Framework that had the offer.
    pub framework: &'a FrameworkId,
    /// Role of the offer.
    pub role: &'a Role,
    /// Offered resources.
    pub offered: &'a Resources,
    /// Resources that are used now; empty unless the offer was accepted.
    pub used: &'a Resources,
    /// Time from when the offer was sent until it was answered or rescinded.
    pub held: Duration,
    /// Way in which the offer ended.
    pub end: OfferEnd,
}

/// Fairness of the cluster at one instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Measures over all competing frameworks.
    pub measures: Measures,
    /// Shares by role.
    pub roles: Vec<RoleFairness>,
    /// Shares and offers by framework and role.
    pub clients: Vec<ClientFairness>,
}

/// Shares of a role.
#[derive(Clone, Debug, PartialEq)]
pub struct RoleFairness {
    /// Role that the shares belong to.
    pub role: Role,
    /// Dominant share of the role, with all roles below it.
    pub share: f64,
    /// Current fair share of the role.
    pub target: f64,
}

/// Shares and offers of a framework in one of its roles.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientFairness {
    /// Id of the framework.
    pub framework: FrameworkId,
    /// Role of the framework.
    pub role: Role,
    /// Whether the framework has not suppressed offers in the role.
    pub wants: bool,
    /// Current dominant share of the framework in the role.
    pub share: f64,
    /// Current fair share of the framework in the role.
    pub target: f64,
    /// Shares and fair shares over time.
    pub sampled: Sampled,
    /// Counts of the offers by how they ended.
    pub offers: OfferCounts,
    /// Histogram of how long the framework held offers.
    pub holding: Holding,
    /// Durations for which the framework waited for offers.
    pub waiting: Waiting,
    /// Resource-seconds of offers that were declined or rescinded.
    pub refused: ResourceSeconds,
    /// Resource-seconds of offered resources that an ACCEPT did not use.
    pub unused: ResourceSeconds,
}

impl Allocator {
    /// Sets the time of the inputs that follow; it never goes back.
    pub fn set_time(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    /// Records the end of an offer for fairness and for adaptive timeouts. Its resources are returned separately
    /// ([`Allocator::recover`], [`Allocator::mark_offered_used`]).
    pub fn offer_ended(&mut self, ended: &EndedOffer<'_>) {
        let Some(framework) = self.framework(ended.framework) else { return };
        let used = without_allocation(ended.used).quantities();
        let limits = self.config.policies.adaptive_timeout;
        let learned_timeout = &mut self.frameworks[framework as usize].learned_timeout;
        match ended.end {
            OfferEnd::Accepted if !ended.used.is_empty() => learned_timeout.used(ended.held),
            OfferEnd::Accepted | OfferEnd::Declined | OfferEnd::TimedOut => learned_timeout.unused(ended.held, limits),
            OfferEnd::Rescinded => {}
        }
        if let Some(client) = self.client(ended.framework, ended.role) {
            let ledger = &mut self.clients.get_mut(client).ledger;
            ledger.ended(ended.end, ended.held, &ended.offered.quantities(), &used);
        }
    }

    /// Returns the current shares, fair shares and measures.
    #[must_use]
    pub fn fairness(&self) -> Report {
        let targets = self.targets();
        let mut report = Report::default();
        for (_, state) in self.roles.iter() {
            let (share, target) = (self.tree.dominant_share(state.node), targets.of(state.node));
            report.roles.push(RoleFairness { role: state.role.clone(), share, target });
        }
        for (_, framework) in &self.frameworks {
            for (role, client) in &framework.clients {
                let state = self.clients.get(*client);
                let Some(node) = state.node else { continue };
                let ledger = &state.ledger;
                report.clients.push(ClientFairness {
                    framework: framework.id.clone(),
                    role: role.clone(),
                    wants: self.tree.is_active(node),
                    share: self.tree.dominant_share(node),
                    target: targets.of(node),
                    sampled: ledger.so_far(targets.of(node), self.now),
                    offers: ledger.offers,
                    holding: ledger.holding,
                    waiting: ledger.waiting,
                    refused: ledger.refused.clone(),
                    unused: ledger.unused.clone(),
                });
            }
        }
        report.clients.sort_by(|a, b| (&a.framework, &a.role).cmp(&(&b.framework, &b.role)));
        report.measures = Measures::of(&report.clients);
        report
    }

    /// Returns a framework's share until now, over all its roles, and how long it has waited for offers. Fair shares
    /// are known up to the last sample only.
    #[must_use]
    pub fn over_time(&self, framework: &FrameworkId) -> (Sampled, Duration) {
        let (mut all, mut waited) = (Sampled::default(), Duration::ZERO);
        let clients =
            self.framework(framework).into_iter().flat_map(|ix| self.frameworks[ix as usize].clients.values());
        for client in clients {
            let ledger = &self.clients.get(*client).ledger;
            let one = ledger.so_far(0.0, self.now);
            all.seconds = all.seconds.max(one.seconds);
            all.share += one.share;
            all.target += one.target;
            all.missing += one.missing;
            waited += ledger.waiting.total;
        }
        (all, waited)
    }

    /// Compares shares with fair shares, unless they were compared less than [`SAMPLE_EVERY`] ago.
    pub(crate) fn sample_fairness(&mut self, now: Time) {
        self.set_time(now);
        if self.next_sample.is_some_and(|next| now < next) {
            return;
        }
        self.next_sample = Some(now + SAMPLE_EVERY);
        let targets = self.targets();
        let clients = self.frameworks.iter().flat_map(|(_, framework)| framework.clients.values().copied());
        let clients: Vec<ClientIx> = clients.collect();
        for client in clients {
            let state = self.clients.get_mut(client);
            if let Some(node) = state.node {
                state.ledger.sample(targets.of(node), now);
            }
        }
    }

    /// Records that a client's share may have changed.
    pub(crate) fn note_share(&mut self, client: ClientIx) {
        let state = self.clients.get_mut(client);
        if let Some(node) = state.node {
            state.ledger.share_is(self.tree.dominant_share(node), self.now);
        }
    }

    /// Records whether a client waits without an offer.
    pub(crate) fn note_waiting(&mut self, client: ClientIx) {
        let state = self.clients.get_mut(client);
        let wants = state.node.is_some_and(|node| self.tree.is_active(node));
        let waits = wants && state.offered.is_empty();
        state.ledger.waits(waits, self.now);
    }
}
