//! Record format of write-ahead logs and manifests: blocks of 32 KiB, records in fragments, each with a checksum.
//!
//! LevelDB skips records that it cannot read, and ignores an unfinished record at the end. Here the first is a
//! [`Fault`]; the second is reported, and the caller decides.

use std::borrow::Cow;

use super::bytes::{Bytes, is_checksum};

const BLOCK: usize = 32 << 10;
const HEADER: usize = 7;
/// Maximum length of a record in bytes. Memory holds one record in addition to the file.
const RECORD_MAX: usize = 512 << 20;

const ZERO: u8 = 0;
const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

/// Reason why a file of records cannot be read further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Offset of the fault in bytes.
    pub(super) at: usize,
    pub(super) why: &'static str,
}

/// A record, with its offset in the file.
#[derive(Debug)]
pub(super) struct Record<'b> {
    pub(super) at: usize,
    pub(super) data: Cow<'b, [u8]>,
}

/// Iterator over the records of a file, in order.
#[derive(Debug)]
pub(super) struct Records<'b> {
    bytes: &'b [u8],
    at: usize,
    /// Offset of an unfinished record, set when the end is reached.
    torn: Option<usize>,
}

/// A fragment of a record.
struct Fragment<'b> {
    at: usize,
    kind: u8,
    data: &'b [u8],
}

impl<'b> Records<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Records<'b> {
        Records { bytes, at: 0, torn: None }
    }

    /// Returns the offset of an unfinished record at the end of the file. It is known once [`next`](Records::next) has
    /// returned `None`.
    pub(super) fn torn(&self) -> Option<usize> {
        self.torn
    }

    /// Returns the next record, or `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Record<'b>>, Fault> {
        let mut joined: Option<(usize, Vec<u8>)> = None;
        loop {
            let Some(Fragment { at, kind, data }) = self.fragment()? else {
                if let Some((begin, _)) = joined {
                    self.torn = Some(begin);
                }
                return Ok(None);
            };
            match (kind, &mut joined) {
                (FULL, None) => return Ok(Some(Record { at, data: Cow::Borrowed(data) })),
                (FIRST, None) => joined = Some((at, data.to_vec())),
                (MIDDLE | LAST, Some((begin, whole))) => {
                    if whole.len() + data.len() > RECORD_MAX {
                        return Err(Fault { at: *begin, why: "a record is longer than 512 MiB" });
                    }
                    whole.extend_from_slice(data);
                    if kind == LAST {
                        return Ok(joined.map(|(at, whole)| Record { at, data: Cow::Owned(whole) }));
                    }
                }
                (FULL | FIRST, Some(_)) => {
                    return Err(Fault { at, why: "a record begins before the one before it ends" });
                }
                (MIDDLE | LAST, None) => return Err(Fault { at, why: "a record continues that has not begun" }),
                _ => return Err(Fault { at, why: "a fragment has an unknown type" }),
            }
        }
    }

    /// Returns the next fragment, or `None` at the end of the file.
    fn fragment(&mut self) -> Result<Option<Fragment<'b>>, Fault> {
        let left = BLOCK - self.at % BLOCK;
        if left < HEADER {
            // No header fits: the writer fills the block with zeros.
            self.at += left;
        }
        let (at, end) = (self.at, self.at - self.at % BLOCK + BLOCK);
        let mut rest = Bytes(self.bytes.get(at..).unwrap_or_default());
        if rest.is_empty() {
            return Ok(None);
        }
        let (Some(stored), Some([low, high]), Some(kind)) = (rest.u32(), rest.take(2), rest.byte()) else {
            self.torn = Some(at);
            return Ok(None);
        };
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        if (kind, length) == (ZERO, 0) {
            // A file system that has lost a write may leave zeros in its place.
            if self.bytes.iter().skip(at).any(|byte| *byte != 0) {
                return Err(Fault { at, why: "there are zeros in place of a record" });
            }
            self.torn = Some(at);
            return Ok(None);
        }
        if at + HEADER + length > end {
            return Err(Fault { at, why: "a fragment is longer than its block" });
        }
        let Some(data) = rest.take(length) else {
            self.torn = Some(at);
            return Ok(None);
        };
        if !is_checksum(stored, &[&[kind], data]) {
            return Err(Fault { at, why: "the checksum does not match" });
        }
        self.at = at + HEADER + length;
        Ok(Some(Fragment { at, kind, data }))
    }
}
