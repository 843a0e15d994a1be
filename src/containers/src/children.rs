//! The ends of all children of a small single-threaded process through one descriptor, for the event loop of an
//! executor.
//!
//! A process with other threads or libraries that wait for their children must use [`Child`](crate::Child) instead.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::process::{self, WaitOptions};

use crate::{WaitStatus, signals};

/// Notifications that a child has ended: SIGCHLD, blocked for the calling thread and turned into a readable descriptor.
/// Processes that [`Launcher::spawn`](crate::Launcher::spawn) starts have no signal blocked nevertheless.
#[derive(Debug)]
pub struct ChildSignals {
    fd: OwnedFd,
}

impl ChildSignals {
    /// Blocks SIGCHLD and opens the descriptor. Call it before the first child is started, in the only thread.
    ///
    /// # Errors
    /// If the system has no descriptor left.
    pub fn open() -> io::Result<ChildSignals> {
        Ok(ChildSignals { fd: signals::open(&[libc::SIGCHLD], libc::SFD_NONBLOCK)? })
    }

    /// Returns the descriptor, which is readable when a child has ended since the last [`ChildSignals::clear`].
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Discards the signals so far. Then call [`reap`] until it returns `None`.
    pub fn clear(&self) {
        let mut buffer = [0; size_of::<libc::signalfd_siginfo>()];
        // An error means that no signal is pending; SIGCHLD is one signal however many children have ended.
        let _ = rustix::io::read(&self.fd, &mut buffer);
    }
}

/// Reaps a child that has ended; `None` if there is none at the moment.
pub fn reap() -> Option<(i32, WaitStatus)> {
    let waited = rustix::io::retry_on_intr(|| process::wait(WaitOptions::NOHANG));
    let (pid, status) = waited.ok()??;
    Some((pid.as_raw_nonzero().get(), WaitStatus::from_raw(status.as_raw())))
}

/// Makes the calling process the parent of every orphan among its descendants, so that none of them is lost. It must
/// [`reap`] them.
///
/// # Errors
/// Only on kernels older than 3.4.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(process::set_child_subreaper(Some(process::getpid()))?)
}
