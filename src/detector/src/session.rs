//! A session with ZooKeeper over any number of connections.
//!
//! The client library reconnects, but waits twice as long each time, so that it may not detect the servers' return
//! until half a session is over. Here a lost connection is given up at once, and the servers are asked for the same
//! session at short intervals, each for a short time, so that unreachable servers do not take up the whole session.

use std::future::Future;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base::Backoff;
use tokio::task::JoinHandle;
use zookeeper_client::{Client, Connector, Error, SessionInfo, SessionState};

use crate::Url;

/// Shortest time limit for an answer of a server.
const PATIENCE_MIN: Duration = Duration::from_secs(1);
/// The shortest and the longest wait between two rounds of requests.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// A session that is or was connected. Dropping it closes it if it is still connected.
pub(crate) struct Session {
    pub(crate) client: Client,
    /// Tasks of the client library, which own the connection.
    tasks: Vec<JoinHandle<()>>,
}

impl Session {
    /// Opens a new session. Asks all servers repeatedly for the timeout of a session.
    pub(crate) async fn open(url: &Url, timeout: Duration, seed: u64) -> Result<Session, Error> {
        let (mut last, mut waits) = (Error::Timeout, waits(timeout, seed));
        let asked = tokio::time::timeout(timeout, async {
            loop {
                match connect(connector(url, timeout), url.servers()).await {
                    Err(error) if is_final(&error) => return Err(error),
                    Err(error) => last = error,
                    opened => return opened,
                }
                tokio::time::sleep(waits.next_wait()).await;
            }
        });
        match asked.await {
            Ok(opened) => opened,
            Err(_) => Err(last),
        }
    }

    /// Returns the time for which the session lasts without a connection: its timeout.
    pub(crate) fn timeout(&self) -> Duration {
        self.client.session_timeout()
    }

    /// Resumes the session over another connection. Tries until the future is dropped, or the session is over. Watches
    /// are lost.
    pub(crate) async fn resume(self, url: &Url, seed: u64) -> Result<Session, Error> {
        let timeout = self.timeout();
        let session = self.cut().await;
        let servers: Vec<&str> = url.servers().split(',').collect();
        let share = u32::try_from(servers.len()).unwrap_or(u32::MAX).saturating_mul(2);
        let (mut patience, mut waits) = ((timeout / share).max(PATIENCE_MIN), waits(timeout, seed));
        let mut first = usize::try_from(seed % servers.len().max(1) as u64).unwrap_or_default();
        loop {
            for server in servers.iter().cycle().skip(first).take(servers.len()) {
                let again = connector(url, timeout).with_session(session.clone());
                match tokio::time::timeout(patience, connect(again, server)).await {
                    Ok(Ok(session)) => return Ok(session),
                    Ok(Err(error)) if is_final(&error) => return Err(error),
                    Ok(Err(_)) | Err(_) => {}
                }
            }
            // Slow servers get more time in the next round.
            patience = (patience * 2).min(timeout);
            first = (first + 1) % servers.len().max(1);
            tokio::time::sleep(waits.next_wait()).await;
        }
    }

    /// Closes the connection without ending the session.
    pub(crate) async fn cut(self) -> SessionInfo {
        for task in self.tasks {
            task.abort();
            // The task has no result; it must have ended before the client is dropped, or it would close the session.
            let _ = task.await;
        }
        self.client.into_session()
    }

    /// Waits until the connection is lost.
    ///
    /// # Errors
    /// The session is over, too.
    pub(crate) async fn disconnected(&self) -> Result<(), Error> {
        let mut states = self.client.state_watcher();
        let mut state = self.client.state();
        loop {
            match state {
                SessionState::Disconnected => return Ok(()),
                SessionState::Expired | SessionState::Closed => return Err(Error::SessionExpired),
                SessionState::AuthFailed => return Err(Error::AuthFailed),
                _ => state = states.changed().await,
            }
        }
    }
}

/// Returns whether no other server would answer differently.
fn is_final(error: &Error) -> bool {
    matches!(error, Error::SessionExpired | Error::AuthFailed | Error::NoAuth | Error::BadArguments(_))
}

/// Returns whether an error only means that a request was not transmitted: it may succeed over another connection, or
/// in another session.
pub(crate) fn is_lost(error: &Error) -> bool {
    matches!(
        error,
        Error::ConnectionLoss
            | Error::Timeout
            | Error::NoHosts
            | Error::SessionExpired
            | Error::SessionMoved
            | Error::ClientClosed
            | Error::Custom(_)
    )
}

fn waits(timeout: Duration, seed: u64) -> Backoff {
    let first = (timeout / 40).clamp(PAUSES.0, PAUSES.1);
    Backoff::new(first, (first * 2).min(PAUSES.1), seed)
}

fn connector(url: &Url, timeout: Duration) -> Connector {
    let connector = Client::connector().with_session_timeout(timeout).with_fail_eagerly();
    match url.credential() {
        Some(credential) => connector.with_auth("digest", credential.as_bytes()),
        None => connector,
    }
}

/// Asks each of the servers once.
async fn connect(connector: Connector, servers: &str) -> Result<Session, Error> {
    let tasks = Tasks::default();
    let mut connecting = pin!(connector.connect(servers));
    let client = std::future::poll_fn(|context| {
        let _scope = spawns_core::enter(&tasks);
        connecting.as_mut().poll(context)
    })
    .await?;
    Ok(Session { client, tasks: tasks.0.into_inner().unwrap_or_else(PoisonError::into_inner) })
}

/// Spawns the library's tasks, and keeps their handles.
#[derive(Default)]
struct Tasks(Mutex<Vec<JoinHandle<()>>>);

impl spawns_core::Spawn for Tasks {
    fn spawn(&self, task: spawns_core::Task) {
        let running = tokio::spawn(Box::into_pin(task.future));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(running);
    }
}
