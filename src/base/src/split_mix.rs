//! SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014): one word of state, no
//! seed of quality, the same on every machine forever. Not for secrets.

/// Increment of the state; the sequence has the full period.
pub const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The next 64 bits.
#[inline]
pub fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(GAMMA);
    scramble(*state)
}

/// A number in [0, 1), in steps of 2^-53, from 64 random bits.
#[inline]
pub fn fraction(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// The number that belongs to a state: near states get far apart, and each has its own.
#[inline]
pub fn scramble(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        // The published first outputs for seed 1234567.
        let mut state = 1_234_567;
        assert_eq!(split_mix(&mut state), 6_457_827_717_110_365_317);
        assert_eq!(split_mix(&mut state), 3_203_168_211_198_807_973);
    }

    #[test]
    fn fractions_are_below_one() {
        assert_eq!((fraction(0), fraction(1 << 63)), (0.0, 0.5));
        assert!(fraction(u64::MAX) < 1.0);
    }
}
