//! Watches a group for as long as somebody wants to know, through every failure.

use std::convert::Infallible;
use std::time::Duration;

use base::Backoff;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use zookeeper_client::{Client, Error, OneshotWatcher, SessionState, StateWatcher};

use crate::Url;
use crate::candidate;
use crate::member::{DetectError, Leader, first};

/// The first and the longest wait after a failure.
const WAITS: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));

/// What is known of who leads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Known {
    /// Nothing: ZooKeeper was not asked yet, or a session with it has ended, or the leader's node cannot be read.
    #[default]
    Nothing,
    /// Nobody leads.
    Nobody,
    /// This one leads. It stands for as long as the session does, with or without a connection.
    Leader(Leader),
    /// A candidate is refused, and will not be let in by asking again. This is the last word.
    Refused(String),
}

impl Known {
    /// Who leads, if that is known.
    pub fn leader(&self) -> Option<&Leader> {
        match self {
            Known::Leader(leader) => Some(leader),
            Known::Nothing | Known::Nobody | Known::Refused(_) => None,
        }
    }
}

/// A task that watches the group, and what it knows. It ends with its owner.
#[derive(Debug)]
pub struct Detector {
    known: watch::Receiver<Known>,
    task: AbortHandle,
}

impl Drop for Detector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Detector {
    /// Watches from now on. `session_timeout` is asked for; the servers may settle on another one. `seed` is for the jitter of
    /// waits. Needs a runtime.
    pub fn start(url: Url, session_timeout: Duration, seed: u64) -> Detector {
        Detector::run(url, session_timeout, seed, None)
    }

    /// The same as a candidate: enters the group with `info`, a MasterInfo in JSON, and does so anew whenever it has lost its place.
    pub fn contend(url: Url, session_timeout: Duration, seed: u64, info: String) -> Detector {
        Detector::run(url, session_timeout, seed, Some(info))
    }

    fn run(url: Url, session_timeout: Duration, seed: u64, info: Option<String>) -> Detector {
        let (sender, known) = watch::channel(Known::Nothing);
        let task = tokio::spawn(watch_on(url, session_timeout, seed, info, sender)).abort_handle();
        Detector { known, task }
    }

    /// What is known now.
    pub fn known(&self) -> Known {
        self.known.borrow().clone()
    }

    /// Returns when something else is known than when it returned before.
    pub async fn changed(&mut self) {
        if self.known.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

/// One session after the other. What is wrong is told once, until it is well or something else is wrong.
async fn watch_on(url: Url, session_timeout: Duration, seed: u64, info: Option<String>, sender: watch::Sender<Known>) {
    let mut backoff = Backoff::new(WAITS.0, WAITS.1, seed);
    let mut told = String::new();
    loop {
        match connect(&url, session_timeout).await {
            Ok(client) => {
                let mut group = Group { client, path: url.path(), sender: &sender, own: None };
                let error = match group.enter(&url, info.as_deref()).await {
                    Ok(()) => group.watch(&mut backoff, &mut told).await,
                    Err(error @ (Error::NoAuth | Error::AuthFailed | Error::InvalidAcl)) => {
                        let why =
                            format!("ZooKeeper at {} lets no candidate in at {}: {error}", url.servers(), url.path());
                        return tell(&sender, Known::Refused(why));
                    }
                    Err(error) => error.into(),
                };
                tell(&sender, Known::Nothing);
                once(
                    &mut told,
                    format!("ZooKeeper at {} does not say who leads: {error}; it is asked anew", url.servers()),
                );
            }
            Err(error) => {
                tell(&sender, Known::Nothing);
                if !matches!(error, Error::AuthFailed | Error::NoAuth) {
                    // It has waited already, as long as a session.
                    backoff.reset();
                }
                once(&mut told, format!("no session with ZooKeeper at {}: {error}; it is tried again", url.servers()));
            }
        }
        tokio::time::sleep(backoff.next_wait()).await;
    }
}

/// Tells what is wrong, if that is not what was told last.
fn once(told: &mut String, words: String) {
    if *told != words {
        tracing::warn!("{words}");
        *told = words;
    }
}

pub(crate) async fn connect(url: &Url, session_timeout: Duration) -> Result<Client, Error> {
    let mut connector = Client::connector().with_session_timeout(session_timeout);
    if let Some(credential) = url.credential() {
        connector = connector.with_auth("digest", credential.as_bytes());
    }
    connector.connect(url.servers()).await
}

fn tell(sender: &watch::Sender<Known>, known: Known) {
    sender.send_if_modified(|before| {
        let new = *before != known;
        *before = known;
        new
    });
}

/// A group, in one session.
struct Group<'a> {
    client: Client,
    path: &'a str,
    sender: &'a watch::Sender<Known>,
    /// The node of this candidate.
    own: Option<String>,
}

impl Group<'_> {
    /// A candidate enters. One that cannot be sure of it gives up the session, and with that a node that it does not know of.
    async fn enter(&mut self, url: &Url, info: Option<&str>) -> Result<(), Error> {
        if let Some(info) = info {
            self.own = Some(candidate::enter(&self.client, url, info).await?);
        }
        Ok(())
    }

    /// Tells of every change, until the session ends. Says why it did.
    async fn watch(&self, backoff: &mut Backoff, told: &mut String) -> DetectError {
        let limit = self.client.session_timeout();
        let lost = without_connection(self.client.state_watcher(), limit);
        tokio::select! {
            ended = self.look_on(backoff, told) => match ended {
                Err(error) => error,
                Ok(never) => match never {},
            },
            () = lost => DetectError::Away(limit),
        }
    }

    async fn look_on(&self, backoff: &mut Backoff, told: &mut String) -> Result<Infallible, DetectError> {
        loop {
            match self.look().await {
                Ok(watcher) => {
                    backoff.reset();
                    told.clear();
                    watcher.changed().await;
                }
                // The session may live on, and the next question waits for its connection.
                Err(DetectError::ZooKeeper(
                    Error::ConnectionLoss | Error::Timeout | Error::Throttled | Error::Custom(_),
                )) => {
                    tokio::time::sleep(backoff.next_wait()).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Looks, and tells of what it sees; the watcher says when to look again.
    async fn look(&self) -> Result<OneshotWatcher, DetectError> {
        let (members, watcher) = loop {
            match self.client.list_and_watch_children(self.path).await {
                // There is no group yet: its first master makes it.
                Err(Error::NoNode) => {
                    let (stat, watcher) = self.client.check_and_watch_stat(self.path).await?;
                    if stat.is_none() && self.own.is_none() {
                        tell(self.sender, Known::Nobody);
                        return Ok(watcher);
                    }
                }
                found => break found?,
            }
        };
        if self.own.as_ref().is_some_and(|own| !members.contains(own)) {
            return Err(DetectError::Ousted);
        }
        match leader(&self.client, self.path, &members).await {
            Ok(Some(mut leader)) => {
                leader.is_own = self.own.as_ref() == Some(&leader.member);
                tell(self.sender, Known::Leader(leader));
            }
            Ok(None) => tell(self.sender, Known::Nobody),
            // It left just now: the watch says so.
            Err(DetectError::ZooKeeper(Error::NoNode)) => {}
            Err(DetectError::ZooKeeper(error)) => return Err(error.into()),
            // Who has written such a node may go again.
            Err(error) => {
                tell(self.sender, Known::Nothing);
                tracing::warn!("{error}, so nobody knows who leads until it goes");
            }
        }
        Ok(watcher)
    }
}

/// Returns when there was no connection for so long: the servers may have ended the session, and nobody can say so.
async fn without_connection(mut states: StateWatcher, limit: Duration) {
    let mut state = states.state();
    loop {
        state = match state {
            SessionState::Disconnected => match tokio::time::timeout(limit, states.changed()).await {
                Ok(state) => state,
                Err(_) => return,
            },
            _ => states.changed().await,
        };
    }
}

async fn leader(client: &Client, path: &str, members: &[String]) -> Result<Option<Leader>, DetectError> {
    let Some(name) = first(members) else { return Ok(None) };
    let node = format!("{path}/{name}");
    let (data, _) = client.get_data(&node).await?;
    Leader::read(name, &data).map(Some).ok_or(DetectError::Member(node))
}

/// Who leads now; none if nobody does. Whoever asks says how long that may take.
///
/// # Errors
/// ZooKeeper says nothing, or nothing that can be understood.
pub async fn ask(url: &Url, session_timeout: Duration) -> Result<Option<Leader>, DetectError> {
    let client = connect(url, session_timeout).await?;
    match client.list_children(url.path()).await {
        Ok(members) => leader(&client, url.path(), &members).await,
        Err(Error::NoNode) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
