//! Manifest of a database: the tables and write-ahead logs that it consists of.

use std::collections::BTreeMap;

use super::bytes::Bytes;

/// Name of the order of keys that Mesos uses.
const COMPARATOR: &[u8] = b"leveldb.BytewiseComparator";
/// Number of levels of tables.
const LEVELS: u64 = 7;

/// Result of all edits of a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    /// Number of the first write-ahead log that is not in tables yet.
    pub(super) log: u64,
    /// Number of a lower write-ahead log that is not in tables yet, or 0. Only old versions write it.
    pub(super) previous_log: u64,
    /// Highest number of a change when the manifest was written.
    pub(super) last_sequence: u64,
    /// Lengths of tables in bytes, by number.
    pub(super) tables: BTreeMap<u64, u64>,
}

impl Manifest {
    /// Applies an edit.
    ///
    /// # Errors
    /// The rule that the edit breaks.
    pub(super) fn apply(&mut self, record: &[u8]) -> Result<(), &'static str> {
        let mut bytes = Bytes(record);
        // Deletions apply to the files before the edit: a compaction may move a table from one level to another.
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        while !bytes.is_empty() {
            self.field(&mut bytes, &mut added, &mut removed).ok_or("a version edit is invalid")??;
        }
        for number in removed {
            self.tables.remove(&number).ok_or("a version edit removes a table that is not there")?;
        }
        self.tables.extend(added);
        Ok(())
    }

    /// Reads one field. Returns `None` if it is cut off or unknown.
    fn field(
        &mut self,
        bytes: &mut Bytes<'_>,
        added: &mut Vec<(u64, u64)>,
        removed: &mut Vec<u64>,
    ) -> Option<Result<(), &'static str>> {
        match bytes.varint()? {
            1 if bytes.text()? != COMPARATOR => return Some(Err("the keys are in another order than Mesos's")),
            1 => {}
            2 => self.log = bytes.varint()?,
            // Next number of a file.
            3 => drop(bytes.varint()?),
            4 => self.last_sequence = bytes.varint()?,
            // Key at which the next compaction starts.
            5 => {
                level(bytes)?;
                bytes.text()?;
            }
            6 => {
                level(bytes)?;
                removed.push(bytes.varint()?);
            }
            7 => {
                level(bytes)?;
                let (number, length) = (bytes.varint()?, bytes.varint()?);
                // Smallest and largest key.
                bytes.text()?;
                bytes.text()?;
                added.push((number, length));
            }
            9 => self.previous_log = bytes.varint()?,
            _ => return None,
        }
        Some(Ok(()))
    }
}

fn level(bytes: &mut Bytes<'_>) -> Option<u64> {
    bytes.varint().filter(|level| *level < LEVELS)
}
