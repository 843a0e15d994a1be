//! Ranges: sets of whole numbers as sorted, disjoint, coalesced intervals.

use std::fmt;
use std::sync::Arc;

use protos::mesos;

/// The whole numbers from `begin` to `end`, both included; `begin <= end` inside a [`Ranges`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    /// First number.
    pub begin: u64,
    /// Last number.
    pub end: u64,
}

/// A set of whole numbers. Sorted; adjacent intervals are merged (`[1-2]` and `[3-4]` are `[1-4]`). Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ranges(Arc<[Range]>);

impl Ranges {
    /// Creates a set from intervals, which are sorted and coalesced. Inverted intervals (begin above end) are empty and
    /// are dropped.
    #[must_use]
    pub fn new(intervals: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut all: Vec<Range> = intervals
            .into_iter()
            .filter(|(begin, end)| begin <= end)
            .map(|(begin, end)| Range { begin, end })
            .collect();
        all.sort_unstable();
        Self::from_sorted(all)
    }

    /// Coalesces intervals that are sorted by their beginnings.
    fn from_sorted(sorted: Vec<Range>) -> Self {
        let mut merged: Vec<Range> = Vec::with_capacity(sorted.len());
        for next in sorted {
            match merged.last_mut() {
                Some(last) if next.begin <= last.end.saturating_add(1) => last.end = last.end.max(next.end),
                _ => merged.push(next),
            }
        }
        Self(merged.into())
    }

    /// Creates a set of one interval.
    #[must_use]
    pub fn single(begin: u64, end: u64) -> Self {
        Self::new([(begin, end)])
    }

    /// Returns an iterator over the intervals, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Range> + '_ {
        self.0.iter().copied()
    }

    /// Returns an iterator over all single numbers, in ascending order. There may be 2^64 of them: take only as many as
    /// needed.
    pub fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().flat_map(|r| r.begin..=r.end)
    }

    /// Returns whether the set has no numbers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of numbers; saturates.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().fold(0, |sum: u64, r| sum.saturating_add((r.end - r.begin).saturating_add(1)))
    }

    /// Returns whether the set contains every number of `other`.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        let mut own = self.0.iter().peekable();
        other.0.iter().all(|wanted| {
            while own.next_if(|r| r.end < wanted.begin).is_some() {}
            own.peek().is_some_and(|r| r.begin <= wanted.begin && wanted.end <= r.end)
        })
    }

    /// Returns whether the set has a number in common with `other`.
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        let mut own = self.0.iter().peekable();
        other.0.iter().any(|wanted| {
            while own.next_if(|r| r.end < wanted.begin).is_some() {}
            own.peek().is_some_and(|r| r.begin <= wanted.end)
        })
    }

    /// Returns the numbers of both sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        if self.is_empty() || Arc::ptr_eq(&self.0, &other.0) {
            return other.clone();
        }
        if other.is_empty() {
            return self.clone();
        }
        let mut all = Vec::with_capacity(self.0.len() + other.0.len());
        let mut others = other.0.iter().copied().peekable();
        for &own in self.0.iter() {
            all.extend(std::iter::from_fn(|| others.next_if(|range| *range < own)));
            all.push(own);
        }
        all.extend(others);
        Self::from_sorted(all)
    }

    /// Returns the numbers that are not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        if self == other {
            return Self::default();
        }
        let mut left = Vec::with_capacity(self.0.len() + 1);
        let mut taken = other.0.iter().peekable();
        for range in self.0.iter() {
            let mut begin = range.begin;
            let mut used_up = false;
            while taken.next_if(|t| t.end < begin).is_some() {}
            while let Some(&&cut) = taken.peek() {
                if cut.begin > range.end {
                    break;
                }
                if cut.begin > begin {
                    left.push(Range { begin, end: cut.begin - 1 });
                }
                if cut.end >= range.end {
                    used_up = true;
                    break;
                }
                begin = cut.end + 1;
                taken.next();
            }
            if !used_up {
                left.push(Range { begin, end: range.end });
            }
        }
        Self(left.into())
    }

    /// Converts the ranges of a message.
    #[must_use]
    pub fn from_proto(ranges: &mesos::value::Ranges) -> Self {
        Self::new(ranges.range.iter().map(|r| (r.begin, r.end)))
    }

    /// Converts the set to a message.
    #[must_use]
    pub fn to_proto(&self) -> mesos::value::Ranges {
        mesos::value::Ranges {
            range: self.iter().map(|r| mesos::value::Range { begin: r.begin, end: r.end }).collect(),
        }
    }
}

/// Formats the set as `[1-2, 7-9]`.
impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, range) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{}-{}", range.begin, range.end)?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coalesces() {
        for (given, text) in [
            (vec![(3, 4), (1, 2)], "[1-4]"),
            (vec![(1, 5), (2, 3), (7, 7)], "[1-5, 7-7]"),
            (vec![(9, 1)], "[]"),
            (vec![(0, u64::MAX), (5, 6), (u64::MAX, u64::MAX)], "[0-18446744073709551615]"),
        ] {
            assert_eq!(Ranges::new(given).to_string(), text);
        }
    }

    #[test]
    fn subtracts() {
        let all = Ranges::single(10, 20);
        for (cut, left) in [
            (vec![(10, 20)], "[]"),
            (vec![(0, 100)], "[]"),
            (vec![(10, 10)], "[11-20]"),
            (vec![(20, 20)], "[10-19]"),
            (vec![(12, 13), (15, 15), (20, 30)], "[10-11, 14-14, 16-19]"),
            (vec![(1, 9), (21, 22)], "[10-20]"),
        ] {
            assert_eq!(all.difference(&Ranges::new(cut)).to_string(), left);
        }
        let two = Ranges::new([(1, 5), (8, 9)]);
        assert_eq!(two.difference(&Ranges::single(4, 8)).to_string(), "[1-3, 9-9]");
        assert_eq!(Ranges::single(0, u64::MAX).difference(&Ranges::single(u64::MAX, u64::MAX)).count(), u64::MAX);
    }

    #[test]
    fn compares() {
        let some = Ranges::new([(1, 5), (8, 9)]);
        assert!(some.contains(&Ranges::new([(2, 3), (5, 5), (9, 9)])));
        assert!(!some.contains(&Ranges::single(5, 6)) && !some.contains(&Ranges::single(10, 10)));
        assert!(some.contains(&Ranges::default()));
        assert!(some.intersects(&Ranges::single(6, 8)) && !some.intersects(&Ranges::single(6, 7)));
        assert_eq!(some.count(), 7);
        assert_eq!(Ranges::single(0, u64::MAX).count(), u64::MAX);
    }
}
