//! Numbers and texts of LevelDB's files: little-endian, or in groups of seven bits.
//!
//! Nothing here is longer than the bytes that it is read from, so no length has to be limited.

/// Decoder that takes bytes from the front of a slice. Its methods return `None` if the slice is too short, or the
/// value is invalid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'b>(pub(super) &'b [u8]);

impl<'b> Bytes<'b> {
    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*taken))
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*taken))
    }

    /// Reads a number in groups of seven bits, the lowest first.
    pub(super) fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let group = u64::from(byte & 0x7f);
            // The tenth group has only one bit.
            if shift == 63 && group > 1 {
                return None;
            }
            number |= group << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// Reads a number of bytes in memory.
    pub(super) fn length(&mut self) -> Option<usize> {
        usize::try_from(self.varint()?).ok()
    }

    /// Reads a length, and this many bytes.
    pub(super) fn text(&mut self) -> Option<&'b [u8]> {
        let length = self.length()?;
        self.take(length)
    }
}

/// Returns whether `stored` is LevelDB's checksum of these pieces. LevelDB stores checksums rotated and offset, because
/// checksums of data that contains checksums are weak.
pub(super) fn is_checksum(stored: u32, pieces: &[&[u8]]) -> bool {
    const OFFSET: u32 = 0xa282_ead8;
    let sum = pieces.iter().fold(0, |sum, piece| crc32c::crc32c_append(sum, piece));
    stored == sum.rotate_right(15).wrapping_add(OFFSET)
}
