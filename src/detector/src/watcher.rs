//! Watches a group in ZooKeeper over all failures, until it is dropped.

use std::sync::Arc;
use std::time::Duration;

use base::Backoff;
use tokio::sync::watch;
use tokio::time::Instant;
use zookeeper_client::{Client, Error, OneshotWatcher};

use crate::Url;
use crate::candidate;
use crate::detection::{DetectionState, Detector, Leader, tell};
use crate::lease::Lease;
use crate::member::{DetectError, first};
use crate::session::{Session, is_lost};

/// The first and the longest wait after a failure.
const WAITS: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));
/// The wait after a session that is over.
const SOON: Duration = Duration::from_millis(200);
/// Number of signs of life that a candidate requests within the timeout of a session.
const SIGNS: u32 = 10;

impl Detector {
    /// Starts to watch a group. `session_timeout` is requested; the servers may set another one. `seed` is for the
    /// jitter of waits. Requires a runtime.
    pub fn start(url: Url, session_timeout: Duration, seed: u64) -> Detector {
        Detector::run(url, session_timeout, seed, None)
    }

    /// Starts to watch a group as a candidate: enters it with `info`, a MasterInfo in JSON, and again whenever its node
    /// is lost.
    pub fn contend(url: Url, session_timeout: Duration, seed: u64, info: String) -> Detector {
        Detector::run(url, session_timeout, seed, Some(info))
    }

    fn run(url: Url, session_timeout: Duration, seed: u64, info: Option<String>) -> Detector {
        let (sender, known) = watch::channel(DetectionState::Unknown);
        let lease = Arc::new(Lease::new());
        let watcher =
            Watcher { url, session_timeout, seed, info, sender, lease: lease.clone(), last_logged: String::new() };
        let task = tokio::spawn(watcher.run()).abort_handle();
        Detector { known, lease, recheck_leader: Arc::default(), no_leader_reason: Arc::default(), task }
    }
}

/// State of a detector's task.
struct Watcher {
    url: Url,
    session_timeout: Duration,
    seed: u64,
    /// MasterInfo of the candidate; `None` if it only watches.
    info: Option<String>,
    sender: watch::Sender<DetectionState>,
    lease: Arc<Lease>,
    /// Error that was reported last.
    last_logged: String,
}

impl Watcher {
    /// Runs one session after the other. An error is reported once, until it is over or another occurs.
    async fn run(mut self) {
        let mut backoff = Backoff::new(WAITS.0, WAITS.1, self.seed);
        let mut soon = Backoff::new(SOON, SOON, self.seed);
        let servers = self.url.servers().to_owned();
        loop {
            let (error, words) = match self.session(&mut backoff).await {
                Ok(error) => {
                    let words = format!("ZooKeeper at {servers} names no leading master: {error}; trying again");
                    (error, words)
                }
                Err(DetectError::Refused(why)) => return tell(&self.sender, DetectionState::Refused(why)),
                Err(error) => {
                    let words = format!("no session with ZooKeeper at {servers}: {error}; trying again");
                    (error, words)
                }
            };
            tell(&self.sender, DetectionState::Unknown);
            self.once(words);
            // If no session could be opened, that was tried for the timeout of one already.
            let is_over = match &error {
                DetectError::Away(_) => true,
                DetectError::ZooKeeper(error) => is_lost(error),
                _ => false,
            };
            tokio::time::sleep(if is_over { soon.next_wait() } else { backoff.next_wait() }).await;
        }
    }

    /// Runs one session from its beginning to its end. Returns the reason for the end.
    ///
    /// # Errors
    /// The reason why there was no session.
    async fn session(&mut self, backoff: &mut Backoff) -> Result<DetectError, DetectError> {
        let asked = Instant::now();
        let session = Session::open(&self.url, self.session_timeout, self.seed).await?;
        self.lease.extend(asked, session.timeout());
        let own = match self.enter(&session).await {
            Ok(own) => own,
            Err(error @ (Error::NoAuth | Error::AuthFailed | Error::InvalidAcl)) => {
                let (servers, path) = (self.url.servers(), self.url.path());
                let why = format!("ZooKeeper at {servers} denies access to this master at {path}: {error}");
                return Err(DetectError::Refused(why));
            }
            Err(error) => return Ok(error.into()),
        };
        Ok(self.watch(session, own, backoff).await)
    }

    /// Enters the group as a candidate. After an error the caller gives up the session, and with it a node that may
    /// have been created.
    async fn enter(&self, session: &Session) -> Result<Option<String>, Error> {
        match &self.info {
            Some(info) => candidate::enter(&session.client, &self.url, info).await.map(Some),
            None => Ok(None),
        }
    }

    /// Reports every change, until the session ends. Returns the reason for the end.
    async fn watch(&mut self, mut session: Session, own: Option<String>, backoff: &mut Backoff) -> DetectError {
        let limit = session.timeout();
        loop {
            let group = Group { session: &session, path: self.url.path(), own: own.as_deref(), sender: &self.sender };
            let ended = tokio::select! {
                error = group.report_changes(backoff, &mut self.last_logged) => error,
                ended = session.disconnected() => ended.err().unwrap_or(Error::ConnectionLoss).into(),
                () = group.renew_lease(&self.lease) => DetectError::Away(limit),
            };
            match ended {
                DetectError::ZooKeeper(error) if is_lost(&error) && error != Error::SessionExpired => {
                    tracing::info!("the connection to ZooKeeper is lost: {error}");
                }
                other => return other,
            }
            // A candidate must know that its session lasts; all others may assume it for its timeout.
            let over = async {
                match own {
                    Some(_) => self.lease.over().await,
                    None => tokio::time::sleep(limit).await,
                }
            };
            let asked = Instant::now();
            session = tokio::select! {
                resumed = session.resume(&self.url, self.seed) => match resumed {
                    Ok(session) => session,
                    Err(error) => return error.into(),
                },
                () = over => return DetectError::Away(limit),
            };
            self.lease.extend(asked, limit);
            tracing::info!("ZooKeeper is connected again, within the session timeout");
        }
    }

    /// Reports an error unless it was the last one reported.
    fn once(&mut self, words: String) {
        if self.last_logged != words {
            tracing::warn!("{words}");
            self.last_logged = words;
        }
    }
}

/// A group, as seen over one connection.
struct Group<'a> {
    session: &'a Session,
    path: &'a str,
    /// Name of this candidate's node.
    own: Option<&'a str>,
    sender: &'a watch::Sender<DetectionState>,
}

impl Group<'_> {
    /// Reports every change. Returns the reason why it cannot continue.
    async fn report_changes(&self, backoff: &mut Backoff, last_logged: &mut String) -> DetectError {
        // This server may have an older state than the one that was asked before.
        if let Err(error) = self.session.client.sync(self.path).await {
            return error.into();
        }
        loop {
            match self.report_leader().await {
                Ok(watcher) => {
                    backoff.reset();
                    last_logged.clear();
                    watcher.changed().await;
                }
                Err(DetectError::ZooKeeper(Error::Throttled)) => tokio::time::sleep(backoff.next_wait()).await,
                Err(error) => return error,
            }
        }
    }

    /// Requests signs of life repeatedly if this is a candidate. Returns when there was none for the timeout of the
    /// session.
    async fn renew_lease(&self, lease: &Lease) {
        if self.own.is_none() {
            return std::future::pending().await;
        }
        let limit = self.session.timeout();
        let ask = async {
            loop {
                let asked = Instant::now();
                if self.session.client.check_stat(self.path).await.is_ok() {
                    lease.extend(asked, limit);
                }
                tokio::time::sleep(limit / SIGNS).await;
            }
        };
        tokio::select! {
            () = ask => {}
            () = lease.over() => {}
        }
    }

    /// Reads the group, and reports its state. The returned watcher fires when it must be read again.
    async fn report_leader(&self) -> Result<OneshotWatcher, DetectError> {
        let (members, watcher) = loop {
            match self.session.client.list_and_watch_children(self.path).await {
                // There is no group yet: its first master creates it.
                Err(Error::NoNode) => {
                    let (stat, watcher) = self.session.client.check_and_watch_stat(self.path).await?;
                    if stat.is_none() && self.own.is_none() {
                        tell(self.sender, DetectionState::NoLeader);
                        return Ok(watcher);
                    }
                }
                found => break found?,
            }
        };
        if self.own.is_some_and(|own| !members.iter().any(|member| member == own)) {
            return Err(DetectError::Ousted);
        }
        match leader(&self.session.client, self.path, &members).await {
            Ok(Some(mut leader)) => {
                leader.is_own = self.own == Some(leader.member.as_str());
                tell(self.sender, DetectionState::Leader(leader));
            }
            Ok(None) => tell(self.sender, DetectionState::NoLeader),
            // The member left just now: the watch will report it.
            Err(DetectError::ZooKeeper(Error::NoNode)) => {}
            Err(DetectError::ZooKeeper(error)) => return Err(error.into()),
            // The process that has written such a node may end, and its node with it.
            Err(error) => {
                tell(self.sender, DetectionState::Unknown);
                tracing::warn!("{error}, so the leader is unknown until the node is gone");
            }
        }
        Ok(watcher)
    }
}

async fn leader(client: &Client, path: &str, members: &[String]) -> Result<Option<Leader>, DetectError> {
    let Some(name) = first(members) else { return Ok(None) };
    let node = format!("{path}/{name}");
    let (data, _) = client.get_data(&node).await?;
    Leader::read(name, &data).map(Some).ok_or(DetectError::Member(node))
}

/// Returns the current leader; `None` if there is none. The caller sets the time limit.
///
/// # Errors
/// ZooKeeper does not answer, or its answer is invalid.
pub async fn ask(url: &Url, session_timeout: Duration) -> Result<Option<Leader>, DetectError> {
    let session = Session::open(url, session_timeout, 0).await?;
    match session.client.list_children(url.path()).await {
        Ok(members) => leader(&session.client, url.path(), &members).await,
        Err(Error::NoNode) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
