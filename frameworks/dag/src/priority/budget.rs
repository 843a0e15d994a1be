//! The budget of sprints: core-seconds that refill over time. It makes nothing faster.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A budget of core-milliseconds. It is never negative and never above its capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SprintBudget {
    capacity: u64,
    /// Core-milliseconds that are added in a second.
    refill: u64,
    level: u64,
    /// Refill that is less than a core-millisecond, in millionths of one.
    rest: u64,
    at: Duration,
}

/// Limit of a budget in core-milliseconds: a hundred thousand years of a thousand cores.
const LARGEST: u64 = 1 << 62;

impl SprintBudget {
    /// Creates a full budget with a capacity and a refill in each second, both in core-milliseconds.
    pub fn new(capacity: u64, refill: u64) -> SprintBudget {
        let capacity = capacity.min(LARGEST);
        SprintBudget { capacity, refill: refill.min(LARGEST), level: capacity, rest: 0, at: Duration::ZERO }
    }

    /// Returns the core-milliseconds that can be spent at this time. Time does not go back: an earlier time counts as
    /// the last one.
    pub fn available(&mut self, now: Duration) -> u64 {
        let passed = now.saturating_sub(self.at);
        self.at = self.at.max(now);
        let gained = u128::from(self.refill) * passed.as_micros() + u128::from(self.rest);
        let whole = u64::try_from(gained / 1_000_000).unwrap_or(LARGEST).min(LARGEST);
        self.rest = (gained % 1_000_000) as u64;
        self.level = (self.level + whole).min(self.capacity);
        if self.level == self.capacity {
            self.rest = 0;
        }
        self.level
    }

    /// Spends up to this many core-milliseconds. Returns how many.
    pub fn spend(&mut self, now: Duration, wanted: u64) -> u64 {
        let spent = wanted.min(self.available(now));
        self.level -= spent;
        spent
    }

    /// Returns how long this many cores can sprint from this time on, including the refill; `None` if forever.
    pub fn lasts(&mut self, now: Duration, cores: u32) -> Option<Duration> {
        let drained = (u64::from(cores) * 1000).checked_sub(self.refill).filter(|drained| *drained > 0)?;
        Some(Duration::from_secs_f64(self.available(now) as f64 / drained as f64))
    }

    /// Returns the capacity in core-milliseconds.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }
}
