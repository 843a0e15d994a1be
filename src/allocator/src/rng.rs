//! Seeded generator that shuffles agents: SplitMix64, which is the same on every machine forever.
//!
//! It is not for secrets, and is seeded only by [`crate::Config::seed`].

/// A generator whose whole state is one number, so that a run can be repeated.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        base::split_mix(&mut self.0)
    }

    /// Returns a number above 0 and at most 1, in steps of 2^-53.
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number below `bound`, which must not be zero. Multiply-shift: its bias is below 2^-32 for any list
    /// that fits in memory.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        ((u64::from((self.next() >> 32) as u32) * u64::from(bound)) >> 32) as u32
    }

    /// Shuffles a list so that every order is equally likely (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i as u32 + 1) as usize;
            items.swap(i, j);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_order_and_nothing_lost() {
        let mut one: Vec<u32> = (0..100).collect();
        let mut two = one.clone();
        Rng::new(7).shuffle(&mut one);
        Rng::new(7).shuffle(&mut two);
        assert_eq!(one, two);
        assert_ne!(one, (0..100).collect::<Vec<_>>());
        one.sort_unstable();
        assert_eq!(one, (0..100).collect::<Vec<_>>());
    }
}
