//! Ids that differ, from a seed.

use base::split_mix;

/// A UUID of version 4 from a seed, which it moves on.
pub(crate) fn uuid(state: &mut u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&split_mix(state).to_be_bytes());
    bytes[8..].copy_from_slice(&split_mix(state).to_be_bytes());
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}
