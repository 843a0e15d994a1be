//! The set of resources, and its arithmetic.
//!
//! Filters are in `query.rs`, changes of role and reservation in `transform.rs`, flexible matching in `find.rs`.

use std::ops::{Add, AddAssign, Sub, SubAssign};

use crate::Resource;

/// A set of resources in normal form: entries that can be merged are merged, and none is empty.
///
/// Two sets are equal if each contains the other. The order of entries has no meaning, but is kept (the first entry of
/// a kind stays in its place), so that the same history gives the same output.
#[derive(Clone, Debug, Default)]
pub struct Resources {
    entries: Vec<Resource>,
}

impl Resources {
    /// Creates an empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// Returns an iterator over the entries.
    pub fn iter(&self) -> std::slice::Iter<'_, Resource> {
        self.entries.iter()
    }

    /// Returns the entries as a slice.
    #[must_use]
    pub fn as_slice(&self) -> &[Resource] {
        &self.entries
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the set has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds one entry. Empty ones are dropped; amounts and copies of shared ones saturate.
    pub fn add(&mut self, resource: Resource) {
        if resource.is_empty() {
            return;
        }
        match self.entries.iter_mut().find(|entry| entry.merges_with(&resource)) {
            Some(entry) if entry.is_shared() => entry.copies = entry.copies.saturating_add(resource.copies),
            Some(entry) => entry.value.add(&resource.value),
            None => self.entries.push(resource),
        }
    }

    /// Adds one entry by reference; it is cloned only if it becomes an entry of its own.
    pub fn add_ref(&mut self, resource: &Resource) {
        if resource.is_empty() {
            return;
        }
        match self.entries.iter_mut().find(|entry| entry.merges_with(resource)) {
            Some(entry) if entry.is_shared() => entry.copies = entry.copies.saturating_add(resource.copies),
            Some(entry) => entry.value.add(&resource.value),
            None => self.entries.push(resource.clone()),
        }
    }

    /// Returns one entry to a part of `whole`, and keeps the order of entries in `whole`: the result is the rest of
    /// `whole` when that much less is taken from it. Returns `false` without a change if `whole` has no entry that it
    /// can be a part of, or if it is shared or indivisible.
    pub fn give_back(&mut self, resource: &Resource, whole: &Self) -> bool {
        if resource.is_shared() || resource.is_indivisible() {
            return false;
        }
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.merges_with(resource)) {
            entry.value.add(&resource.value);
            return true;
        }
        let mut before = 0;
        for entry in &whole.entries {
            if entry.merges_with(resource) {
                self.entries.insert(before, resource.clone());
                return true;
            }
            before += usize::from(self.entries.get(before).is_some_and(|next| next.same_kind(entry)));
        }
        false
    }

    /// Subtracts one entry from the first entry that matches. An entry without a match is ignored; subtracting more
    /// than the set contains removes the entry, and no amount falls below 0.
    pub fn subtract(&mut self, resource: &Resource) {
        if resource.is_empty() {
            return;
        }
        let Some(at) = self.entries.iter().position(|entry| entry.yields(resource)) else {
            return;
        };
        let entry = &mut self.entries[at];
        if entry.is_shared() {
            entry.copies = entry.copies.saturating_sub(resource.copies);
            if entry.copies == 0 {
                self.entries.remove(at);
            }
            return;
        }
        entry.value.subtract(&resource.value);
        let negative = entry.amount().is_some_and(crate::Amount::is_negative);
        if negative || entry.is_empty() {
            self.entries.remove(at);
        }
    }

    /// Returns whether the set contains all of `other`.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        // Entries of a set are disjoint, but indivisible ones may occur twice: those are subtracted one by one.
        let twice = other.entries.iter().filter(|r| r.is_indivisible() && !r.is_shared()).count() > 1;
        if !twice {
            return other.entries.iter().all(|wanted| self.contains_resource(wanted));
        }
        let mut left = self.clone();
        other.entries.iter().all(|wanted| {
            let found = left.contains_resource(wanted);
            if found && wanted.is_indivisible() {
                left.subtract(wanted);
            }
            found
        })
    }

    /// Returns whether one entry contains all of a resource. An empty resource is in every set.
    #[must_use]
    pub fn contains_resource(&self, resource: &Resource) -> bool {
        resource.is_empty() || self.entries.iter().any(|entry| entry.contains(resource))
    }

    /// Changes every entry, and merges entries that are equal then.
    pub(crate) fn map(&self, change: impl Fn(&Resource) -> Resource) -> Self {
        self.entries.iter().map(change).collect()
    }

    /// Returns the entries for a change that cannot make two of them equal.
    pub(crate) fn entries_mut(&mut self) -> &mut Vec<Resource> {
        &mut self.entries
    }
}

impl PartialEq for Resources {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && (self.entries == other.entries || (self.contains(other) && other.contains(self)))
    }
}

impl Eq for Resources {}

impl FromIterator<Resource> for Resources {
    fn from_iter<I: IntoIterator<Item = Resource>>(resources: I) -> Self {
        let mut all = Self::new();
        all.extend(resources);
        all
    }
}

impl Extend<Resource> for Resources {
    fn extend<I: IntoIterator<Item = Resource>>(&mut self, resources: I) {
        for resource in resources {
            self.add(resource);
        }
    }
}

impl From<Resource> for Resources {
    fn from(resource: Resource) -> Self {
        std::iter::once(resource).collect()
    }
}

impl IntoIterator for Resources {
    type Item = Resource;
    type IntoIter = std::vec::IntoIter<Resource>;
    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<'a> IntoIterator for &'a Resources {
    type Item = &'a Resource;
    type IntoIter = std::slice::Iter<'a, Resource>;
    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter()
    }
}

impl AddAssign<&Self> for Resources {
    fn add_assign(&mut self, other: &Self) {
        if self.entries.is_empty() {
            self.entries.clone_from(&other.entries);
            return;
        }
        for resource in &other.entries {
            self.add_ref(resource);
        }
    }
}

impl AddAssign for Resources {
    fn add_assign(&mut self, other: Self) {
        if self.entries.is_empty() {
            *self = other;
            return;
        }
        self.extend(other);
    }
}

impl SubAssign<&Self> for Resources {
    fn sub_assign(&mut self, other: &Self) {
        for resource in &other.entries {
            self.subtract(resource);
        }
    }
}

impl Add<&Resources> for Resources {
    type Output = Self;
    fn add(mut self, other: &Self) -> Self {
        self += other;
        self
    }
}

impl Add<&Resources> for &Resources {
    type Output = Resources;
    fn add(self, other: &Resources) -> Resources {
        self.clone() + other
    }
}

impl Add for Resources {
    type Output = Self;
    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl Sub<&Resources> for Resources {
    type Output = Self;
    fn sub(mut self, other: &Self) -> Self {
        self -= other;
        self
    }
}

impl Sub<&Resources> for &Resources {
    type Output = Resources;
    fn sub(self, other: &Resources) -> Resources {
        self.clone() - other
    }
}

impl std::iter::Sum for Resources {
    fn sum<I: Iterator<Item = Self>>(sets: I) -> Self {
        sets.fold(Self::new(), |all, set| all + set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Amount;

    fn amounts(of: &[(&str, i64)]) -> Resources {
        of.iter().map(|(name, amount)| Resource::scalar(*name, Amount::from_thousandths(*amount))).collect()
    }

    #[test]
    fn what_is_given_back_stands_where_it_stood() {
        let whole = amounts(&[("cpus", 4), ("mem", 8), ("disk", 2), ("gpus", 1)]);
        for taken in [&[("mem", 8), ("cpus", 4)][..], &[("disk", 2)], &[("gpus", 1), ("cpus", 1)], &[("mem", 3)]] {
            let mut left = whole.clone();
            amounts(taken).iter().for_each(|resource| left.subtract(resource));
            for (name, amount) in taken {
                assert!(left.give_back(&Resource::scalar(*name, Amount::from_thousandths(*amount)), &whole));
            }
            assert_eq!(left.as_slice(), whole.as_slice(), "{taken:?}");
        }
        let mut left = whole.clone();
        assert!(!left.give_back(&Resource::scalar("ports", Amount::from_thousandths(1)), &whole));
        assert_eq!(left.as_slice(), whole.as_slice());
    }
}
