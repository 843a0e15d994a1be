//! Waits for several descriptors and a time, whichever is ready first.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::clock;

/// A number by which the caller identifies a descriptor.
pub(crate) type Token = u64;

/// A set of descriptors to wait for, each with its token.
#[derive(Default)]
pub(crate) struct Poller<'a> {
    fds: Vec<PollFd<'a>>,
    tokens: Vec<Token>,
}

impl<'a> Poller<'a> {
    pub(crate) fn add(&mut self, token: Token, fd: BorrowedFd<'a>, interest: PollFlags) {
        self.fds.push(PollFd::from_borrowed_fd(fd, interest));
        self.tokens.push(token);
    }

    /// Waits until `until` at most, and returns the descriptors that are ready.
    pub(crate) fn wait(mut self, until: Option<Instant>) -> Vec<(Token, PollFlags)> {
        let limit = until.map(|instant| {
            let left = instant.saturating_duration_since(clock::now());
            let seconds = i64::try_from(left.as_secs()).unwrap_or(i64::MAX);
            Timespec { tv_sec: seconds, tv_nsec: i64::from(left.subsec_nanos()) }
        });
        // An interrupted wait, or one that the system refuses for lack of memory, returns nothing.
        let _ = poll(&mut self.fds, limit.as_ref());
        let found = self.fds.iter().map(PollFd::revents).zip(self.tokens);
        found.filter(|(flags, _)| !flags.is_empty()).map(|(flags, token)| (token, flags)).collect()
    }
}

/// Idle time after which an executor releases the memory that its code occupies.
const IDLE: Duration = Duration::from_secs(1);

/// Idle time of an executor; most executors are idle for as long as their task runs.
#[derive(Debug, Default)]
pub(crate) struct Idleness {
    since: Option<Instant>,
    trimmed: bool,
}

impl Idleness {
    /// Returns the time until which to wait; it must be called before each wait that may last until `until`. If nothing
    /// happens by then, the next call trims memory.
    pub(crate) fn before_wait(&mut self, until: Option<Instant>) -> Option<Instant> {
        let now = clock::now();
        let since = *self.since.get_or_insert(now);
        if self.trimmed {
            return until;
        }
        if now >= since + IDLE {
            containers::trim_program();
            self.trimmed = true;
            return until;
        }
        earlier(until, Some(since + IDLE))
    }

    /// Ends the idle time; it must be called when a wait has returned something.
    pub(crate) fn busy(&mut self) {
        *self = Idleness::default();
    }
}

/// Returns the earlier of two times, where `None` means never.
pub(crate) fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
