//! A master in a group of peers (`--peers`): the flags, and the handle of the thread of this master's member.
//!
//! The crate `peers` decides what members do.

mod adopt;
mod names;
mod registry;
mod thread;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::Context;
use base::Pid;
use bytes::Bytes;
use detector::{DetectionState, Lease};
use peers::{Change, ChangeError, Journal, JournalError, Secret, Settings};
use serde_json::Value;
use tokio::sync::{oneshot, watch};
use wire::libprocess::Network;

use super::registry_file;
use crate::clock::Stopwatch;
use crate::flags::FlagError;
use crate::flags::master::StateFlags;
use crate::secrets;

pub(super) use registry::open as open_registry;

/// libprocess id of the process that receives the members' messages; the name of the messages follows.
pub(super) const PROCESS: &str = "peer";
const MESSAGE: &str = "tepui.internal.PeerMessage";
/// Name of the directory of the journal, below the work directory.
pub(super) const DIRECTORY: &str = "peers";
/// Maximum number of jobs that wait for the thread; further messages are dropped, as if the network had lost them.
const WAITING_MAX: usize = 4096;
/// Time for which a start waits until an earlier process with the same directory has ended.
const LOCK_LIMIT: Duration = Duration::from_secs(10);
/// Shortest and longest lease.
const LEASES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));
/// Time limit for the other masters to elect a new leader when this one ends.
const TRANSFER_LIMIT: Duration = Duration::from_millis(500);

/// The values of the flags for a group of peers.
#[derive(Clone, Debug)]
pub(super) struct GroupFlags {
    addresses: Vec<String>,
    own: Option<String>,
    lease: Duration,
    secret: Option<Secret>,
    work_dir: PathBuf,
    accepted_loss: Option<u64>,
}

/// Reads `--peers` and the flags that depend on it; `None` without it.
///
/// # Errors
/// One of the flags is invalid.
pub(super) fn flags(flags: &StateFlags) -> Result<Option<GroupFlags>, FlagError> {
    const NAME: &str = "peers";
    let refused = |why: String| FlagError::Refused { name: NAME, why };
    let Some(given) = flags.peers.as_deref().map(str::trim).filter(|text| !text.is_empty()) else {
        let alone = [("peer_address", flags.peer_address.is_some()), ("peer_secret", flags.peer_secret.is_some())];
        return match alone.into_iter().find(|(_, given)| *given) {
            Some((name, _)) => Err(FlagError::Refused { name, why: "needs --peers".to_owned() }),
            None => Ok(None),
        };
    };
    if flags.zk.is_some() {
        return Err(refused("excludes --zk: masters elect their leader by themselves or through ZooKeeper".to_owned()));
    }
    if flags.registry != "replicated_log" {
        return Err(refused(format!("needs --registry=replicated_log, not '{}'", flags.registry)));
    }
    let mut addresses = Vec::new();
    for address in given.split(',').map(str::trim) {
        let address = address_of(address).map_err(|why| refused(format!("'{address}' {why}")))?;
        if addresses.contains(&address) {
            return Err(refused(format!("'{address}' is named twice")));
        }
        addresses.push(address);
    }
    if !(3..=peers::MEMBERS_MAX).contains(&addresses.len()) {
        let count = addresses.len();
        return Err(refused(format!("names {count} masters: a group has 3 to {}", peers::MEMBERS_MAX)));
    }
    let (shortest, longest) = LEASES;
    if !(shortest..=longest).contains(&flags.peer_timeout) {
        let why = format!("is between {} ms and {} s", shortest.as_millis(), longest.as_secs());
        return Err(FlagError::Refused { name: "peer_timeout", why });
    }
    let secret = flags.peer_secret.as_deref().map(|path| secrets::read("peer_secret", path)).transpose()?;
    let work_dir = flags.work_dir.as_deref().ok_or(FlagError::Missing { name: "work_dir", why: " with --peers" })?;
    Ok(Some(GroupFlags {
        addresses,
        own: flags.peer_address.clone(),
        lease: flags.peer_timeout,
        secret: secret.map(Secret::new),
        work_dir: work_dir.to_owned(),
        accepted_loss: flags.registry_accept_loss,
    }))
}

/// Checks an address `host:port`, and returns it in the form in which addresses are compared.
pub(super) fn address_of(text: &str) -> Result<String, &'static str> {
    let (host, port) = text.rsplit_once(':').ok_or("has no port: use host:port")?;
    let port: u16 = port.parse().ok().filter(|port| *port != 0).ok_or("has no valid port")?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    if host.is_empty() || !host.chars().all(is_name) {
        return Err("has no valid host name or IPv4 address");
    }
    Ok(format!("{}:{port}", host.to_ascii_lowercase()))
}

impl GroupFlags {
    /// Returns this master's address: `--peer_address`, or the one of `--peers` at which it is advertised.
    fn own(&self, pid: &Pid, hostname: &str) -> Result<String, FlagError> {
        let peers = self.addresses.join(",");
        if let Some(own) = &self.own {
            let own = address_of(own)
                .map_err(|why| FlagError::Refused { name: "peer_address", why: format!("'{own}' {why}") })?;
            return Ok(own);
        }
        let port = pid.address().port();
        let candidates =
            [format!("{}:{port}", pid.address().ip()), format!("{}:{port}", hostname.to_ascii_lowercase())];
        let found = self.addresses.iter().find(|address| candidates.contains(address));
        found.cloned().ok_or_else(|| FlagError::Refused {
            name: "peers",
            why: format!(
                "does not name this master: it is {}, and the peers are {peers}. Add it there, or set --peer_address \
                 to the peer that this master is",
                candidates.join(" or ")
            ),
        })
    }
}

/// The known state of the group, for tasks that wait for a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    known: DetectionState,
    /// Error of the thread, such as that of the journal: this master must end.
    failed: Option<String>,
}

/// A job for the thread of this master's member.
enum Job {
    Message(Bytes),
    Load(mpsc::SyncSender<std::collections::BTreeMap<String, Vec<u8>>>),
    Write(Vec<Change>, mpsc::SyncSender<Result<(), ChangeError>>),
    Change(MembershipChange, oneshot::Sender<Result<(), ChangeError>>),
    Status(oneshot::Sender<Value>),
}

/// A change of the group that an operator asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MembershipChange {
    /// Add the member with this address.
    Add(String),
    /// Remove the member with this address.
    Remove(String),
    /// Transfer the leadership to the member with this address; `None` for any other one.
    TransferLeadership(Option<String>),
}

/// The handle of the thread. The thread ends when the last handle is dropped.
#[derive(Clone)]
pub(super) struct Peers {
    jobs: mpsc::SyncSender<Job>,
    seen: watch::Receiver<Seen>,
    lease: Arc<Lease>,
    /// Time limit for a write.
    limit: Duration,
}

impl Peers {
    /// Opens the journal and starts the thread, in the current runtime. `info` is this master's `MasterInfo` as JSON.
    ///
    /// # Errors
    /// The journal cannot be opened, or the flags do not name this master.
    pub(super) fn start(
        flags: &GroupFlags,
        (pid, hostname): (&Pid, &str),
        info: String,
        network: Network,
        limit: Duration,
    ) -> anyhow::Result<Peers> {
        let address = flags.own(pid, hostname)?;
        let (journal, stored) = open(&flags.work_dir.join(DIRECTORY))?;
        if journal.torn() > 0 {
            tracing::info!(
                "Ignoring {} bytes at the end of the group's journal: a crash has interrupted their write",
                journal.torn()
            );
        }
        let settings = Settings {
            address: address.clone(),
            peers: flags.addresses.clone(),
            lease: flags.lease,
            secret: flags.secret.clone(),
            info: info.into_bytes(),
            registry: match stored.configuration {
                None => adopt::read(&flags.work_dir, flags.accepted_loss)?,
                Some(_) => None,
            },
        };
        let (jobs, todo) = mpsc::sync_channel(WAITING_MAX);
        let (sender, seen) = watch::channel(Seen::default());
        let lease = Arc::new(Lease::new());
        let outgoing = names::Outgoing::new(network, Pid::new(PROCESS, pid.address()));
        tracing::info!("this master is {address} in the group {}", flags.addresses.join(","));
        let file = registry_file::path(&flags.work_dir);
        thread::start((settings, file), (journal, stored), todo, (sender, lease.clone()), outgoing)?;
        Ok(Peers { jobs, seen, lease, limit })
    }

    /// Passes a message for the member to the thread; drops it if too many wait. Returns whether it was accepted.
    pub(super) fn receive(&self, name: &str, body: Bytes) -> bool {
        name == MESSAGE && self.jobs.try_send(Job::Message(body)).is_ok()
    }

    /// Returns what is known of the leader.
    pub(super) fn known(&self) -> DetectionState {
        let seen = self.seen.borrow();
        seen.failed.clone().map_or_else(|| seen.known.clone(), DetectionState::Refused)
    }

    /// Waits until the known state has changed since this returned before.
    pub(super) async fn changed(&mut self) {
        if self.seen.changed().await.is_err() {
            std::future::pending().await
        }
    }

    /// Returns the lease: until its end this master may answer as the leader.
    pub(super) fn lease(&self) -> Arc<Lease> {
        self.lease.clone()
    }

    /// Carries out a change of the group.
    ///
    /// # Errors
    /// The reason why the change is not possible.
    pub(super) async fn change(&self, membership_change: MembershipChange) -> Result<(), ChangeError> {
        let (done, outcome) = oneshot::channel();
        let sent = self.jobs.try_send(Job::Change(membership_change, done));
        match sent {
            Ok(()) => outcome.await.unwrap_or(Err(ChangeError::NotLeading)),
            Err(_) => Err(ChangeError::NotLeading),
        }
    }

    /// Returns the members and their state, for operators; `None` if the thread has ended.
    pub(super) async fn status(&self) -> Option<Value> {
        let (done, status) = oneshot::channel();
        self.jobs.try_send(Job::Status(done)).ok()?;
        status.await.ok()
    }

    /// Transfers the leadership to another member, if this one leads, and waits for that at most for
    /// [`TRANSFER_LIMIT`].
    pub(super) async fn resign(&mut self) {
        if !self.known().leader().is_some_and(|leader| leader.is_own) {
            return;
        }
        if let Err(error) = self.change(MembershipChange::TransferLeadership(None)).await {
            tracing::warn!("leadership cannot be transferred: {error}");
            return;
        }
        if !self.await_successor().await {
            tracing::warn!("no other master leads after {} ms", TRANSFER_LIMIT.as_millis());
        }
    }

    /// Waits until another master leads, at most for [`TRANSFER_LIMIT`]: a process that ends at once loses messages
    /// that tell the others that they may elect another leader. Returns whether another one leads.
    pub(super) async fn await_successor(&mut self) -> bool {
        let followed = async {
            while self.known().leader().is_none_or(|leader| leader.is_own) {
                self.changed().await;
            }
        };
        tokio::time::timeout(TRANSFER_LIMIT, followed).await.is_ok()
    }
}

/// Opens the journal. Waits for an earlier process that is about to end.
#[allow(clippy::disallowed_methods, reason = "a lock cannot be waited for with a timeout")]
fn open(directory: &std::path::Path) -> anyhow::Result<(Journal, peers::Stored)> {
    let began = Stopwatch::start();
    let mut is_logged = false;
    loop {
        match Journal::open(directory, random_disk()) {
            Err(JournalError::Locked(path)) if began.elapsed() < LOCK_LIMIT => {
                if !is_logged {
                    tracing::info!("waiting for another process to release '{}'", path.display());
                    is_logged = true;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            opened => return opened.context("the group's journal cannot be opened"),
        }
    }
}

fn random_disk() -> u64 {
    u64::from_le_bytes(crate::random::bytes()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::MasterFlags;

    fn read(pairs: &[(&str, &str)]) -> Result<Option<GroupFlags>, String> {
        flags(&MasterFlags::with(pairs).state).map_err(|error| error.to_string())
    }

    #[test]
    fn addresses_are_compared_in_one_form() {
        assert_eq!(address_of("Host-1.example:5050").unwrap(), "host-1.example:5050");
        assert_eq!(address_of("10.0.0.1:05050").unwrap(), "10.0.0.1:5050");
        for (text, why) in [
            ("h", "has no port"),
            ("h:0", "no valid port"),
            ("h:x", "no valid port"),
            (":1", "no valid host"),
            ("a b:1", "no valid host"),
            ("[::1]:1", "no valid host"),
        ] {
            assert!(address_of(text).unwrap_err().contains(why), "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        let all = "a:1,b:1,c:1";
        let base = [("peers", all), ("work_dir", "/w")];
        assert!(read(&[]).unwrap().is_none());
        assert_eq!(read(&base).unwrap().unwrap().addresses, ["a:1", "b:1", "c:1"]);
        for (more, said) in [
            (("peers", "a:1,b:1"), "flag '--peers': names 2 masters: a group has 3 to 9"),
            (("peers", "a:1,b:1,a:1"), "flag '--peers': 'a:1' is named twice"),
            (("peers", "a:1,b,c:1"), "flag '--peers': 'b' has no port"),
            (("zk", "zk://h:1/m"), "flag '--peers': excludes --zk"),
            (("registry", "in_memory"), "flag '--peers': needs --registry=replicated_log"),
            (("peer_timeout", "10ms"), "flag '--peer_timeout': is between 100 ms and 60 s"),
        ] {
            let mut pairs: Vec<_> = base.iter().copied().filter(|(name, _)| *name != more.0).collect();
            pairs.push(more);
            let error = read(&pairs).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        assert!(read(&[("peer_address", "a:1")]).unwrap_err().contains("needs --peers"));
        assert!(read(&[("peers", all)]).unwrap_err().contains("'--work_dir' is required with --peers"));
    }

    #[test]
    fn this_master_is_one_of_them() {
        let pid = Pid::new("master", "10.0.0.2:5050".parse().unwrap());
        let own = |peers: &str, more: &[(&str, &str)]| {
            let mut pairs = vec![("peers", peers), ("work_dir", "/w")];
            pairs.extend(more);
            read(&pairs).unwrap().unwrap().own(&pid, "Host2").map_err(|error| error.to_string())
        };
        assert_eq!(own("h1:5050,10.0.0.2:5050,h3:5050", &[]).unwrap(), "10.0.0.2:5050");
        assert_eq!(own("h1:5050,host2:5050,h3:5050", &[]).unwrap(), "host2:5050");
        assert_eq!(own("h1:5050,nat:80,h3:5050", &[("peer_address", "nat:80")]).unwrap(), "nat:80");
        let error = own("h1:5050,host2:5051,h3:5050", &[]).unwrap_err();
        assert!(error.contains("does not name this master: it is 10.0.0.2:5050 or host2:5050"), "{error}");
    }
}
