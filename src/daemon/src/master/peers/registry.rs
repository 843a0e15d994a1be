//! The registry in the group's log. Writes wait for more than half of the members.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use protos::mesos::internal::Registry;
use store::{RegistryStore, StoreError, Update};

use super::{Job, Peers};

const PLACE: &str = "the group of masters";

/// The registry of the group, taken over by this master.
pub(in super::super) struct PeersRegistry {
    peers: Peers,
    /// The content: no other process writes as long as this one leads.
    entries: BTreeMap<String, Vec<u8>>,
}

/// A write did not come to an end.
#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error("more than half of the masters have not answered within {} ms", .0.as_millis())]
    Late(Duration),
    #[error("this master's member of the group has ended")]
    Ended,
    #[error("another master has taken the registry over")]
    TakenOver(#[from] peers::ChangeError),
}

fn elsewhere(error: WriteError) -> StoreError {
    StoreError::Elsewhere { place: PLACE, source: Box::new(error) }
}

impl PeersRegistry {
    /// The registry that this leading master has taken over. Blocks.
    ///
    /// # Errors
    /// This master's member of the group has ended.
    pub(in super::super) fn open(peers: Peers) -> Result<PeersRegistry, StoreError> {
        let (done, loaded) = mpsc::sync_channel(1);
        peers.jobs.send(Job::Load(done)).map_err(|_| elsewhere(WriteError::Ended))?;
        let entries = loaded.recv().map_err(|_| elsewhere(WriteError::Ended))?;
        Ok(PeersRegistry { peers, entries })
    }
}

impl RegistryStore for PeersRegistry {
    fn load(&mut self) -> Result<Registry, StoreError> {
        let entries = self.entries.iter().map(|(key, value)| (key.as_str(), value.as_slice()));
        store::registry_of(Path::new(PLACE), entries)
    }

    fn commit(&mut self, updates: &[Update]) -> Result<(), StoreError> {
        let change = |update: &Update| (update.key().to_owned(), update.value().map(<[u8]>::to_vec));
        let changes: Vec<_> = updates.iter().map(change).collect();
        let (done, written) = mpsc::sync_channel(1);
        self.peers.jobs.send(Job::Write(changes.clone(), done)).map_err(|_| elsewhere(WriteError::Ended))?;
        match written.recv_timeout(self.peers.limit) {
            Ok(outcome) => outcome.map_err(|error| elsewhere(error.into()))?,
            Err(mpsc::RecvTimeoutError::Timeout) => return Err(elsewhere(WriteError::Late(self.peers.limit))),
            Err(mpsc::RecvTimeoutError::Disconnected) => return Err(elsewhere(WriteError::Ended)),
        }
        for (key, value) in changes {
            match value {
                Some(value) => drop(self.entries.insert(key, value)),
                None => drop(self.entries.remove(&key)),
            }
        }
        Ok(())
    }
}
