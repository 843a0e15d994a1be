//! The order of the children of one node: least share first, then fewest allocations, then by name.
//!
//! Shares are computed elsewhere.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::NodeIx;

/// A share that can be compared: never negative, never NaN, so that its bits sort as its value does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Share(u64);

impl Share {
    pub(crate) fn new(value: f64) -> Share {
        // `max` may keep a negative zero; a comparison with NaN is false.
        Share(if value > 0.0 { value.to_bits() } else { 0 })
    }
}

/// Key by which the children of a node are ordered.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) share: Share,
    /// Number of allocations so far: among equal shares, the child with the fewest comes first.
    pub(crate) count: u64,
    pub(crate) name: Arc<str>,
    pub(crate) node: NodeIx,
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        (self.share, self.count)
            .cmp(&(other.share, other.count))
            // Equal pointers are common (a key against itself) and save the comparison of texts.
            .then_with(
                || if Arc::ptr_eq(&self.name, &other.name) { Ordering::Equal } else { self.name.cmp(&other.name) },
            )
            .then(self.node.cmp(&other.node))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key {}

/// Children with an active client, in order.
#[derive(Debug, Default)]
pub(crate) struct Order {
    keys: BTreeSet<Key>,
}

impl Order {
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn insert(&mut self, key: Key) {
        self.keys.insert(key);
    }

    pub(crate) fn remove(&mut self, key: &Key) {
        self.keys.remove(key);
    }

    /// Replaces the share and count of a key, and moves it accordingly.
    pub(crate) fn move_key(&mut self, old: &Key, share: Share, count: u64) {
        if (old.share, old.count) == (share, count) {
            return;
        }
        if self.keys.len() == 1 {
            // In the other order the set would free its memory, only to allocate it again.
            self.keys.insert(Key { share, count, name: old.name.clone(), node: old.node });
            self.keys.remove(old);
        } else if let Some(mut key) = self.keys.take(old) {
            (key.share, key.count) = (share, count);
            self.keys.insert(key);
        }
    }

    pub(crate) fn iter(&self) -> std::collections::btree_set::Iter<'_, Key> {
        self.keys.iter()
    }

    /// Removes and returns all keys, in order, so that they can be stored again with other shares.
    pub(crate) fn take(&mut self) -> Vec<Key> {
        std::mem::take(&mut self.keys).into_iter().collect()
    }

    /// Sorts and stores `keys`; nearly sorted input is cheap.
    pub(crate) fn fill(&mut self, mut keys: Vec<Key>) {
        keys.sort();
        self.keys = BTreeSet::from_iter(keys);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(share: f64, count: u64, name: &str) -> Key {
        Key { share: Share::new(share), count, name: name.into(), node: 0 }
    }

    #[test]
    fn share_then_count_then_name() {
        let mut order = Order::default();
        for k in [key(0.5, 0, "a"), key(0.25, 9, "z"), key(0.25, 9, "b"), key(0.25, 1, "y")] {
            order.insert(k);
        }
        let names: Vec<&str> = order.iter().map(|k| &*k.name).collect();
        assert_eq!(names, ["y", "b", "z", "a"]);
    }

    #[test]
    fn odd_floats_are_zero() {
        for odd in [f64::NAN, -0.0, -1.0] {
            assert_eq!(Share::new(odd), Share::new(0.0));
        }
        assert!(Share::new(0.1) < Share::new(0.2));
        assert!(Share::new(f64::INFINITY) > Share::new(1e300));
    }
}
