//! A registry that all masters of a group share: its entries are in ZooKeeper or in etcd, beside the candidates.
//!
//! It has a thread of its own, because callers wait for their writes, and a session with ZooKeeper must be served
//! meanwhile.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::mpsc as blocking;
use std::time::Duration;

use detector::etcd::{EtcdEntries, EtcdEntriesError, Service};
use detector::{Entries, EntriesError, SharedEntries, Url};
use store::{FileRegistry, RegistryStore, StoreError};
use tokio::sync::mpsc;

use super::entries_registry::{Change, EntriesRegistry, Writer, entries_error};
use super::registry_file;

/// Time limits for requests to ZooKeeper or etcd.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Time limit for reading all entries at the start.
    pub fetch: Duration,
    /// Time limit for writing a change.
    pub store: Duration,
}

/// A claim of the registry in ZooKeeper or etcd, by which a leading master takes it over.
pub(super) trait Claim: Send + 'static {
    /// Name of the place of the entries, for messages.
    const PLACE: &'static str;
    /// The entries that were taken over.
    type Entries: SharedEntries<Error = Self::Error> + 'static;
    /// The error when entries cannot be read or written.
    type Error: Error + Send + Sync + 'static;

    /// Takes the entries over and reads them.
    ///
    /// # Errors
    /// The place refuses, or does not answer within `limit`.
    async fn open(self, limit: Duration) -> Result<Self::Entries, Self::Error>;
}

/// A claim of entries in ZooKeeper.
#[derive(Debug)]
pub(super) struct ZooKeeperClaim {
    pub url: Url,
    pub session_timeout: Duration,
    /// Name of the leading master's node in the group.
    pub member: String,
    /// Pid of the leading master.
    pub owner: String,
}

impl Claim for ZooKeeperClaim {
    const PLACE: &'static str = "ZooKeeper";
    type Entries = Entries;
    type Error = EntriesError;

    async fn open(self, limit: Duration) -> Result<Entries, EntriesError> {
        Entries::open(&self.url, self.session_timeout, &self.member, &self.owner, limit).await
    }
}

/// A claim of entries in etcd.
#[derive(Debug)]
pub(super) struct EtcdClaim {
    pub service: Service,
    /// Term of the leading master.
    pub member: String,
    /// Pid of the leading master.
    pub owner: String,
}

impl Claim for EtcdClaim {
    const PLACE: &'static str = "etcd";
    type Entries = EtcdEntries;
    type Error = EtcdEntriesError;

    async fn open(self, limit: Duration) -> Result<EtcdEntries, EtcdEntriesError> {
        EtcdEntries::open(self.service, &self.member, &self.owner, limit).await
    }
}

/// A writer that passes changes to the thread of the registry.
pub(super) struct GroupWriter<C: Claim>(mpsc::UnboundedSender<Job<C::Error>>);

type Fetched<E> = Result<BTreeMap<String, Vec<u8>>, E>;

/// Changes to write, and the sender of the result to the caller.
struct Job<E> {
    changes: Vec<Change>,
    done: blocking::SyncSender<Result<(), E>>,
}

/// Takes the group's registry over and reads it. Blocks.
///
/// # Errors
/// The place refuses, or does not answer in time.
pub(super) fn open<C: Claim>(claim: C, limits: Limits) -> Result<EntriesRegistry<GroupWriter<C>>, StoreError> {
    let (jobs, todo) = mpsc::unbounded_channel();
    let (fetched, seen) = blocking::sync_channel(1);
    let serve = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => runtime.block_on(serve(claim, limits, todo, fetched)),
            Err(error) => tracing::warn!("the registry's reactor cannot be started: {error}"),
        }
    };
    let failed = |error: Box<dyn Error + Send + Sync>| entries_error::<GroupWriter<C>>(error);
    let thread = std::thread::Builder::new().name("registry".to_owned());
    thread.spawn(serve).map_err(|error| failed(error.into()))?;
    let entries = seen.recv().map_err(|error| failed(error.into()))?.map_err(|error| failed(error.into()))?;
    Ok(EntriesRegistry::new(GroupWriter(jobs), entries))
}

impl<C: Claim> Writer for GroupWriter<C> {
    const PLACE: &'static str = C::PLACE;

    fn write(&mut self, changes: Vec<Change>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let (done, written) = blocking::sync_channel(1);
        self.0.send(Job { changes, done }).map_err(|_| blocking::RecvError)?;
        Ok(written.recv()??)
    }
}

/// Writes the changes of jobs until there are no more callers.
async fn serve<C: Claim>(
    claim: C,
    limits: Limits,
    mut todo: mpsc::UnboundedReceiver<Job<C::Error>>,
    fetched: blocking::SyncSender<Fetched<C::Error>>,
) {
    let mut entries = match claim.open(limits.fetch).await {
        Ok(entries) => entries,
        Err(error) => {
            // A caller that has gone needs no error.
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

/// Copies the registry file of a master without a group to a group without a registry. The file is renamed, so that it
/// is not taken for the registry later.
///
/// # Errors
/// One of them cannot be read or written.
pub(super) fn adopt(
    group: &mut dyn RegistryStore,
    place: &str,
    file: &Path,
    accepted: Option<u64>,
) -> anyhow::Result<()> {
    let kept = registry_file::kept(file);
    // The registry of a group that has had a leader names a master: each leader writes its own entry before all others.
    if group.load()?.master.is_some() || !FileRegistry::is_at(file) {
        return Ok(());
    }
    // Otherwise a crash has interrupted the renaming below, and the entries are copied already.
    if file.exists() || !kept.exists() {
        // Without the entry of a master the next leader copies again after an interruption.
        group.commit(&registry_file::left(file, accepted)?)?;
    }
    registry_file::put_away(file, place)
}

#[cfg(test)]
mod tests {
    use protos::mesos;
    use protos::mesos::internal::Registry;
    use store::{MemoryRegistry, Update};

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
        adopt(&mut group, "ZooKeeper", &path, None).unwrap();
        assert_eq!(group.load().unwrap(), MemoryRegistry::default().load().unwrap(), "there is no file");
        FileRegistry::open(&path, None).unwrap().commit(&store::changes(&Registry::default(), &left)).unwrap();

        let mut used = MemoryRegistry::default();
        let own = Registry { master: left.master.clone(), ..Registry::default() };
        used.commit(&store::changes(&Registry::default(), &own)).unwrap();
        adopt(&mut used, "ZooKeeper", &path, None).unwrap();
        assert!(used.load().unwrap().weights.is_empty() && path.exists(), "the group has a registry");

        adopt(&mut group, "ZooKeeper", &path, None).unwrap();
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
        let error = adopt(&mut group, "ZooKeeper", &path, None).unwrap_err();
        assert!(error.to_string().contains("start once with --registry_accept_loss=1"), "{error}");
        assert!(FileRegistry::is_at(&path));
        adopt(&mut group, "ZooKeeper", &path, Some(1)).unwrap();
        assert!(!FileRegistry::is_at(&path));
    }

    #[test]
    fn a_renaming_that_was_interrupted_is_finished() {
        let directory = tempfile::tempdir().unwrap();
        let (path, moved) = (directory.path().join("registry.redb"), directory.path().join("registry.moved"));
        drop(FileRegistry::open(&path, None).unwrap());
        std::fs::rename(&path, &moved).unwrap();
        adopt(&mut MemoryRegistry::default(), "ZooKeeper", &path, None).unwrap();
        assert!(!FileRegistry::is_at(&path));
        FileRegistry::open(&moved, None).unwrap();
    }
}
