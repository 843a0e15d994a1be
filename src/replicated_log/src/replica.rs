//! One replica of the log: the content of a LevelDB directory for each position.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use prost::Message;

use crate::ReplicaState;
use crate::error::LogError;
use crate::key::{METADATA, number_of, position_of};
use crate::leveldb::{self, LevelDbError, Torn};
use crate::log::Value;
use crate::messages::{Action, ActionType, Metadata, Record, RecordType, Status};

/// State of a position in a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// A proposal is promised, and no value is written.
    Promised,
    /// A value is written. Whether a quorum has it is not known.
    Written,
    /// A value is written, and a quorum has it.
    Learned(Value),
}

/// A replica, as read from its directory.
#[derive(Debug)]
pub(crate) struct Replica {
    pub(crate) directory: PathBuf,
    /// Device number and inode of the directory.
    pub(crate) identity: (u64, u64),
    pub(crate) status: Status,
    pub(crate) slots: BTreeMap<u64, Slot>,
    pub(crate) torn: Vec<Torn>,
}

impl Replica {
    /// Reads a directory.
    ///
    /// # Errors
    /// It cannot be read, or its content is not a replicated log.
    pub(crate) fn read(directory: &Path) -> Result<Replica, LogError> {
        let unreadable = |source: LevelDbError| {
            let after = match &source {
                LevelDbError::Damaged { after, .. } => after.as_deref().and_then(position_of),
                _ => None,
            };
            LogError::Replica { directory: directory.to_owned(), after, source }
        };
        let metadata = fs::metadata(directory)
            .map_err(|source| unreadable(LevelDbError::Io { action: "read", path: directory.to_owned(), source }))?;
        let database = leveldb::read(directory).map_err(unreadable)?;
        let mut status = None;
        let mut slots = BTreeMap::new();
        for (key, value) in database.entries {
            let fault = |why: &str| LogError::Entry {
                directory: directory.to_owned(),
                place: match position_of(&key) {
                    Some(position) => format!("position {position}"),
                    None => format!("key '{}'", String::from_utf8_lossy(&key)),
                },
                why: why.to_owned(),
            };
            match number_of(&key).ok_or_else(|| fault("it is not a position"))? {
                METADATA => status = Some(status_of(&value).ok_or_else(|| fault("it is not metadata"))?),
                number => {
                    let position = number - 1;
                    slots.insert(position, slot(position, &value).map_err(fault)?);
                }
            }
        }
        Ok(Replica {
            directory: directory.to_owned(),
            identity: (metadata.dev(), metadata.ino()),
            // A replica writes its status before anything else.
            status: status.unwrap_or(Status::Empty),
            slots,
            torn: database.torn,
        })
    }

    pub(crate) fn state(&self) -> ReplicaState {
        let learned = self.slots.iter().rev().find(|(_, slot)| matches!(slot, Slot::Learned(_)));
        ReplicaState {
            directory: self.directory.clone(),
            status: self.status,
            last_learned: learned.map(|(position, _)| *position),
            torn: self.torn.clone(),
        }
    }
}

fn status_of(value: &[u8]) -> Option<Status> {
    let record = Record::decode(value).ok().filter(|record| record.r#type == Some(RecordType::Metadata as i32))?;
    let Metadata { status, promised } = record.metadata?;
    promised?;
    Status::try_from(status?).ok()
}

/// Decodes the record of a position.
fn slot(position: u64, value: &[u8]) -> Result<Slot, &'static str> {
    let record = Record::decode(value).map_err(|_| "it is not a record")?;
    let action = match (record.r#type.and_then(|number| RecordType::try_from(number).ok()), record.action) {
        (Some(RecordType::Action), Some(action)) => action,
        _ => return Err("it is not an action"),
    };
    if action.position != Some(position) {
        return Err("it is the action of another position");
    }
    let Action { promised: Some(_), performed, learned, .. } = action else {
        return Err("it has no promise");
    };
    match (performed, learned.unwrap_or_default()) {
        (None, true) => Err("it is learned but not written"),
        (None, false) => Ok(Slot::Promised),
        // The value must be valid, too, although it is not used.
        (Some(_), false) => written(action).map(|_| Slot::Written),
        (Some(_), true) => written(action).map(Slot::Learned),
    }
}

fn written(action: Action) -> Result<Value, &'static str> {
    match action.r#type.and_then(|number| ActionType::try_from(number).ok()) {
        Some(ActionType::Nop) => {
            let is_tombstone = action.nop.and_then(|nop| nop.tombstone).unwrap_or_default();
            Ok(if is_tombstone { Value::Tombstone } else { Value::Nop })
        }
        Some(ActionType::Append) => {
            let bytes = action.append.and_then(|append| append.bytes);
            bytes.map(Value::Append).ok_or("its value is missing")
        }
        Some(ActionType::Truncate) => {
            let to = action.truncate.and_then(|truncate| truncate.to);
            to.map(Value::Truncate).ok_or("its value is missing")
        }
        None => Err("its kind is unknown"),
    }
}
