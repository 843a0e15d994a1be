//! Computes a checksum of all entries of a registry, which a commit updates without reading the other entries.
//!
//! It detects damage. It does not authenticate: a program that can write the files can write a matching checksum, too.

use sha2::{Digest, Sha256};

/// Length of a checksum in bytes.
pub(super) const BYTES: usize = 32;

/// The SHA-256 of every entry, combined by exclusive or. Keys are unique, so no two entries cancel each other out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Content(pub(super) [u8; BYTES]);

impl Content {
    /// Adds an entry to the checksum, or removes it if it is contained.
    pub(super) fn toggle(&mut self, key: &str, value: &[u8]) {
        let entry = Sha256::new()
            .chain_update((key.len() as u64).to_le_bytes())
            .chain_update(key)
            .chain_update(value)
            .finalize();
        for (sum, byte) in self.0.iter_mut().zip(entry) {
            *sum ^= byte;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_entries_does_not_matter_and_their_borders_do() {
        let of = |entries: &[(&str, &str)]| {
            let mut content = Content::default();
            entries.iter().for_each(|(key, value)| content.toggle(key, value.as_bytes()));
            content
        };
        assert_eq!(of(&[("a", "1"), ("b", "2")]), of(&[("b", "2"), ("a", "1")]));
        assert_eq!(of(&[("a", "1"), ("b", "2"), ("a", "1")]), of(&[("b", "2")]));
        assert_ne!(of(&[("a", "b1")]), of(&[("ab", "1")]));
        assert_ne!(of(&[("a", "1"), ("b", "2")]), of(&[("a", "2"), ("b", "1")]));
    }
}
