//! Whether offers are wanted at present: suppresses them while nothing waits, and revives them for new work.

use std::time::Duration;

use base::Time;
use sdk::Calls;

/// The state of offers at the master: suppressed or revived.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attention {
    /// Whether there is a subscription.
    pub subscribed: bool,
    /// Whether offers are suppressed.
    pub suppressed: bool,
    /// Something was refused since the last revive, so that a filter may stand between a task and its room.
    pub refused: bool,
    /// When offers were revived last.
    pub revived: Option<Time>,
}

impl Attention {
    /// Just subscribed.
    pub fn subscribed() -> Attention {
        Attention { subscribed: true, ..Attention::default() }
    }

    /// Nothing waits, nor will soon: no offers are wanted.
    pub fn suppress(&mut self, calls: &mut Calls) {
        if !self.suppressed {
            self.suppressed = true;
            calls.suppress();
        }
    }

    /// Tasks wait, `fresh` ones among them: asks for offers again, at most once in `every`; without it only what was
    /// suppressed is revived. Returns whether nothing more is to be done for those that are fresh.
    pub fn want(&mut self, fresh: bool, every: Option<Duration>, now: Time, calls: &mut Calls) -> bool {
        let every = match every {
            Some(every) => every,
            // A suppressed role must be revived later.
            None if self.suppressed => Duration::ZERO,
            None => return false,
        };
        if !self.is_wanted(fresh) {
            return true;
        }
        if self.revived.is_some_and(|last| last + every > now) {
            return false;
        }
        (self.suppressed, self.refused, self.revived) = (false, false, Some(now));
        calls.revive();
        true
    }

    /// When the next revive is allowed, if one is wanted.
    pub fn next(&self, fresh: bool, every: Option<Duration>) -> Option<Time> {
        Some(self.revived? + every?).filter(|_| self.is_wanted(fresh) && self.subscribed)
    }

    fn is_wanted(&self, fresh: bool) -> bool {
        self.suppressed || (self.refused && fresh)
    }
}
