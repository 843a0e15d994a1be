//! Tracks whether offers are needed: suppresses them while no task waits, and revives them for new work.

use std::time::Duration;

use base::Time;
use sdk::Calls;

/// The state of offers at the master: suppressed or revived.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfferState {
    /// Whether the framework is subscribed.
    pub subscribed: bool,
    /// Whether offers are suppressed.
    pub suppressed: bool,
    /// Whether resources were declined since the last revive, so that an offer filter may keep suitable resources from
    /// a task.
    pub refused: bool,
    /// Time of the last revive; `None` before the first.
    pub revived: Option<Time>,
}

impl OfferState {
    /// Returns the state after a subscription.
    pub fn subscribed() -> OfferState {
        OfferState { subscribed: true, ..OfferState::default() }
    }

    /// Suppresses offers, since no task waits or will wait soon.
    pub fn suppress(&mut self, calls: &mut Calls) {
        if !self.suppressed {
            self.suppressed = true;
            calls.suppress();
        }
    }

    /// Revives offers for waiting tasks, at most once in `every`. With `None` only suppressed offers are revived.
    /// `fresh` says whether some of the tasks are new. Returns whether nothing more must be done for new tasks.
    pub fn revive(&mut self, fresh: bool, every: Option<Duration>, now: Time, calls: &mut Calls) -> bool {
        let every = match every {
            Some(every) => every,
            // A suppressed role must be revived at any time.
            None if self.suppressed => Duration::ZERO,
            None => return false,
        };
        if !self.needs_revive(fresh) {
            return true;
        }
        if self.revived.is_some_and(|last| last + every > now) {
            return false;
        }
        (self.suppressed, self.refused, self.revived) = (false, false, Some(now));
        calls.revive();
        true
    }

    /// Returns the time at which the next revive is allowed, if one is needed.
    pub fn next(&self, fresh: bool, every: Option<Duration>) -> Option<Time> {
        Some(self.revived? + every?).filter(|_| self.needs_revive(fresh) && self.subscribed)
    }

    fn needs_revive(&self, fresh: bool) -> bool {
        self.suppressed || (self.refused && fresh)
    }
}
