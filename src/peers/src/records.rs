//! The bytes of a journal: which records a change of the log makes, and what a file of records holds.
//!
//! It opens no file, so that the laboratory's disks have the bytes that real ones have.

use serde::{Deserialize, Serialize};

use crate::log::{Log, LogChange};
use crate::members::{Cluster, Configuration};

/// What a file begins with; the last byte is the version of the format.
const MAGIC: &[u8; 8] = b"tepui-p\x01";
/// Before each record: its length and its checksum.
const HEAD: usize = 8;

/// All that is on a member's disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    /// A random number, not zero: a member with another disk is another member.
    pub disk: u64,
    /// How many times a process has been started with it.
    pub starts: u64,
    /// The group, once it has formed.
    pub cluster: Option<Cluster>,
    /// Its members.
    pub configuration: Option<Configuration>,
    /// The log of this configuration.
    pub log: Log,
}

/// A part of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Record {
    /// Instead of everything.
    Whole(Box<Stored>),
    /// Changes of the log.
    Changes(Vec<LogChange>),
}

/// A file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It is not a journal, or one of a later version.
    #[error("it is not a journal of a group of this version of tepui")]
    Format,
    /// A record has been changed.
    #[error("it is damaged at byte {offset}: {rule}")]
    Damaged {
        /// Where the record begins.
        offset: usize,
        /// What does not hold.
        rule: &'static str,
    },
}

/// What must be durable before anything else is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// These bytes at the end of the file.
    Append(Vec<u8>),
    /// A file of these bytes, in the place of the former one.
    Anew(Vec<u8>),
}

impl Stored {
    /// An empty disk with that number.
    pub fn new(disk: u64) -> Stored {
        Stored { disk, starts: 0, cluster: None, configuration: None, log: Log::default() }
    }

    /// The bytes of a file that holds this and nothing else.
    pub fn file(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(encode(&Record::Whole(Box::new(self.clone()))));
        bytes
    }

    /// The content of a file, and how many of its bytes are whole records.
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

/// Decides what is written, and when.
#[derive(Debug, Default)]
pub struct Records {
    /// Changes that need not be durable until the next ones that must.
    late: Vec<LogChange>,
}

impl Records {
    /// The next write, unless it can wait. `whole` is the content with these changes; the file is written `anew` with
    /// it where more than the log has changed.
    pub fn next(&mut self, anew: bool, changes: Vec<LogChange>, whole: impl FnOnce() -> Stored) -> Option<Write> {
        if anew || changes.iter().any(|change| matches!(change, LogChange::Snapshot(_))) {
            self.late.clear();
            return Some(Write::Anew(whole().file()));
        }
        self.late.extend(changes);
        if !self.late.iter().any(LogChange::must_be_durable) {
            // One number of decided entries is enough.
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
