//! Encodes changes of an agent's checkpoints as a record of the journal.

use cores::Change;

/// Encoding of an unknown length.
const UNKNOWN: u64 = u64::MAX;

/// Encodes several changes as one record: for each a tag, a length, the path and the bytes.
pub(crate) fn encode(changes: &[Change]) -> Vec<u8> {
    let mut record = Vec::new();
    for change in changes {
        let (tag, path, at, bytes): (u8, &str, Option<u64>, &[u8]) = match change {
            Change::Replace { path, bytes } => (0, path, None, bytes),
            Change::Append { path, at, bytes } => (1, path, *at, bytes),
            Change::Directory { path } => (2, path, None, &[]),
            Change::Link { path, target } => (3, path, None, target.as_bytes()),
            Change::Remove { path } => (4, path, None, &[]),
        };
        record.push(tag);
        record.extend_from_slice(&at.unwrap_or(UNKNOWN).to_le_bytes());
        for part in [path.as_bytes(), bytes] {
            record.extend_from_slice(&(part.len() as u64).to_le_bytes());
            record.extend_from_slice(part);
        }
    }
    record
}

/// Decodes the changes of a record; `None` if it is not one.
pub(crate) fn decode(record: &[u8]) -> Option<Vec<Change>> {
    let (mut changes, mut rest) = (Vec::new(), record);
    while let Some((tag, after)) = rest.split_first() {
        let (at, after) = take_number(after)?;
        let (path, after) = take_bytes(after)?;
        let (bytes, after) = take_bytes(after)?;
        let path = String::from_utf8(path.to_vec()).ok()?;
        changes.push(match tag {
            0 => Change::Replace { path, bytes: bytes.to_vec() },
            1 => Change::Append { path, at: (at != UNKNOWN).then_some(at), bytes: bytes.to_vec() },
            2 => Change::Directory { path },
            3 => Change::Link { path, target: String::from_utf8(bytes.to_vec()).ok()? },
            4 => Change::Remove { path },
            _ => return None,
        });
        rest = after;
    }
    Some(changes)
}

fn take_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*number), rest))
}

fn take_bytes(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = take_number(bytes)?;
    rest.split_at_checked(usize::try_from(length).ok()?)
}
