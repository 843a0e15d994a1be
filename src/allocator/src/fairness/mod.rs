//! Fairness, measured: who has what share beside what would be fair, and what becomes of the offers.
//!
//! Each event of an offer costs a few additions in the [ledger](Ledger) of its framework and role. Fair shares
//! ([water-filling](filling) over the demand that is there) are worked out when somebody reads them, and in runs at most every
//! [`SAMPLE_EVERY`], so that shares over time can be held against them.

mod filling;
mod ledger;
mod measures;
mod targets;

use std::time::Duration;

use base::{FrameworkId, Time};
use resources::{Resources, Role};

use crate::allocator::{Allocator, bare};
use crate::clients::ClientIx;

pub use filling::{Competitor, fill};
pub(crate) use ledger::Ledger;
pub use ledger::{HOLDING_BOUNDS, Holding, OfferCounts, OfferEnd, ResourceSeconds, Sampled, Waiting};
pub use measures::Measures;

/// How far apart samples of shares and targets are at least.
pub const SAMPLE_EVERY: Duration = Duration::from_secs(5);

/// An offer that is no longer outstanding.
#[derive(Clone, Copy, Debug)]
pub struct EndedOffer<'a> {
    /// To whom it was made.
    pub framework: &'a FrameworkId,
    /// In which role.
    pub role: &'a Role,
    /// All that was offered.
    pub offered: &'a Resources,
    /// What of it is used now; nothing unless it was accepted.
    pub used: &'a Resources,
    /// From when it was sent until it was answered or taken back.
    pub held: Duration,
    /// How it ended.
    pub end: OfferEnd,
}

/// Fairness as of one instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Over all frameworks that compete.
    pub measures: Measures,
    /// By role.
    pub roles: Vec<RoleFairness>,
    /// By framework and role.
    pub clients: Vec<ClientFairness>,
}

/// A role's shares.
#[derive(Clone, Debug, PartialEq)]
pub struct RoleFairness {
    /// The role.
    pub role: Role,
    /// Its dominant share, with all below it.
    pub share: f64,
    /// What would be fair at present.
    pub target: f64,
}

/// A framework in one of its roles.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientFairness {
    /// The framework.
    pub framework: FrameworkId,
    /// The role.
    pub role: Role,
    /// It wants offers.
    pub wants: bool,
    /// Its dominant share.
    pub share: f64,
    /// What would be fair at present.
    pub target: f64,
    /// Shares and targets over time.
    pub sampled: Sampled,
    /// Its offers.
    pub offers: OfferCounts,
    /// How long it held them.
    pub holding: Holding,
    /// How long it waited for them.
    pub waiting: Waiting,
    /// Offered, held, and given or taken back whole.
    pub refused: ResourceSeconds,
    /// Offered, held, and left over by an ACCEPT.
    pub unused: ResourceSeconds,
}

impl Allocator {
    /// What is counted from now on happens at `now`; it never goes back.
    pub fn set_time(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    /// An offer has ended, for the books of fairness and for what is learned of its framework. Its resources are another matter
    /// ([`Allocator::recover`], [`Allocator::take_up_offered`]).
    pub fn offer_ended(&mut self, ended: &EndedOffer<'_>) {
        let Some(framework) = self.framework(ended.framework) else { return };
        let used = bare(ended.used).quantities();
        let limits = self.config.policies.adaptive_timeout;
        let patience = &mut self.frameworks[framework as usize].patience;
        match ended.end {
            OfferEnd::Accepted if !ended.used.is_empty() => patience.used(ended.held),
            OfferEnd::Accepted | OfferEnd::Declined | OfferEnd::TimedOut => patience.unused(ended.held, limits),
            OfferEnd::Rescinded => {}
        }
        if let Some(client) = self.client(ended.framework, ended.role) {
            let ledger = &mut self.clients.get_mut(client).ledger;
            ledger.ended(ended.end, ended.held, &ended.offered.quantities(), &used);
        }
    }

    /// Fairness as of now.
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

    /// What share a framework has had until now, over all its roles, and how long it has waited for offers. What would have been fair
    /// is known up to the last sample only.
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

    /// Holds shares against what is fair, if that was not done lately.
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

    /// A client's share may be another one.
    pub(crate) fn note_share(&mut self, client: ClientIx) {
        let state = self.clients.get_mut(client);
        if let Some(node) = state.node {
            state.ledger.share_is(self.tree.dominant_share(node), self.now);
        }
    }

    /// A client wants offers and has none, or not.
    pub(crate) fn note_waiting(&mut self, client: ClientIx) {
        let state = self.clients.get_mut(client);
        let wants = state.node.is_some_and(|node| self.tree.is_active(node));
        let waits = wants && state.offered.is_empty();
        state.ledger.waits(waits, self.now);
    }
}
