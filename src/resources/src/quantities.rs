//! Plain sums of scalars by resource name, for the allocator.

use std::fmt;

use crate::{Amount, Name};

/// Amounts by resource name. A missing name has the amount 0.
///
/// Cpus, mem, disk and gpus are in a fixed array; other names in a small sorted list that is empty (and does not
/// allocate) on most clusters. Amounts may be negative here; `saturating_sub` stops at 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Quantities {
    common: [Amount; 4],
    /// Amounts of other names, sorted by name, without zeros.
    others: Vec<(Name, Amount)>,
}

impl Quantities {
    /// Creates quantities that are all 0.
    #[must_use]
    pub const fn new() -> Self {
        Self { common: [Amount::ZERO; 4], others: Vec::new() }
    }

    /// Returns the amount of a name; 0 if it is missing.
    #[must_use]
    pub fn get(&self, name: &Name) -> Amount {
        match name.common_index() {
            Some(at) => self.common[at],
            None => self.others.binary_search_by(|(n, _)| n.cmp(name)).map_or(Amount::ZERO, |at| self.others[at].1),
        }
    }

    /// Sets the amount of a name.
    pub fn set(&mut self, name: &Name, amount: Amount) {
        if let Some(at) = name.common_index() {
            self.common[at] = amount;
            return;
        }
        match self.others.binary_search_by(|(n, _)| n.cmp(name)) {
            Ok(at) if amount.is_zero() => {
                self.others.remove(at);
            }
            Ok(at) => self.others[at].1 = amount,
            Err(_) if amount.is_zero() => {}
            Err(at) => self.others.insert(at, (name.clone(), amount)),
        }
    }

    /// Adds to the amount of a name.
    pub fn add(&mut self, name: &Name, amount: Amount) {
        match name.common_index() {
            Some(at) => self.common[at] += amount,
            None => self.set(name, self.get(name) + amount),
        }
    }

    /// Returns the four common amounts: cpus, mem, disk, gpus.
    #[must_use]
    pub const fn common(&self) -> &[Amount; 4] {
        &self.common
    }

    /// Returns the amounts of other names, sorted by name, none of them 0.
    #[must_use]
    pub fn others(&self) -> &[(Name, Amount)] {
        &self.others
    }

    /// Returns an iterator over all amounts that are not 0: cpus, mem, disk, gpus, then others by name.
    pub fn iter(&self) -> impl Iterator<Item = (Name, Amount)> + '_ {
        let common = Name::COMMON.into_iter().zip(self.common);
        common.filter(|(_, amount)| !amount.is_zero()).chain(self.others.iter().cloned())
    }

    /// Returns whether every amount is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.others.is_empty() && self.common == [Amount::ZERO; 4]
    }

    /// Returns whether every amount is at least that of `other`.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        self.common.iter().zip(&other.common).all(|(own, wanted)| own >= wanted)
            && other.others.iter().all(|(name, wanted)| self.get(name) >= *wanted)
            && self.others.iter().all(|(name, own)| *own >= other.get(name))
    }

    /// Returns `self - other`, with no amount below 0.
    #[must_use]
    pub fn saturating_sub(&self, other: &Self) -> Self {
        self.combine(other, Amount::minus_floored)
    }

    /// Returns the smaller of each pair of amounts.
    #[must_use]
    pub fn min(&self, other: &Self) -> Self {
        self.combine(other, Ord::min)
    }

    /// Returns the larger of each pair of amounts.
    #[must_use]
    pub fn max(&self, other: &Self) -> Self {
        self.combine(other, Ord::max)
    }

    /// Returns every amount times `factor`, rounded to thousandths.
    #[must_use]
    pub fn scale(&self, factor: f64) -> Self {
        self.combine(&Self::new(), |amount, _| amount.scaled(factor))
    }

    /// Returns the largest `self[name] / whole[name]` over the names in `whole`, which is a dominant share; 0 if
    /// `whole` is empty.
    #[must_use]
    pub fn ratio(&self, whole: &Self) -> f64 {
        let common = self.common.iter().zip(&whole.common).map(|(own, all)| own.ratio_of(*all));
        let others = whole.others.iter().map(|(name, all)| self.get(name).ratio_of(*all));
        common.chain(others).fold(0.0, f64::max)
    }

    /// Applies `f` to each pair of amounts; `f(0, 0)` must be 0.
    fn combine(&self, other: &Self, f: impl Fn(Amount, Amount) -> Amount) -> Self {
        let mut result = Self::new();
        for (at, sum) in result.common.iter_mut().enumerate() {
            *sum = f(self.common[at], other.common[at]);
        }
        if !self.others.is_empty() || !other.others.is_empty() {
            result.others = merge(&self.others, &other.others, f);
        }
        result
    }
}

/// Merges two sorted lists.
fn merge(a: &[(Name, Amount)], b: &[(Name, Amount)], f: impl Fn(Amount, Amount) -> Amount) -> Vec<(Name, Amount)> {
    let mut merged = Vec::with_capacity(a.len().max(b.len()));
    let (mut i, mut j) = (0, 0);
    loop {
        let (name, amount) = match (a.get(i), b.get(j)) {
            (Some((x, own)), Some((y, others))) if x == y => {
                (i, j) = (i + 1, j + 1);
                (x, f(*own, *others))
            }
            (Some((x, own)), y) if y.is_none_or(|(y, _)| x < y) => {
                i += 1;
                (x, f(*own, Amount::ZERO))
            }
            (_, Some((y, others))) => {
                j += 1;
                (y, f(Amount::ZERO, *others))
            }
            (_, None) => return merged,
        };
        if !amount.is_zero() {
            merged.push((name.clone(), amount));
        }
    }
}

impl std::ops::AddAssign<&Self> for Quantities {
    fn add_assign(&mut self, other: &Self) {
        for (sum, amount) in self.common.iter_mut().zip(other.common) {
            *sum += amount;
        }
        for (name, amount) in &other.others {
            self.add(name, *amount);
        }
    }
}

impl std::ops::SubAssign<&Self> for Quantities {
    fn sub_assign(&mut self, other: &Self) {
        for (sum, amount) in self.common.iter_mut().zip(other.common) {
            *sum -= amount;
        }
        for (name, amount) in &other.others {
            self.add(name, -*amount);
        }
    }
}

impl std::ops::Add<&Self> for Quantities {
    type Output = Self;
    fn add(mut self, other: &Self) -> Self {
        self += other;
        self
    }
}

impl std::ops::Sub<&Self> for Quantities {
    type Output = Self;
    fn sub(mut self, other: &Self) -> Self {
        self -= other;
        self
    }
}

impl FromIterator<(Name, Amount)> for Quantities {
    fn from_iter<I: IntoIterator<Item = (Name, Amount)>>(amounts: I) -> Self {
        let mut all = Self::new();
        for (name, amount) in amounts {
            all.add(&name, amount);
        }
        all
    }
}

/// Formats the amounts as `cpus:4; mem:1024`, or as `{}` if all are 0.
impl fmt::Display for Quantities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("{}");
        }
        for (i, (name, amount)) in self.iter().enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            write!(f, "{separator}{name}:{amount}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn q(pairs: &[(&str, i64)]) -> Quantities {
        pairs.iter().map(|&(name, units)| (Name::from(name), Amount::from_units(units))).collect()
    }

    #[test]
    fn adds_and_subtracts() {
        let mut sum = q(&[("cpus", 2), ("b", 1)]);
        sum += &q(&[("cpus", 1), ("mem", 5), ("a", 3)]);
        assert_eq!(sum.to_string(), "cpus:3; mem:5; a:3; b:1");
        sum -= &q(&[("b", 1), ("cpus", 4)]);
        assert_eq!(sum, q(&[("cpus", -1), ("mem", 5), ("a", 3)]));
        assert_eq!(sum.others().len(), 1);
    }

    #[test]
    fn merges_sorted_names() {
        let a = q(&[("a", 1), ("c", 5), ("cpus", 1)]);
        let b = q(&[("b", 2), ("c", 3), ("d", 1)]);
        assert_eq!(a.saturating_sub(&b), q(&[("cpus", 1), ("a", 1), ("c", 2)]));
        assert_eq!(a.max(&b), q(&[("cpus", 1), ("a", 1), ("b", 2), ("c", 5), ("d", 1)]));
        assert_eq!(a.min(&b), q(&[("c", 3)]));
        assert!(!a.contains(&b) && a.max(&b).contains(&b) && a.contains(&Quantities::new()));
        assert!(!q(&[("x", -1)]).contains(&Quantities::new()));
    }

    #[test]
    fn dominant_ratio() {
        let whole = q(&[("cpus", 9), ("mem", 18), ("gas", 10)]);
        assert!((q(&[("cpus", 3), ("mem", 4)]).ratio(&whole) - 1.0 / 3.0).abs() < 1e-12);
        assert!((q(&[("cpus", 3), ("gas", 4), ("disk", 7)]).ratio(&whole) - 0.4).abs() < 1e-12);
        assert!(q(&[("disk", 7)]).ratio(&whole).abs() < f64::EPSILON);
        assert_eq!(
            q(&[("cpus", 1)]).scale(0.3335),
            [(Name::Cpus, Amount::from_thousandths(334))].into_iter().collect()
        );
    }
}
