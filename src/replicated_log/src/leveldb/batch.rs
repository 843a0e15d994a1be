//! A record of a write-ahead log: changes that are made together.

use super::bytes::Bytes;

/// A change of one key; without a value its removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change<'b> {
    pub(super) sequence: u64,
    pub(super) key: &'b [u8],
    pub(super) value: Option<&'b [u8]>,
}

/// Reads a batch: the number of its first change, and its changes. `None` if it is none.
pub(super) fn changes(record: &[u8]) -> Option<(u64, Vec<Change<'_>>)> {
    let mut bytes = Bytes(record);
    let (first, count) = (bytes.u64()?, bytes.u32()?);
    let mut changes = Vec::new();
    for number in 0..u64::from(count) {
        let kind = bytes.byte()?;
        let key = bytes.text()?;
        let value = match kind {
            0 => None,
            1 => Some(bytes.text()?),
            _ => return None,
        };
        changes.push(Change { sequence: first.checked_add(number)?, key, value });
    }
    bytes.is_empty().then_some((first, changes))
}
