//! The distribution of many values in little memory: a histogram with buckets of the same relative width, as in
//! DDSketch (Masson, Rim, Lee: "DDSketch", PVLDB 2019).
//!
//! The value of a bucket is its upper end. So it is never below the exact value, and at most [`ERROR`] above it. The
//! largest value is exact. Values are cores, so the range is fixed.

/// Largest relative error of a value, which is never below the exact one. Below [`LEAST`] a value may be up to that.
pub(crate) const ERROR: f64 = 0.02;
/// Upper end of the first bucket.
pub(crate) const LEAST: f64 = 1e-4;
/// Number of buckets. The last one begins above 10,000.
const BUCKETS: u16 = 933;
/// Most bytes of a sketch's buckets.
#[cfg(test)]
pub(crate) const BYTES_MAX: usize = 4 * BUCKETS as usize;

/// Counts of values by bucket. It needs 4 bytes for each bucket from the smallest value to the largest, 3.7 kB at most.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sketch {
    /// Index of the bucket of the first count.
    first: u16,
    counts: Vec<u32>,
    count: u64,
    max: f64,
}

impl Sketch {
    /// Adds a value, which must be at least 0.
    pub(crate) fn add(&mut self, value: f64) {
        let bucket = bucket(value);
        if self.counts.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            let more = usize::from(self.first - bucket);
            self.counts.splice(0..0, std::iter::repeat_n(0, more));
            self.first = bucket;
        }
        let place = usize::from(bucket - self.first);
        if place >= self.counts.len() {
            // Reserve no more than is needed: there may be many sketches.
            self.counts.reserve_exact(place + 1 - self.counts.len());
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] = self.counts[place].saturating_add(1);
        self.count += 1;
        self.max = self.max.max(value);
    }

    /// Returns a sketch of the values of both.
    pub(crate) fn merged(&self, other: &Sketch) -> Sketch {
        let (mut all, few) =
            if self.counts.len() < other.counts.len() { (other.clone(), self) } else { (self.clone(), other) };
        if few.counts.is_empty() {
            return all;
        }
        let end = |sketch: &Sketch| usize::from(sketch.first) + sketch.counts.len();
        let (first, last) = (all.first.min(few.first), end(&all).max(end(few)));
        let mut counts = vec![0_u32; last - usize::from(first)];
        for sketch in [&all, few] {
            let from = usize::from(sketch.first - first);
            for (sum, count) in counts[from..].iter_mut().zip(&sketch.counts) {
                *sum = sum.saturating_add(*count);
            }
        }
        (all.first, all.counts) = (first, counts);
        all.count += few.count;
        all.max = all.max.max(few.max);
        all
    }

    /// Returns the number of values.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the value of a rank, counted from 1 for the smallest.
    pub(crate) fn at_rank(&self, rank: u64) -> f64 {
        let mut below = 0;
        for (bucket, count) in (self.first..).zip(&self.counts) {
            below += u64::from(*count);
            if below >= rank && bucket + 1 < BUCKETS {
                return end(bucket).min(self.max);
            }
        }
        self.max
    }
}

/// Returns the upper end of a bucket.
fn end(bucket: u16) -> f64 {
    LEAST * (f64::from(bucket) * (1.0 + ERROR).ln()).exp()
}

/// Returns the first bucket whose upper end is not below the value.
fn bucket(value: f64) -> u16 {
    let steps = ((value / LEAST).ln() / (1.0 + ERROR).ln()).ceil().clamp(0.0, f64::from(BUCKETS - 1));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to the number of buckets")]
    let bucket = steps as u16;
    // Rounding may lead to the previous bucket.
    if end(bucket) < value { (bucket + 1).min(BUCKETS - 1) } else { bucket }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[f64]) -> Sketch {
        let mut sketch = Sketch::default();
        values.iter().for_each(|value| sketch.add(*value));
        sketch
    }

    #[test]
    fn ends_of_the_range() {
        assert_eq!(of(&[]).at_rank(1), 0.0);
        assert_eq!(of(&[0.0, 0.0]).at_rank(2), 0.0, "the largest is exact");
        assert!(end(BUCKETS - 2) > 1e4, "{}", end(BUCKETS - 2));
        let sketch = of(&[1e-9, 5.0, 1e300]);
        assert_eq!([sketch.at_rank(1), sketch.at_rank(3)], [LEAST, 1e300]);
    }

    proptest! {
        /// Compares the sketch with the exact value of every rank.
        #[test]
        fn values_are_not_below_and_at_most_the_error_above(
            mut values in prop::collection::vec(
                prop_oneof![Just(0.0), 0.0..2e-4_f64, 0.0..4.0_f64, (-12.0..9.0_f64).prop_map(f64::exp)], 1..300),
            cut in 0..300_usize,
        ) {
            let (left, right) = values.split_at(cut.min(values.len()));
            let merged = of(left).merged(&of(right));
            let whole = of(&values);
            values.sort_unstable_by(f64::total_cmp);
            prop_assert_eq!(merged.count(), values.len() as u64);
            for (rank, exact) in (1..).zip(&values) {
                let found = merged.at_rank(rank);
                // 1e-9: the ends of buckets are rounded.
                let highest = (exact * (1.0 + ERROR) * (1.0 + 1e-9)).max(LEAST);
                prop_assert!((*exact..=highest).contains(&found), "{} instead of {}", found, exact);
                prop_assert_eq!(found, whole.at_rank(rank));
            }
            prop_assert_eq!(merged.at_rank(values.len() as u64), values[values.len() - 1]);
        }
    }
}
