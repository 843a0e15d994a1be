//! All children of a small single-threaded process through one descriptor: what an executor's event loop waits on.
//!
//! A process with other threads or libraries that wait for their children must use [`Child`](crate::Child) instead.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::process::{self, WaitOptions};

use crate::WaitStatus;

/// Tells that some child has ended: SIGCHLD, blocked for the calling thread and turned into a readable descriptor.
/// What [`Launcher::spawn`](crate::Launcher::spawn) starts has no signal blocked nevertheless.
#[derive(Debug)]
pub struct ChildSignals {
    fd: OwnedFd,
}

impl ChildSignals {
    /// Starts listening. To be called before the first child is started, in the only thread.
    ///
    /// # Errors
    /// If the system has no descriptor left.
    pub fn open() -> io::Result<ChildSignals> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: the set is filled by sigemptyset before it is read; pthread_sigmask and signalfd read it.
        let fd = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
            libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
            libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: signalfd has just made this descriptor, and nobody else owns it.
        Ok(ChildSignals { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Readable when a child has ended since the last [`ChildSignals::clear`].
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Forgets the signals so far; then ask [`reap`] until it gives `None`.
    pub fn clear(&self) {
        let mut buffer = [0; size_of::<libc::signalfd_siginfo>()];
        // An error is "nothing there"; SIGCHLD is one signal however many children have ended.
        let _ = rustix::io::read(&self.fd, &mut buffer);
    }
}

/// Waits for one child that has ended, whichever; `None` if there is none at the moment.
pub fn reap() -> Option<(i32, WaitStatus)> {
    let waited = rustix::io::retry_on_intr(|| process::wait(WaitOptions::NOHANG));
    let (pid, status) = waited.ok()??;
    Some((pid.as_raw_nonzero().get(), WaitStatus::from_raw(status.as_raw())))
}

/// Makes the calling process the parent of every orphan among its descendants, so that none of them is ever lost.
/// It must [`reap`] them.
///
/// # Errors
/// Only on kernels older than 3.4.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(process::set_child_subreaper(Some(process::getpid()))?)
}
