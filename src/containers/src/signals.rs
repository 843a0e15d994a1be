//! Signals that are waited for, instead of doing what they do by themselves.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};

/// SIGTERM, SIGINT and SIGHUP, which end nothing any more: blocked for the calling thread and those that it starts from
/// then on.
#[derive(Debug)]
pub struct EndSignals {
    fd: OwnedFd,
}

impl EndSignals {
    /// Blocks them. To be called in the only thread.
    ///
    /// # Errors
    /// If the system has no descriptor left.
    pub fn open() -> io::Result<EndSignals> {
        Ok(EndSignals { fd: open(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP], 0)? })
    }

    /// Waits until one of them arrives.
    ///
    /// # Errors
    /// The system's error.
    pub fn wait(&self) -> io::Result<()> {
        let mut buffer = [0; size_of::<libc::signalfd_siginfo>()];
        rustix::io::retry_on_intr(|| rustix::io::read(&self.fd, &mut buffer))?;
        Ok(())
    }
}

/// Blocks all signals that can be blocked, for the calling thread: for a process that must see the end of another one
/// in the same group. What it starts has none blocked.
pub fn hold_signals() {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset fills the set before it is read; pthread_sigmask cannot fail with SIG_BLOCK and a valid
    // pointer.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), std::ptr::null_mut());
    }
}

/// Ignores SIGXFSZ, as Rust's runtime ignores SIGPIPE: a write past the limit of a file's size (`RLIMIT_FSIZE`) fails
/// with EFBIG, and ends nothing. What this process starts has the default action.
pub fn ignore_file_size_signal() {
    // SAFETY: no handler is set that could run.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Blocks signals for the calling thread, and returns a descriptor that is readable when one arrives.
pub(crate) fn open(signals: &[i32], flags: i32) -> io::Result<OwnedFd> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is filled by sigemptyset before it is read; pthread_sigmask and signalfd read it.
    let fd = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
        libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | flags)
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: signalfd has just created this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
