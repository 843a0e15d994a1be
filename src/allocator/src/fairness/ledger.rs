//! Record of one framework in one role: how its offers ended, how long it held them, how long it waited, and its share
//! over time. Each entry costs a few additions.

use std::collections::BTreeMap;
use std::time::Duration;

use base::Time;
use resources::{Name, Quantities};

/// Upper bounds of the holding time histogram, in seconds; one more bucket is above all.
pub const HOLDING_BOUNDS: [f64; 12] = [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 3600.0];

/// Ways in which an offer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferEnd {
    /// The framework has accepted the offer; resources that were not used count as unused.
    Accepted,
    /// The framework has declined the offer.
    Declined,
    /// The master has rescinded the offer.
    Rescinded,
    /// The master has rescinded the offer because it was not answered in time.
    TimedOut,
}

/// Counts of offers by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfferCounts {
    /// Number of offers that were made.
    pub sent: u64,
    /// Number of offers that ended by ACCEPT.
    pub accepted: u64,
    /// Number of offers that ended by DECLINE.
    pub declined: u64,
    /// Number of offers that were rescinded, other than by a timeout.
    pub rescinded: u64,
    /// Number of offers that were rescinded because they were not answered in time.
    pub timed_out: u64,
}

/// Histogram of how long offers were held.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Holding {
    /// Numbers of ended offers by [`HOLDING_BOUNDS`], the last ones above all; not cumulative.
    pub buckets: [u64; HOLDING_BOUNDS.len() + 1],
    /// Sum of the holding times, in seconds.
    pub sum: f64,
    /// Longest holding time, in seconds.
    pub longest: f64,
}

/// Durations for which the framework waited without an offer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waiting {
    /// Start of the current wait; `None` if the framework does not wait.
    pub since: Option<Time>,
    /// Number of waits that ended with an offer.
    pub ended: u64,
    /// Total duration of the waits that ended with an offer.
    pub total: Duration,
    /// Longest wait that ended with an offer.
    pub longest: Duration,
}

/// Quantities times seconds, by name.
pub type ResourceSeconds = BTreeMap<Name, f64>;

/// Sums over the samples of share and fair share, in share-seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampled {
    /// Total duration in seconds.
    pub seconds: f64,
    /// Integral of the share.
    pub share: f64,
    /// Integral of the fair share.
    pub target: f64,
    /// Integral of the shortfall below the fair share.
    pub missing: f64,
}

impl Sampled {
    /// Returns the sums with `seconds` more, in which the framework had this many share-seconds.
    fn and(self, seconds: f64, had: f64, target: f64) -> Sampled {
        Sampled {
            seconds: self.seconds + seconds,
            share: self.share + had,
            target: self.target + target * seconds,
            missing: self.missing + (target * seconds - had).max(0.0),
        }
    }
}

/// Record of one framework in one role; see the module documentation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) offers: OfferCounts,
    pub(crate) holding: Holding,
    pub(crate) waiting: Waiting,
    pub(crate) refused: ResourceSeconds,
    pub(crate) unused: ResourceSeconds,
    pub(crate) sampled: Sampled,
    /// Current share, the time since which it is current, and the integral of the share until then.
    share: f64,
    since: Time,
    integral: f64,
    /// The integral at the last sample, and the time of that sample.
    mark: Option<(Time, f64)>,
}

impl Ledger {
    pub(crate) fn sent(&mut self, now: Time) {
        self.offers.sent += 1;
        if let Some(since) = self.waiting.since.take() {
            let waited = now.since(since);
            self.waiting.ended += 1;
            self.waiting.total += waited;
            self.waiting.longest = self.waiting.longest.max(waited);
        }
    }

    /// Records whether the framework waits without an offer.
    pub(crate) fn waits(&mut self, waits: bool, now: Time) {
        match waits {
            true => drop(self.waiting.since.get_or_insert(now)),
            false => self.waiting.since = None,
        }
    }

    pub(crate) fn ended(&mut self, end: OfferEnd, held: Duration, offered: &Quantities, used: &Quantities) {
        *match end {
            OfferEnd::Accepted => &mut self.offers.accepted,
            OfferEnd::Declined => &mut self.offers.declined,
            OfferEnd::Rescinded => &mut self.offers.rescinded,
            OfferEnd::TimedOut => &mut self.offers.timed_out,
        } += 1;
        let seconds = held.as_secs_f64();
        let bucket = HOLDING_BOUNDS.partition_point(|bound| *bound < seconds);
        self.holding.buckets[bucket] += 1;
        self.holding.sum += seconds;
        self.holding.longest = self.holding.longest.max(seconds);
        let sums = if end == OfferEnd::Accepted { &mut self.unused } else { &mut self.refused };
        for (name, amount) in offered.saturating_sub(used).iter() {
            *sums.entry(name).or_default() += amount.to_f64() * seconds;
        }
    }

    /// Records the share from now on.
    pub(crate) fn share_is(&mut self, share: f64, now: Time) {
        self.integral = self.integral_at(now);
        (self.share, self.since) = (share, now);
        // The share counts from the start, even if the client is removed before the first sample.
        self.mark.get_or_insert((now, self.integral));
    }

    fn integral_at(&self, now: Time) -> f64 {
        self.integral + self.share * now.since(self.since).as_secs_f64()
    }

    /// Returns all samples and the time since the last one, compared with a fair share of `target`.
    pub(crate) fn so_far(&self, target: f64, now: Time) -> Sampled {
        self.mark.map_or(self.sampled, |(last, integral)| {
            self.sampled.and(now.since(last).as_secs_f64(), self.integral_at(now) - integral, target)
        })
    }

    /// Adds the time since the last sample, compared with a fair share of `target`.
    pub(crate) fn sample(&mut self, target: f64, now: Time) {
        self.share_is(self.share, now);
        self.sampled = self.so_far(target, now);
        self.mark = Some((now, self.integral));
    }
}

#[cfg(test)]
mod tests {
    use resources::parse_quantities;

    use super::*;

    fn amounts(text: &str) -> Quantities {
        parse_quantities(text).unwrap()
    }

    #[test]
    fn offers_are_counted_and_charged() {
        let mut ledger = Ledger::default();
        let at = Time::from_secs;
        ledger.waits(true, at(10));
        ledger.sent(at(13));
        ledger.ended(OfferEnd::Accepted, Duration::from_secs(2), &amounts("cpus:4;mem:10"), &amounts("cpus:1"));
        ledger.ended(OfferEnd::Declined, Duration::from_secs(3), &amounts("cpus:4"), &Quantities::new());
        ledger.ended(OfferEnd::TimedOut, Duration::from_secs(7200), &amounts("cpus:1"), &Quantities::new());
        assert_eq!(ledger.offers, OfferCounts { sent: 1, accepted: 1, declined: 1, rescinded: 0, timed_out: 1 });
        assert_eq!((ledger.waiting.ended, ledger.waiting.total), (1, Duration::from_secs(3)));
        assert_eq!(ledger.unused, ResourceSeconds::from([(Name::Cpus, 6.0), (Name::Mem, 20.0)]));
        assert_eq!(ledger.refused, ResourceSeconds::from([(Name::Cpus, 7212.0)]));
        assert_eq!(ledger.holding.buckets[5], 2, "at most 5 seconds");
        assert_eq!(ledger.holding.buckets[12], 1, "above all");
        assert_eq!(ledger.holding.longest, 7200.0);
    }

    #[test]
    fn shares_over_time() {
        let mut ledger = Ledger::default();
        let at = Time::from_secs;
        ledger.share_is(0.5, at(0));
        ledger.sample(0.5, at(0));
        ledger.share_is(0.1, at(4));
        ledger.sample(0.5, at(8));
        let later = ledger.so_far(0.1, at(10));
        assert!((later.share - 2.6).abs() < 1e-9 && later.seconds == 10.0, "{later:?}");
        assert_eq!(ledger.sampled.seconds, 8.0);
        assert!((ledger.sampled.share - 2.4).abs() < 1e-9);
        assert!((ledger.sampled.target - 4.0).abs() < 1e-9);
        assert!((ledger.sampled.missing - 1.6).abs() < 1e-9);
    }
}
