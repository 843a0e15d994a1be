//! Reads the registry from the replicated log that Mesos masters keep in `<work_dir>/replicated_log`.
//!
//! It reads LevelDB directories, joins what the replicas of several masters have learned, and replays the changes of
//! the state store. It never writes, and refuses a log that is damaged or unfinished, with the position and the reason.
//! It takes no part in elections and contacts no replica.
#![forbid(unsafe_code)]

mod error;
mod key;
mod leveldb;
mod log;
mod messages;
mod quorum;
mod replica;
mod state;
mod svndiff;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use protos::mesos::internal::Registry;

pub use error::LogError;
pub use leveldb::{LevelDbError, Torn};
pub use messages::Status;
pub use state::StateError;
pub use svndiff::DiffError;

use replica::Replica;

/// Name of the registry in the state store.
const REGISTRY: &str = "registry";
/// Maximum number of directories that are read together.
const REPLICAS_MAX: usize = 101;

/// Options of reading a log.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Number of replicas that are needed, as the masters' flag `--quorum`. `None` for a majority of the given ones.
    pub quorum: Option<usize>,
    /// Whether a file may end within a record, which a master leaves that exits while it writes. LevelDB ignores such a
    /// record.
    pub accepts_torn: bool,
}

/// Content of a replicated log.
#[derive(Debug)]
pub struct Recovered {
    /// The registry that the log results in.
    pub registry: Registry,
    /// Position that wrote the registry.
    pub written_at: u64,
    /// Highest learned position of all replicas.
    pub last: u64,
    /// States of the directories, in the order in which they were given.
    pub replicas: Vec<ReplicaState>,
    /// Names of other variables of the state store, which masters do not use.
    pub others: Vec<String>,
}

/// State of the replica in one directory.
#[derive(Debug)]
pub struct ReplicaState {
    /// Path of the directory.
    pub directory: PathBuf,
    /// Status of the replica: only a voting one counts for a quorum.
    pub status: Status,
    /// Highest learned position of the replica; `None` without any.
    pub last_learned: Option<u64>,
    /// Unfinished records at the ends of the replica's files, which were ignored.
    pub torn: Vec<Torn>,
}

/// Returns whether there is a replicated log at `directory`, or the remains of one.
pub fn is_at(directory: &Path) -> bool {
    directory.join("CURRENT").exists()
        || std::fs::read_dir(directory).is_ok_and(|entries| {
            entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("MANIFEST-"))
        })
}

/// Reads the logs of one or several masters of a group, and the registry in them.
///
/// # Errors
/// A directory cannot be read, is damaged or in use; there are too few for a quorum; a position is missing, not learned
/// or differs between them; there is no registry.
pub fn read(directories: &[PathBuf], options: Options) -> Result<Recovered, LogError> {
    if directories.len() > REPLICAS_MAX {
        return Err(LogError::TooMany { given: directories.len(), most: REPLICAS_MAX });
    }
    let mut replicas: Vec<Replica> = Vec::with_capacity(directories.len());
    for directory in directories {
        let replica = Replica::read(directory)?;
        if let Some(same) = replicas.iter().find(|other| other.identity == replica.identity) {
            return Err(LogError::Twice { first: same.directory.clone(), second: replica.directory });
        }
        if let (Some(torn), false) = (replica.torn.first(), options.accepts_torn) {
            return Err(LogError::torn(torn));
        }
        replicas.push(replica);
    }
    let states = replicas.iter().map(Replica::state).collect();
    let log = quorum::join(replicas, options.quorum)?;
    let last = log.last;
    let mut variables = state::replay(log).map_err(|(position, source)| LogError::State { position, source })?;
    let written = variables.remove(REGISTRY).ok_or(LogError::NoRegistry { last })?;
    let fault = |source| LogError::State { position: written.position, source };
    let registry: Registry = protos::decode(&written.value).map_err(|source| fault(StateError::NoRegistry(source)))?;
    let understood = prost::Message::encoded_len(&registry);
    if understood != written.value.len() {
        let (total, other) = (written.value.len(), written.value.len().abs_diff(understood));
        return Err(fault(StateError::Unknown { total, other }));
    }
    let others = variables.into_keys().collect();
    Ok(Recovered { registry, written_at: written.position, last, replicas: states, others })
}
