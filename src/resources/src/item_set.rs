//! Sets of words, the third kind of resource values.

use std::fmt;
use std::sync::Arc;

use protos::mesos;

/// A sorted set of words without duplicates. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ItemSet(Arc<[Arc<str>]>);

impl ItemSet {
    /// Creates a set; sorts the words and drops duplicates.
    #[must_use]
    pub fn new<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> Self {
        Self::from_vec(items.into_iter().map(|item| item.as_ref().into()).collect())
    }

    fn from_vec(mut items: Vec<Arc<str>>) -> Self {
        items.sort_unstable();
        items.dedup();
        Self(items.into())
    }

    /// Returns an iterator over the words, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|item| &**item)
    }

    /// Returns whether the set has no words.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of words.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    fn has(&self, item: &Arc<str>) -> bool {
        self.0.binary_search(item).is_ok()
    }

    /// Returns whether the set contains every word of `other`.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        other.0.iter().all(|item| self.has(item))
    }

    /// Returns whether the set has a word in common with `other`.
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        other.0.iter().any(|item| self.has(item))
    }

    /// Returns the words of both sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut all = Vec::with_capacity(self.0.len() + other.0.len());
        let mut others = other.0.iter().peekable();
        for own in self.0.iter() {
            all.extend(std::iter::from_fn(|| others.next_if(|item| *item < own)).cloned());
            others.next_if_eq(&own);
            all.push(own.clone());
        }
        all.extend(others.cloned());
        Self(all.into())
    }

    /// Returns the words that are not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        Self(self.0.iter().filter(|item| !other.has(item)).cloned().collect())
    }

    /// Converts the set to a message.
    #[must_use]
    pub fn to_proto(&self) -> mesos::value::Set {
        mesos::value::Set { item: self.iter().map(str::to_owned).collect() }
    }
}

/// Formats the set as `{a, b}`.
impl fmt::Display for ItemSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, item) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{item}")?;
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_set() {
        let ab = ItemSet::new(["b", "a", "b"]);
        assert_eq!(ab.to_string(), "{a, b}");
        assert_eq!(ab.union(&ItemSet::new(["c"])).to_string(), "{a, b, c}");
        assert_eq!(ab.difference(&ItemSet::new(["c", "a"])).to_string(), "{b}");
        assert!(ab.contains(&ItemSet::new(["a"])) && !ab.contains(&ItemSet::new(["a", "c"])));
        assert!(ab.intersects(&ItemSet::new(["a", "c"])) && !ab.intersects(&ItemSet::new(["c"])));
    }
}
