//! A tree of seeds: each part of a world has a random generator of its own, identified by its place in the tree.
//!
//! One more draw in one place does not change the numbers of another. Two runs that differ in one policy have the same
//! arrivals, durations and failures. This module draws nothing itself.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;

/// The random generator of all places.
pub type Rng = Pcg64Mcg;

/// A place in the tree of seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(u64);

impl Seed {
    /// Returns the root of a run's tree.
    pub fn root(seed: u64) -> Seed {
        Seed(base::scramble(seed ^ 0x6c61_6221))
    }

    /// Returns the branch with this name below this place.
    pub fn child(self, name: &str) -> Seed {
        // FNV-1a, which never changes, unlike the hashers of libraries.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Seed(base::scramble(self.0 ^ hash))
    }

    /// Returns the branch with this number below the branch with this name.
    pub fn nth(self, name: &str, n: usize) -> Seed {
        Seed(base::scramble(self.child(name).0.wrapping_add(n as u64).wrapping_mul(base::GAMMA)))
    }

    /// Returns a generator for this place. Two calls give the same stream.
    pub fn rng(self) -> Rng {
        Rng::seed_from_u64(self.0)
    }

    /// Returns a number for this place, to seed code that takes a number.
    pub fn number(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_pcg::rand_core::Rng as _;

    #[test]
    fn branches_are_apart_and_stay_what_they_are() {
        let root = Seed::root(1);
        let draw = |seed: Seed| seed.rng().next_u64();
        let all = [
            draw(root.child("a")),
            draw(root.child("b")),
            draw(root.nth("a", 0)),
            draw(root.nth("a", 1)),
            draw(Seed::root(2).child("a")),
        ];
        for (n, one) in all.iter().enumerate() {
            assert_eq!(all.iter().position(|other| other == one), Some(n));
        }
        assert_eq!(draw(root.child("a")), all[0]);
    }
}
