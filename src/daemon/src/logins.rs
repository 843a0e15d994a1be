//! Slows down the guessing of passwords: after some failures, further attempts of a user from an address must wait.
//!
//! The delay doubles with each failure. Failures over other connections do not delay a connection over which a user has
//! logged in, so that guesses from the host of a framework do not stop the framework. It checks no password.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::lock;
use rustc_hash::FxHashMap;
use tokio::time::Instant;
use wire::libprocess::ConnectionId;

/// Number of failures without a delay: scripts that try every endpoint of a cluster with a wrong password are not an
/// attack.
const FREE: u32 = 100;
/// Delay after the first failure that has one.
const FIRST: Duration = Duration::from_secs(1);
/// Longest delay after a failure.
const LONGEST: Duration = Duration::from_secs(60);
/// Time after the last failure at which a user's failures are forgotten.
const MEMORY: Duration = Duration::from_secs(600);
/// Maximum number of users and addresses with failures; beyond it the oldest is forgotten.
const ENTRIES_MAX: usize = 1 << 14;
/// Maximum number of connections with a log-in that are recorded.
const CONNECTIONS_MAX: usize = 1 << 16;
/// Maximum length of a user's name in bytes; longer names with the same beginning count as one user.
const NAME_MAX: usize = 128;

/// The failed log-ins of a daemon.
#[derive(Debug, Default)]
pub(crate) struct Logins {
    state: Mutex<State>,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    failed: AtomicU64,
    held_up: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    failures: FxHashMap<Key, Failures>,
    /// The keys of `failures`, the oldest first.
    order: VecDeque<Key>,
    /// Connections over which a user has logged in.
    proved: FxHashMap<ConnectionId, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    source: IpAddr,
    user: String,
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    last: Instant,
    /// Time until which attempts are refused; `None` if they are not.
    until: Option<Instant>,
}

/// An attempt to log in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt<'a> {
    pub(crate) source: IpAddr,
    pub(crate) connection: ConnectionId,
    pub(crate) user: &'a str,
}

impl Attempt<'_> {
    fn key(&self) -> Key {
        Key { source: self.source.to_canonical(), user: short(self.user).to_owned() }
    }
}

impl Logins {
    /// Checks whether an attempt may be made now.
    ///
    /// # Errors
    /// The time for which it must wait.
    pub(crate) fn check(&self, attempt: Attempt<'_>) -> Result<(), Duration> {
        let state = lock(&self.state);
        if state.failures.is_empty() || state.proved.get(&attempt.connection).is_some_and(|user| user == attempt.user) {
            return Ok(());
        }
        let now = Instant::now();
        let until = state.failures.get(&attempt.key()).and_then(|failures| failures.until);
        match until.map(|until| until.saturating_duration_since(now)).filter(|wait| !wait.is_zero()) {
            Some(wait) => {
                self.counts.held_up.fetch_add(1, Ordering::Relaxed);
                Err(wait)
            }
            None => Ok(()),
        }
    }

    /// Records that an attempt has failed: that a password was checked and is wrong, or that the user is not known.
    pub(crate) fn failed(&self, attempt: Attempt<'_>) {
        self.counts.failed.fetch_add(1, Ordering::Relaxed);
        let (state, now, key) = (&mut *lock(&self.state), Instant::now(), attempt.key());
        state.proved.remove(&attempt.connection);
        if !state.failures.contains_key(&key) {
            while state.order.len() >= ENTRIES_MAX
                && let Some(oldest) = state.order.pop_front()
            {
                state.failures.remove(&oldest);
            }
            state.order.push_back(key.clone());
        }
        let failures = state.failures.entry(key).or_insert(Failures { count: 0, last: now, until: None });
        if now.duration_since(failures.last) > MEMORY {
            failures.count = 0;
        }
        failures.count = failures.count.saturating_add(1);
        failures.last = now;
        failures.until = failures.count.checked_sub(FREE).filter(|waits| *waits > 0).map(|waits| now + wait(waits));
    }

    /// Records that a user has logged in over a connection.
    pub(crate) fn succeeded(&self, attempt: Attempt<'_>) {
        let state = &mut *lock(&self.state);
        let known = state.proved.get(&attempt.connection).is_some_and(|user| user == attempt.user);
        if !known && state.proved.len() < CONNECTIONS_MAX {
            state.proved.insert(attempt.connection, attempt.user.to_owned());
        }
    }

    /// Forgets a connection that has closed.
    pub(crate) fn closed(&self, connection: ConnectionId) {
        lock(&self.state).proved.remove(&connection);
    }

    /// Returns the numbers of attempts since the start that failed, and that had to wait.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.counts.failed.load(Ordering::Relaxed), self.counts.held_up.load(Ordering::Relaxed))
    }
}

/// Returns the delay after this many failures beyond those without a delay.
fn wait(failures: u32) -> Duration {
    FIRST.saturating_mul(1 << (failures - 1).min(16)).min(LONGEST)
}

/// Returns the beginning of a name, at most [`NAME_MAX`] bytes.
fn short(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(user: &str, connection: u64) -> Attempt<'_> {
        Attempt { source: [10, 0, 0, 1].into(), connection: ConnectionId(connection), user }
    }

    #[tokio::test(start_paused = true)]
    async fn each_failure_doubles_the_wait() {
        let logins = Logins::default();
        for _ in 0..FREE {
            assert_eq!(logins.check(attempt("ann", 1)), Ok(()));
            logins.failed(attempt("ann", 1));
        }
        let mut waits = Vec::new();
        for _ in 0..8 {
            logins.failed(attempt("ann", 1));
            let wait = logins.check(attempt("ann", 1)).unwrap_err();
            waits.push(wait.as_secs());
            tokio::time::advance(wait).await;
            assert_eq!(logins.check(attempt("ann", 1)), Ok(()));
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(logins.check(attempt("bob", 1)), Ok(()), "another user");
        let elsewhere = Attempt { source: [10, 0, 0, 2].into(), ..attempt("ann", 1) };
        assert_eq!(logins.check(elsewhere), Ok(()), "another address");
        tokio::time::advance(2 * MEMORY).await;
        logins.failed(attempt("ann", 1));
        assert_eq!(logins.check(attempt("ann", 1)), Ok(()), "what is long ago is forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_with_a_log_in_is_not_held_up() {
        let logins = Logins::default();
        logins.succeeded(attempt("ann", 7));
        for _ in 0..2 * FREE {
            logins.failed(attempt("ann", 1));
        }
        assert!(logins.check(attempt("ann", 2)).is_err());
        assert_eq!(logins.check(attempt("ann", 7)), Ok(()));
        logins.failed(attempt("ann", 7));
        assert!(logins.check(attempt("ann", 7)).is_err(), "a failure over it ends that");
        logins.succeeded(attempt("ann", 8));
        logins.closed(ConnectionId(8));
        assert!(logins.check(attempt("ann", 8)).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_is_limited() {
        let logins = Logins::default();
        for number in 0..2 * ENTRIES_MAX {
            logins.failed(attempt(&format!("{number}{}", "x".repeat(1000)), 1));
        }
        assert_eq!(logins.counts(), (2 * ENTRIES_MAX as u64, 0));
        let state = lock(&logins.state);
        assert_eq!((state.failures.len(), state.order.len()), (ENTRIES_MAX, ENTRIES_MAX));
        assert!(state.order.iter().all(|key| key.user.len() <= NAME_MAX));
    }
}
