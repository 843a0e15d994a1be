//! Percentiles of a sample with confidence intervals.
//!
//! Intervals are those of order statistics: how many of n independent values lie below a percentile is binomial,
//! whatever the values' distribution is (David and Nagaraja, "Order Statistics", section 7.1). Values that depend on
//! each other count as fewer.

use serde::Serialize;

use crate::sketch::Sketch;

/// Probability that an interval misses the percentile, on both sides together.
const ALPHA: f64 = 0.05;
/// Limit of the effective number of values: more would not make intervals much narrower and would only cost time.
const EFFECTIVE_MAX: usize = 2_000;

/// A percentile with its confidence interval of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Level of the percentile as a fraction, such as 0.95.
    pub level: f64,
    /// Lower end of the interval; absent if there are too few values.
    pub low: Option<f64>,
    /// Percentile of the sample.
    pub value: f64,
    /// Upper end of the interval; absent if there are too few values.
    pub high: Option<f64>,
    /// Number of independent values that an upper end needs.
    pub needed: usize,
}

/// Use of a resource: percentiles of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Usage {
    /// Number of values in the sample.
    pub count: usize,
    /// Number of independent values that the sample is worth.
    pub effective: usize,
    /// Mean of the values.
    pub mean: f64,
    /// Median of the values.
    pub p50: f64,
    /// 95th percentile of the values.
    pub p95: f64,
    /// 99th percentile of the values.
    pub p99: f64,
    /// Largest value.
    pub max: f64,
    /// Percentile that the risk chooses.
    pub chosen: Interval,
}

impl Usage {
    /// Summarizes values that are worth `effective` independent ones. `None` without values.
    pub(crate) fn of(mut values: Vec<f64>, effective: f64, level: f64) -> Option<Usage> {
        values.sort_unstable_by(f64::total_cmp);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Usage::by_rank(values.len(), mean, |rank| values[rank - 1], effective, level)
    }

    /// Summarizes a sketch, whose percentiles have the sketch's error; `mean` is the exact mean.
    pub(crate) fn of_sketch(sketch: &Sketch, mean: f64, effective: f64, level: f64) -> Option<Usage> {
        let count = usize::try_from(sketch.count()).unwrap_or(usize::MAX);
        Usage::by_rank(count, mean, |rank| sketch.at_rank(rank as u64), effective, level)
    }

    /// Summarizes `count` values; `value` returns the value of a rank, counted from 1.
    fn by_rank(count: usize, mean: f64, value: impl Fn(usize) -> f64, effective: f64, level: f64) -> Option<Usage> {
        if count == 0 {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and the limit")]
        let effective = effective.clamp(1.0, count.min(EFFECTIVE_MAX) as f64) as usize;
        let (below, above) = ranks(effective, level);
        let nearest = |share: f64| value(rank(share, count));
        let at_rank = |rank: usize| nearest(rank as f64 / effective as f64);
        Some(Usage {
            count,
            effective,
            mean,
            p50: nearest(0.5),
            p95: nearest(0.95),
            p99: nearest(0.99),
            max: value(count),
            chosen: Interval {
                level,
                low: below.map(at_rank),
                value: nearest(level),
                high: above.map(at_rank),
                needed: needed(level),
            },
        })
    }
}

/// Returns the rank of the smallest of `count` values that a fraction of them does not exceed.
fn rank(share: f64, count: usize) -> usize {
    // 0.95 of 20 values is 19, not the 19.000000000000004 of the binary form.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a length")]
    let rank = (share * count as f64 - 1e-9).ceil().max(1.0) as usize;
    rank.min(count)
}

/// Returns the number of independent values from which the largest is an upper end.
fn needed(level: f64) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "7 to 3,688 for the risks there are")]
    let needed = ((ALPHA / 2.0).ln() / level.ln()).ceil() as usize;
    needed
}

/// Returns the ranks, counted from 1, of the ends of the interval among n values.
fn ranks(n: usize, level: f64) -> (Option<usize>, Option<usize>) {
    let (mut low, mut below) = (None, 0.0);
    let odds = (level / (1.0 - level)).ln();
    let mut log = n as f64 * (1.0 - level).ln();
    for k in 0..n {
        // Probability that at most k values lie below the percentile.
        below += log.exp();
        if below <= ALPHA / 2.0 {
            low = Some(k + 1);
        }
        if below >= 1.0 - ALPHA / 2.0 {
            return (low, Some(k + 1));
        }
        log += ((n - k) as f64 / (k + 1) as f64).ln() + odds;
    }
    (low, None)
}

/// Statistics of how much the values of several series depend on each other. The series is modelled as a process of
/// first order by the correlation of neighbours, and counts as at least one value. It holds sums of values, and no
/// values.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Autocorrelation {
    count: f64,
    sum: f64,
    squares: f64,
    /// Pairs of neighbours: their number, the sums of the first and of the second values, and of their products.
    pairs: f64,
    firsts: f64,
    seconds: f64,
    products: f64,
}

impl Autocorrelation {
    /// Adds a value, and the value before it in its series.
    pub(crate) fn add(&mut self, before: Option<f64>, value: f64) {
        self.count += 1.0;
        self.sum += value;
        self.squares += value * value;
        if let Some(before) = before {
            self.pairs += 1.0;
            self.firsts += before;
            self.seconds += value;
            self.products += before * value;
        }
    }

    /// Returns the statistics of both samples together.
    pub(crate) fn merged(&self, other: &Autocorrelation) -> Autocorrelation {
        Autocorrelation {
            count: self.count + other.count,
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
            pairs: self.pairs + other.pairs,
            firsts: self.firsts + other.firsts,
            seconds: self.seconds + other.seconds,
            products: self.products + other.products,
        }
    }

    /// Returns the number of independent values that the sample is worth.
    pub(crate) fn effective(&self, series: usize) -> f64 {
        let mean = self.sum / self.count.max(1.0);
        let squares = self.squares - self.count * mean * mean;
        let products = self.products - mean * (self.firsts + self.seconds) + self.pairs * mean * mean;
        // Differences between equal values from the rounding of floating point are no correlation.
        let differs = squares > 1e-9 * self.count * mean * mean;
        let correlation = if differs { (products / squares).clamp(0.0, 0.99) } else { 0.0 };
        (self.count * (1.0 - correlation) / (1.0 + correlation)).max(series as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_of_the_sample() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        let of = Usage::of(values, 100.0, 0.9).unwrap();
        assert_eq!([of.p50, of.p95, of.p99, of.max, of.mean], [50.0, 95.0, 99.0, 100.0, 50.5]);
        assert_eq!(of.chosen.value, 90.0);
        assert_eq!(Usage::of(Vec::new(), 1.0, 0.9), None);
    }

    #[test]
    fn intervals_of_a_table() {
        // Of 100 values, those at ranks 84 and 96 enclose the 90th percentile; qbinom(0.025, 100, 0.9) is 84.
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        let chosen = Usage::of(values, 100.0, 0.9).unwrap().chosen;
        assert_eq!((chosen.low, chosen.high), (Some(84.0), Some(96.0)));
        // The largest of 72 values is above the 95th percentile in 97.5 % of cases, the largest of 71 is not.
        assert_eq!(needed(0.95), 72);
        assert_eq!((ranks(72, 0.95).1, ranks(71, 0.95).1), (Some(72), None));
    }

    fn effective(series: &[&[f64]]) -> f64 {
        let of = |one: &&[f64]| {
            let mut dependence = Autocorrelation::default();
            let before = std::iter::once(None).chain(one.iter().copied().map(Some));
            before.zip(*one).for_each(|(before, value)| dependence.add(before, *value));
            dependence
        };
        let all = series.iter().map(of).fold(Autocorrelation::default(), |all, one| all.merged(&one));
        all.effective(series.len())
    }

    #[test]
    fn values_that_follow_each_other_count_as_fewer() {
        let alternating: Vec<f64> = (0..100).map(|n| f64::from(n % 2)).collect();
        assert_eq!(effective(&[&alternating]), 100.0);
        let slow: Vec<f64> = (0..100).map(|n| f64::from(n / 25)).collect();
        assert!(effective(&[&slow]) < 10.0);
        // Sums of products and of squares around the mean of both series, 1.5.
        let two = effective(&[&[0.0, 1.0, 2.0, 1.0], &[4.0, 3.0, 1.0, 0.0]]);
        let correlation = (0.75 - 0.25 - 0.25 + 3.75 - 0.75 + 0.75) / (2.25 + 3.0 * 0.25 + 6.25 + 2.25 + 0.25 + 2.25);
        assert!((two - 8.0 * (1.0 - correlation) / (1.0 + correlation)).abs() < 1e-9, "{two}");
        let constant = [1.0; 50];
        assert_eq!(effective(&[&constant, &constant]), 100.0);
    }
}
