//! A registry that all masters of a group share: its entries are in ZooKeeper, beside the candidates.
//!
//! It has a thread of its own, because callers wait for their writes, and a session with ZooKeeper must be served
//! meanwhile.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc as blocking;
use std::time::Duration;

use anyhow::Context;
use detector::{Entries, EntriesError, Url};
use protos::mesos::internal::Registry;
use store::{FileRegistry, RegistryStore, StoreError, Update};
use tokio::sync::mpsc;

use super::registry_file;

const PLACE: &str = "ZooKeeper";

/// How long to wait for ZooKeeper.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// For all entries, at the start.
    pub fetch: Duration,
    /// For a change.
    pub store: Duration,
}

/// Who takes a registry over, and where.
#[derive(Debug)]
pub(super) struct Claim {
    pub url: Url,
    pub session_timeout: Duration,
    /// The name of the leading master's node in the group.
    pub member: String,
    /// Its pid.
    pub owner: String,
}

/// A registry in ZooKeeper, taken over by this master.
pub(super) struct GroupRegistry {
    jobs: mpsc::UnboundedSender<Job>,
    /// The content of ZooKeeper: no other process writes there.
    entries: BTreeMap<String, Vec<u8>>,
}

type Change = (String, Option<Vec<u8>>);
type Fetched = Result<BTreeMap<String, Vec<u8>>, EntriesError>;

/// A write, and its caller.
struct Job {
    changes: Vec<Change>,
    done: blocking::SyncSender<Result<(), EntriesError>>,
}

impl GroupRegistry {
    /// Takes the group's registry over and reads it. Blocks.
    ///
    /// # Errors
    /// ZooKeeper refuses, or does not answer in time.
    pub(super) fn open(claim: Claim, limits: Limits) -> Result<GroupRegistry, StoreError> {
        let (jobs, todo) = mpsc::unbounded_channel();
        let (fetched, seen) = blocking::sync_channel(1);
        let serve = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(serve(claim, limits, todo, fetched)),
                Err(error) => tracing::warn!("the registry's reactor cannot be started: {error}"),
            }
        };
        std::thread::Builder::new().name("registry".to_owned()).spawn(serve).map_err(elsewhere)?;
        let entries = seen.recv().map_err(elsewhere)?.map_err(elsewhere)?;
        Ok(GroupRegistry { jobs, entries })
    }
}

fn elsewhere(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Elsewhere { place: PLACE, source: Box::new(error) }
}

/// Writes until there are no callers any more.
async fn serve(
    claim: Claim,
    limits: Limits,
    mut todo: mpsc::UnboundedReceiver<Job>,
    fetched: blocking::SyncSender<Fetched>,
) {
    let Claim { url, session_timeout, member, owner } = claim;
    let mut entries = match Entries::open(&url, session_timeout, &member, &owner, limits.fetch).await {
        Ok(entries) => entries,
        Err(error) => {
            // A missing caller needs no error.
            let _ = fetched.send(Err(error));
            return;
        }
    };
    let _ = fetched.send(Ok(entries.all().clone()));
    while let Some(job) = todo.recv().await {
        let written = entries.write(&job.changes, limits.store).await;
        let _ = job.done.send(written);
    }
}

impl RegistryStore for GroupRegistry {
    fn load(&mut self) -> Result<Registry, StoreError> {
        let entries = self.entries.iter().map(|(key, value)| (key.as_str(), value.as_slice()));
        store::registry_of(Path::new(PLACE), entries)
    }

    fn commit(&mut self, updates: &[Update]) -> Result<(), StoreError> {
        let change = |update: &Update| (update.key().to_owned(), update.value().map(<[u8]>::to_vec));
        let changes: Vec<Change> = updates.iter().map(change).collect();
        let (done, written) = blocking::sync_channel(1);
        self.jobs.send(Job { changes, done }).map_err(|_| elsewhere(blocking::RecvError))?;
        written.recv().map_err(elsewhere)?.map_err(elsewhere)?;
        for update in updates {
            match update.value() {
                Some(value) => drop(self.entries.insert(update.key().to_owned(), value.to_vec())),
                None => drop(self.entries.remove(update.key())),
            }
        }
        Ok(())
    }
}

/// Copies the registry file of a master without a group to a group without a registry. The file is renamed, so that it
/// is not taken for the registry later.
///
/// # Errors
/// One of them cannot be read or written.
pub(super) fn adopt(group: &mut dyn RegistryStore, file: &Path, accepted: Option<u64>) -> anyhow::Result<()> {
    let kept = file.with_extension("moved");
    // Each leader writes its own entry before it does anything else.
    if group.load()?.master.is_some() || !FileRegistry::is_at(file) {
        return Ok(());
    }
    // Otherwise a crash has interrupted the renaming below.
    if file.exists() || !kept.exists() {
        let mut left = registry_file::open(file, accepted)?.load().context("the registry's file")?;
        // Without that entry the next leader starts again after an interruption.
        left.master = None;
        group.commit(&store::changes(&Registry::default(), &left))?;
    }
    FileRegistry::rename(file, &kept)?;
    tracing::info!(
        "the registry of {} is in {PLACE} from now on; what was there is kept in {}",
        file.display(),
        kept.display()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use protos::mesos;
    use store::MemoryRegistry;

    use super::*;

    #[test]
    fn a_file_is_adopted_by_a_group_without_a_registry() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("registry.redb");
        let master = mesos::internal::registry::Master { info: mesos::MasterInfo::default() };
        let weights =
            mesos::internal::registry::Weight { info: mesos::WeightInfo { role: Some("r".into()), weight: 2.0 } };
        let left = Registry { master: Some(master), weights: vec![weights], ..Registry::default() };
        let mut group = MemoryRegistry::default();
        adopt(&mut group, &path, None).unwrap();
        assert_eq!(group.load().unwrap(), MemoryRegistry::default().load().unwrap(), "there is no file");
        FileRegistry::open(&path, None).unwrap().commit(&store::changes(&Registry::default(), &left)).unwrap();

        let mut used = MemoryRegistry::default();
        let own = Registry { master: left.master.clone(), ..Registry::default() };
        used.commit(&store::changes(&Registry::default(), &own)).unwrap();
        adopt(&mut used, &path, None).unwrap();
        assert!(used.load().unwrap().weights.is_empty() && path.exists(), "the group has a registry");

        adopt(&mut group, &path, None).unwrap();
        let adopted = group.load().unwrap();
        assert_eq!((adopted.weights, adopted.master), (left.weights, None));
        assert!(!FileRegistry::is_at(&path) && directory.path().join("registry.moved").exists());
    }

    #[test]
    fn a_file_that_has_lost_commits_is_not_adopted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("registry.redb");
        let weight =
            mesos::internal::registry::Weight { info: mesos::WeightInfo { role: Some("r".into()), weight: 2.0 } };
        FileRegistry::open(&path, None).unwrap().commit(&[Update::weight(&weight)]).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut group = MemoryRegistry::default();
        let error = adopt(&mut group, &path, None).unwrap_err();
        assert!(error.to_string().contains("start once with --registry_accept_loss=1"), "{error}");
        assert!(FileRegistry::is_at(&path));
        adopt(&mut group, &path, Some(1)).unwrap();
        assert!(!FileRegistry::is_at(&path));
    }

    #[test]
    fn a_renaming_that_was_interrupted_is_finished() {
        let directory = tempfile::tempdir().unwrap();
        let (path, moved) = (directory.path().join("registry.redb"), directory.path().join("registry.moved"));
        drop(FileRegistry::open(&path, None).unwrap());
        std::fs::rename(&path, &moved).unwrap();
        adopt(&mut MemoryRegistry::default(), &path, None).unwrap();
        assert!(!FileRegistry::is_at(&path));
        FileRegistry::open(&moved, None).unwrap();
    }
}
