//! Records of a write-ahead log: batches of changes that are applied together.

use super::bytes::Bytes;

/// A change of one key; without a value, its deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change<'b> {
    pub(super) sequence: u64,
    pub(super) key: &'b [u8],
    pub(super) value: Option<&'b [u8]>,
}

/// Decodes a batch. Returns the number of its first change, and its changes, or `None` if it is invalid.
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
