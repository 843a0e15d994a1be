//! SplitMix64, a random number generator (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA
//! 2014): one word of state, any seed is good, and the numbers are the same on every machine. Not for secrets.

/// Increment of the state of SplitMix64; the sequence has the full period.
pub const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Advances the state and returns the next 64 random bits.
#[inline]
pub fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(GAMMA);
    scramble(*state)
}

/// Converts 64 random bits to a number in [0, 1), in steps of 2^-53.
#[inline]
pub fn fraction(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns the output of a state of SplitMix64. It is different for each state, and far apart for similar states.
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
