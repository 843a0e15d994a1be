//! The registry in the group's log. Writes wait for more than half of the members.

use std::sync::mpsc;
use std::time::Duration;

use store::StoreError;

use super::super::entries_registry::{Change, EntriesRegistry, Writer, entries_error};
use super::{Job, Peers};

pub(super) const PLACE: &str = "the group of masters";

/// The error when a write was not completed.
#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error("more than half of the masters have not answered within {} ms", .0.as_millis())]
    Late(Duration),
    #[error("this master's member of the group has stopped")]
    Ended,
    #[error("another master has taken the registry over")]
    TakenOver(#[from] peers::ChangeError),
}

/// Opens the registry that this leading master has taken over. Blocks.
///
/// # Errors
/// This master's member of the group has ended.
pub(in super::super) fn open(peers: Peers) -> Result<EntriesRegistry<Peers>, StoreError> {
    let (done, loaded) = mpsc::sync_channel(1);
    let ended = || entries_error::<Peers>(WriteError::Ended);
    peers.jobs.send(Job::Load(done)).map_err(|_| ended())?;
    let entries = loaded.recv().map_err(|_| ended())?;
    Ok(EntriesRegistry::new(peers, entries))
}

impl Writer for Peers {
    const PLACE: &'static str = PLACE;

    fn write(&mut self, changes: Vec<Change>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let (done, written) = mpsc::sync_channel(1);
        self.jobs.send(Job::Write(changes, done)).map_err(|_| WriteError::Ended)?;
        match written.recv_timeout(self.limit) {
            Ok(outcome) => Ok(outcome.map_err(WriteError::from)?),
            Err(mpsc::RecvTimeoutError::Timeout) => Err(WriteError::Late(self.limit).into()),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(WriteError::Ended.into()),
        }
    }
}
