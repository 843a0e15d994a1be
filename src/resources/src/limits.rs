//! Upper limits by resource name, where a missing name has no limit.

use crate::{Amount, Name, Quantities};

/// Limits of amounts by resource name, as in quota. A missing name is unlimited, unlike in [`Quantities`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Limits {
    common: [Option<Amount>; 4],
    /// Limits of other names, sorted by name.
    others: Vec<(Name, Amount)>,
}

impl Limits {
    /// Creates limits that limit nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { common: [None; 4], others: Vec::new() }
    }

    /// Returns the limit of a name; `None` if it is unlimited.
    #[must_use]
    pub fn get(&self, name: &Name) -> Option<Amount> {
        match name.common_index() {
            Some(at) => self.common[at],
            None => self.others.binary_search_by(|(n, _)| n.cmp(name)).ok().map(|at| self.others[at].1),
        }
    }

    /// Sets the limit of a name; 0 is a limit, too.
    pub fn set(&mut self, name: &Name, limit: Amount) {
        if let Some(at) = name.common_index() {
            self.common[at] = Some(limit);
            return;
        }
        match self.others.binary_search_by(|(n, _)| n.cmp(name)) {
            Ok(at) => self.others[at].1 = limit,
            Err(at) => self.others.insert(at, (name.clone(), limit)),
        }
    }

    /// Returns whether there is no limit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.others.is_empty() && self.common.iter().all(Option::is_none)
    }

    /// Returns an iterator over all limits: cpus, mem, disk, gpus, then others by name.
    pub fn iter(&self) -> impl Iterator<Item = (Name, Amount)> + '_ {
        let common = Name::COMMON.into_iter().zip(self.common);
        common.filter_map(|(name, limit)| Some((name, limit?))).chain(self.others.iter().cloned())
    }

    /// Returns whether no amount is above its limit.
    #[must_use]
    pub fn allows(&self, amounts: &Quantities) -> bool {
        self.iter().all(|(name, limit)| amounts.get(&name) <= limit)
    }

    /// Returns the limits reduced by `used`, none below 0.
    #[must_use]
    pub fn minus(&self, used: &Quantities) -> Self {
        self.iter().map(|(name, limit)| (name.clone(), limit.minus_floored(used.get(&name)))).collect()
    }
}

impl FromIterator<(Name, Amount)> for Limits {
    fn from_iter<I: IntoIterator<Item = (Name, Amount)>>(limits: I) -> Self {
        let mut all = Self::new();
        for (name, limit) in limits {
            all.set(&name, limit);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_is_unlimited() {
        let one = Amount::from_units(1);
        let limits: Limits = [(Name::Cpus, one), (Name::from("gas"), Amount::ZERO)].into_iter().collect();
        assert!(limits.allows(&[(Name::Mem, Amount::MAX), (Name::Cpus, one)].into_iter().collect()));
        assert!(!limits.allows(&[(Name::from("gas"), Amount::MILLI)].into_iter().collect()));
        let left = limits.minus(&[(Name::Cpus, Amount::from_units(2))].into_iter().collect());
        assert_eq!((left.get(&Name::Cpus), left.get(&Name::Mem)), (Some(Amount::ZERO), None));
    }
}
