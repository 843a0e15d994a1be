//! Why a replicated log is refused.

use std::path::PathBuf;

use crate::key::position_of;
use crate::leveldb::{LevelDbError, Torn};
use crate::state::StateError;

/// Why a replicated log is refused.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A directory cannot be read.
    #[error("the replicated log '{}' cannot be read{}", directory.display(), Before(*after))]
    Replica {
        /// The directory.
        directory: PathBuf,
        /// The last position that was read before the fault.
        after: Option<u64>,
        /// What is wrong.
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
        /// The file.
        path: PathBuf,
        /// Where the record begins.
        at: u64,
        /// The bytes from there.
        length: u64,
        /// The last position before it.
        after: Option<u64>,
    },
    /// An entry of a directory is none of a replicated log.
    #[error("the replicated log '{}' is damaged at {place}: {why}", directory.display())]
    Entry {
        /// The directory.
        directory: PathBuf,
        /// The entry: a position, or a key.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// The same directory is given twice.
    #[error("'{}' and '{}' are the same directory: each replica counts once", first.display(), second.display())]
    Twice {
        /// The directory.
        first: PathBuf,
        /// Its other name.
        second: PathBuf,
    },
    /// More directories than a group has masters.
    #[error("{given} replicated logs are given, but {most} is the most")]
    TooMany {
        /// How many there are.
        given: usize,
        /// How many there may be.
        most: usize,
    },
    /// Too few replicas.
    #[error(
        "{voting} of {given} replicas can vote, but a quorum needs {quorum}: what the masters have written last may be in \
         the others{others}"
    )]
    NoQuorum {
        /// Replicas that can vote.
        voting: usize,
        /// Replicas that were read.
        given: usize,
        /// Replicas that are needed.
        quorum: usize,
        /// The state of those that cannot vote.
        others: String,
    },
    /// A position has no value in any replica.
    #[error("position {position} is missing{}: the log goes from position {first} to {last}", In(*replicas))]
    Hole {
        /// The position.
        position: u64,
        /// Where the log begins.
        first: u64,
        /// Where it ends.
        last: u64,
        /// How many replicas there are.
        replicas: usize,
    },
    /// A position has a value that is in no replica known to be chosen.
    #[error(
        "position {position} is written but not learned{}: the masters ended while they wrote it, and only an election \
         decides whether it counts",
        In(*replicas)
    )]
    Unlearned {
        /// The position.
        position: u64,
        /// How many replicas there are.
        replicas: usize,
    },
    /// Two replicas have learned different values.
    #[error(
        "position {position} differs between '{}' and '{}': they are of different groups, or one is damaged",
        one.display(),
        other.display()
    )]
    Differs {
        /// The position.
        position: u64,
        /// A directory.
        one: PathBuf,
        /// The other one.
        other: PathBuf,
    },
    /// A position holds no valid change.
    #[error("position {position} cannot be applied")]
    State {
        /// The position.
        position: u64,
        /// What is wrong with it.
        source: StateError,
    },
    /// No learned position.
    #[error("no position is learned{}: no master has led with this log", In(*replicas))]
    Empty {
        /// How many replicas there are.
        replicas: usize,
    },
    /// No variable `registry`.
    #[error("there is no registry in the log, which ends at position {last}")]
    NoRegistry {
        /// The highest learned position.
        last: u64,
    },
}

impl LogError {
    pub(crate) fn torn(torn: &Torn) -> LogError {
        let after = torn.after.as_deref().and_then(position_of);
        LogError::Torn { path: torn.path.clone(), at: torn.at, length: torn.length, after }
    }
}

/// Says after which position something is.
struct Before(Option<u64>);

impl std::fmt::Display for Before {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(position) => write!(out, " after position {position}"),
            None => Ok(()),
        }
    }
}

/// Says that something holds for all replicas.
struct In(usize);

impl std::fmt::Display for In {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            1 => Ok(()),
            count => write!(out, " in each of the {count} replicas"),
        }
    }
}
