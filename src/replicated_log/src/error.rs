//! Errors of reading a replicated log.

use std::path::PathBuf;

use crate::key::position_of;
use crate::leveldb::{LevelDbError, Torn};
use crate::state::StateError;

/// Reasons why a replicated log is refused.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A directory cannot be read.
    #[error("the replicated log '{}' cannot be read{}", directory.display(), Before(*after))]
    Replica {
        /// Path of the directory.
        directory: PathBuf,
        /// Last position that was read before the fault.
        after: Option<u64>,
        /// Error of the database.
        source: LevelDbError,
    },
    /// A file ends within a record.
    #[error(
        "'{}' ends within a record{}: the {length} bytes from byte {at} on are an unfinished write, or what follows was \
         lost",
        path.display(),
        Before(*after)
    )]
    Torn {
        /// Path of the file.
        path: PathBuf,
        /// Offset of the record in bytes.
        at: u64,
        /// Number of bytes from there to the end of the file.
        length: u64,
        /// Last position before the record.
        after: Option<u64>,
    },
    /// An entry of a directory does not belong to a replicated log.
    #[error("the replicated log '{}' is damaged at {place}: {why}", directory.display())]
    Entry {
        /// Path of the directory.
        directory: PathBuf,
        /// Position or key of the entry.
        place: String,
        /// Rule that the entry breaks.
        why: String,
    },
    /// The same directory is given twice.
    #[error("'{}' and '{}' are the same directory: each replica counts once", first.display(), second.display())]
    Twice {
        /// First name of the directory.
        first: PathBuf,
        /// Second name of the directory.
        second: PathBuf,
    },
    /// More directories are given than a group has masters.
    #[error("{given} replicated logs are given, but {most} is the most")]
    TooMany {
        /// Number of given directories.
        given: usize,
        /// Maximum number of directories.
        most: usize,
    },
    /// Too few replicas can vote.
    #[error(
        "{voting} of {given} replicas can vote, but a quorum needs {quorum}: what the masters have written last may be in \
         the others{others}"
    )]
    NoQuorum {
        /// Number of replicas that can vote.
        voting: usize,
        /// Number of replicas that were read.
        given: usize,
        /// Number of replicas that a quorum needs.
        quorum: usize,
        /// State of the replicas that cannot vote.
        others: String,
    },
    /// A position has no value in any replica.
    #[error("position {position} is missing{}: the log goes from position {first} to {last}", In(*replicas))]
    Hole {
        /// Position without a value.
        position: u64,
        /// First position of the log.
        first: u64,
        /// Last position of the log.
        last: u64,
        /// Number of replicas.
        replicas: usize,
    },
    /// A position has a value, but no replica has learned that it was chosen.
    #[error(
        "position {position} is written but not learned{}: the masters ended while they wrote it, and only an election \
         decides whether it counts",
        In(*replicas)
    )]
    Unlearned {
        /// Position that is not learned.
        position: u64,
        /// Number of replicas.
        replicas: usize,
    },
    /// Two replicas have learned different values.
    #[error(
        "position {position} differs between '{}' and '{}': they are of different groups, or one is damaged",
        one.display(),
        other.display()
    )]
    Differs {
        /// Position at which the values differ.
        position: u64,
        /// Directory of one replica.
        one: PathBuf,
        /// Directory of the other replica.
        other: PathBuf,
    },
    /// A position holds no valid change.
    #[error("position {position} cannot be applied")]
    State {
        /// Position of the change.
        position: u64,
        /// Rule that the change breaks.
        source: StateError,
    },
    /// No replica has a learned position.
    #[error("no position is learned{}: no master has led with this log", In(*replicas))]
    Empty {
        /// Number of replicas.
        replicas: usize,
    },
    /// The log has no variable `registry`.
    #[error("there is no registry in the log, which ends at position {last}")]
    NoRegistry {
        /// Highest learned position.
        last: u64,
    },
}

impl LogError {
    pub(crate) fn torn(torn: &Torn) -> LogError {
        let after = torn.after.as_deref().and_then(position_of);
        LogError::Torn { path: torn.path.clone(), at: torn.at, length: torn.length, after }
    }
}

/// `Display` of the position after which a fault is, if it is known.
struct Before(Option<u64>);

impl std::fmt::Display for Before {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(position) => write!(out, " after position {position}"),
            None => Ok(()),
        }
    }
}

/// `Display` of the number of replicas, if there are several.
struct In(usize);

impl std::fmt::Display for In {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            1 => Ok(()),
            count => write!(out, " in each of the {count} replicas"),
        }
    }
}
