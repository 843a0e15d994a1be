//! The core's only source of chance: a small generator with a seed (SplitMix64).
//!
//! Good enough for jitter and for ids that must differ; not for secrets.

use std::time::Duration;

/// A seeded generator.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        base::split_mix(&mut self.0)
    }

    /// A duration between zero and `max`.
    pub(crate) fn up_to(&mut self, max: Duration) -> Duration {
        let fraction = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        max.mul_f64(fraction)
    }

    /// The 16 bytes of a random (version 4) UUID.
    pub(crate) fn uuid(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.next().to_be_bytes());
        bytes[8..].copy_from_slice(&self.next().to_be_bytes());
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        bytes
    }
}

/// The usual text form of a UUID: `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`.
pub(crate) fn uuid_text(bytes: &[u8; 16]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_have_version_and_variant() {
        let mut random = Random::new(1);
        for _ in 0..100 {
            let text = uuid_text(&random.uuid());
            assert_eq!(text.len(), 36);
            assert_eq!(&text[14..15], "4");
            assert!(matches!(&text[19..20], "8" | "9" | "a" | "b"), "{text}");
        }
    }

    #[test]
    fn jitter_stays_below_its_limit() {
        let mut random = Random::new(7);
        let max = Duration::from_secs(2);
        assert!((0..1000).all(|_| random.up_to(max) <= max));
    }
}
