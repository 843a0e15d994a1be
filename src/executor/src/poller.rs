//! Waiting for whichever of several descriptors, or a time, comes first.

use std::os::fd::BorrowedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::clock;

/// What a caller calls a descriptor.
pub(crate) type Token = u64;

/// Descriptors to wait for, each with its token.
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

    /// Waits; what is ready, nothing if `until` has come first.
    pub(crate) fn wait(mut self, until: Option<Instant>) -> Vec<(Token, PollFlags)> {
        let limit = until.map(|instant| {
            let left = instant.saturating_duration_since(clock::now());
            let seconds = i64::try_from(left.as_secs()).unwrap_or(i64::MAX);
            Timespec { tv_sec: seconds, tv_nsec: i64::from(left.subsec_nanos()) }
        });
        // An interrupted wait, or one that the system refuses for lack of memory, is a wait that found nothing.
        let _ = poll(&mut self.fds, limit.as_ref());
        let found = self.fds.iter().map(PollFd::revents).zip(self.tokens);
        found.filter(|(flags, _)| !flags.is_empty()).map(|(flags, token)| (token, flags)).collect()
    }
}

/// The earlier of two times, where `None` is never.
pub(crate) fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
