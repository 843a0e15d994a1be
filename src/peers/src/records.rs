//! Bytes of a journal: the records of changes of the log, and the content of a file of records.
//!
//! It opens no file, so that the laboratory's disks have the same bytes as real ones.

use serde::{Deserialize, Serialize};

use crate::log::{Log, LogChange};
use crate::members::{Cluster, Configuration};

/// First bytes of a file; the last one is the version of the format.
const MAGIC: &[u8; 8] = b"tepui-p\x01";
/// Length of the header of a record: its length and its checksum.
const HEAD: usize = 8;

/// Content of a member's disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    /// Random number, not zero. A member with another disk is another member.
    pub disk: u64,
    /// Number of times that a process was started with this disk.
    pub starts: u64,
    /// Identity of the group; `None` before it has formed.
    pub cluster: Option<Cluster>,
    /// Members of the group; `None` before it has formed.
    pub configuration: Option<Configuration>,
    /// Log of this configuration.
    pub log: Log,
}

/// A record of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Record {
    /// The whole content, which replaces everything before.
    Whole(Box<Stored>),
    /// Changes of the log.
    Changes(Vec<LogChange>),
}

/// Reasons why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The file is not a journal, or one of a later version.
    #[error("it is not a journal of a group of this version of tepui")]
    Format,
    /// A record was modified.
    #[error("it is damaged at byte {offset}: {rule}")]
    Damaged {
        /// Offset of the record in bytes.
        offset: usize,
        /// Rule that the record breaks.
        rule: &'static str,
    },
}

/// Bytes that must be durable before anything else is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Append these bytes to the file.
    Append(Vec<u8>),
    /// Replace the file by one with these bytes.
    Anew(Vec<u8>),
}

impl Stored {
    /// Returns an empty disk with a number.
    pub fn new(disk: u64) -> Stored {
        Stored { disk, starts: 0, cluster: None, configuration: None, log: Log::default() }
    }

    /// Returns the bytes of a file with this content.
    pub fn file(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(encode(&Record::Whole(Box::new(self.clone()))));
        bytes
    }

    /// Returns the content of a file, and the number of its bytes that are complete records.
    ///
    /// # Errors
    /// It is not a journal, or damaged.
    pub fn read(bytes: &[u8]) -> Result<(Stored, usize), RecordError> {
        let damaged = |offset, rule| RecordError::Damaged { offset, rule };
        if bytes.get(..MAGIC.len()) != Some(MAGIC) {
            return Err(RecordError::Format);
        }
        let mut offset = MAGIC.len();
        let mut stored: Option<Stored> = None;
        while let Some((length, rest)) = bytes[offset..].split_first_chunk::<4>() {
            let Some((sum, rest)) = rest.split_first_chunk::<4>() else { break };
            let Some(body) = rest.get(..u32::from_le_bytes(*length) as usize) else { break };
            let end = offset + HEAD + body.len();
            if checksum(*length, body) != *sum {
                // A crash may leave the end of an append half written, but never the first record.
                if end == bytes.len() && stored.is_some() {
                    break;
                }
                return Err(damaged(offset, "the checksum of a record is wrong"));
            }
            let record = postcard::from_bytes(body).map_err(|_| damaged(offset, "a record cannot be decoded"))?;
            match (record, &mut stored) {
                (Record::Whole(whole), _) => stored = Some(*whole),
                (Record::Changes(changes), Some(stored)) => {
                    changes.into_iter().for_each(|change| stored.log.apply(change));
                }
                (Record::Changes(_), None) => return Err(damaged(offset, "the first record has no content")),
            }
            offset = end;
        }
        // The first record was durable before the file had its name.
        let stored = stored.ok_or_else(|| damaged(MAGIC.len(), "the first record is cut off"))?;
        Ok((stored, offset))
    }
}

/// Encoder of changes, which decides what is written, and when.
#[derive(Debug, Default)]
pub struct Records {
    /// Changes that can wait until the next change that must be durable.
    late: Vec<LogChange>,
}

impl Records {
    /// Returns the next write, or `None` if it can wait. `whole` returns the content with these changes; the file is
    /// written `anew` with it if more than the log has changed.
    pub fn next(&mut self, anew: bool, changes: Vec<LogChange>, whole: impl FnOnce() -> Stored) -> Option<Write> {
        if anew || changes.iter().any(|change| matches!(change, LogChange::Snapshot(_))) {
            self.late.clear();
            return Some(Write::Anew(whole().file()));
        }
        self.late.extend(changes);
        if !self.late.iter().any(LogChange::must_be_durable) {
            // Only the last number of decided entries is needed.
            self.late.drain(..self.late.len().saturating_sub(1));
            return None;
        }
        Some(Write::Append(encode(&Record::Changes(std::mem::take(&mut self.late)))))
    }
}

fn encode(record: &Record) -> Vec<u8> {
    // Writing to memory does not fail.
    let body = postcard::to_allocvec(record).unwrap_or_default();
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes();
    let mut bytes = Vec::with_capacity(HEAD + body.len());
    bytes.extend_from_slice(&length);
    bytes.extend_from_slice(&checksum(length, &body));
    bytes.extend_from_slice(&body);
    bytes
}

fn checksum(length: [u8; 4], body: &[u8]) -> [u8; 4] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length);
    hasher.update(body);
    hasher.finalize().to_le_bytes()
}
