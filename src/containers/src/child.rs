//! A child process: waits for its end, and sends signals to it and its process group.
//!
//! Only children of the calling process; for others see `attach.rs`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{self, Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus};

use crate::{StartTime, WaitStatus};

/// The error when waiting for a process failed.
#[derive(Debug, thiserror::Error)]
#[error("Failed to wait for process {pid}")]
pub struct WaitError {
    /// Pid of the process.
    pub pid: i32,
    /// The system's error.
    pub source: io::Error,
}

/// A process that the calling process has started. Dropping it neither ends the process nor waits for it.
#[derive(Debug)]
pub struct Child {
    pid: i32,
    pidfd: OwnedFd,
    started: Option<StartTime>,
}

impl Child {
    pub(crate) fn new(pid: i32, pidfd: OwnedFd) -> Child {
        Child { pid, pidfd, started: None }
    }

    /// Sets the start time, which the caller knows.
    pub(crate) fn started_at(self, started: Option<StartTime>) -> Child {
        Child { started, ..self }
    }

    /// Returns the time at which the process was started; `None` if it has been reaped, so that the kernel has
    /// forgotten it.
    pub fn started(&self) -> Option<StartTime> {
        self.started.or_else(|| crate::start_time(self.pid))
    }

    /// Returns the pid. It is not reused until [`Child::try_wait`] or [`Child::wait`] has returned the exit status.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Returns the pidfd, which becomes readable when the process has ended. Register it with the event loop, then call
    /// [`Child::try_wait`].
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Returns the pid and the pidfd, for a caller that waits with [`wait`] itself.
    pub fn into_parts(self) -> (i32, OwnedFd) {
        (self.pid, self.pidfd)
    }

    /// Returns the status if the process has ended, and reaps it.
    ///
    /// # Errors
    /// If the process has been waited for already.
    pub fn try_wait(&self) -> Result<Option<WaitStatus>, WaitError> {
        wait_id(self.pid, WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::NOHANG)
    }

    /// Waits for the end of the process, at most for `timeout` (`None`: forever). Returns `Ok(None)` if it has not
    /// ended by then.
    ///
    /// # Errors
    /// As [`Child::try_wait`].
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Option<WaitStatus>, WaitError> {
        if timeout.is_some() {
            poll_readable(self.pidfd.as_fd(), timeout).map_err(|source| WaitError { pid: self.pid, source })?;
            return self.try_wait();
        }
        wait_id(self.pid, WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::empty())
    }

    /// Sends `signal` to this process, and to no later one with its pid. Does nothing if it has ended.
    ///
    /// # Errors
    /// An unknown signal, or a process of another user.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        signal_pidfd(self.pidfd.as_fd(), signal)
    }
}

/// Waits for the end of the child `pid`, without a limit: for callers that keep only the pid.
///
/// # Errors
/// If `pid` is not a child, or has been waited for already.
pub fn wait(pid: i32) -> Result<WaitStatus, WaitError> {
    let no_child = || WaitError { pid, source: io::Error::from_raw_os_error(libc::ECHILD) };
    let id = Pid::from_raw(pid).filter(|_| pid > 0).ok_or_else(no_child)?;
    wait_id(pid, WaitId::Pid(id), WaitIdOptions::empty())?.ok_or_else(no_child)
}

fn wait_id(pid: i32, id: WaitId<'_>, options: WaitIdOptions) -> Result<Option<WaitStatus>, WaitError> {
    let waited = rustix::io::retry_on_intr(|| process::waitid(id.clone(), WaitIdOptions::EXITED | options));
    let status = waited.map_err(|errno| WaitError { pid, source: errno.into() })?;
    Ok(status.as_ref().and_then(raw_status))
}

fn raw_status(status: &WaitIdStatus) -> Option<WaitStatus> {
    if let Some(code) = status.exit_status() {
        return Some(WaitStatus::from_exit_code((code & 0xff) as u8));
    }
    status.terminating_signal().map(|signal| WaitStatus::from_signal(signal, status.dumped()))
}

/// Returns whether the calling process has children, running or not yet reaped.
pub fn has_children() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(process::waitid(WaitId::All, options), Err(rustix::io::Errno::CHILD))
}

/// Ends this process at once, without exit handlers. Output that was not flushed is lost.
pub fn end_now(code: i32) -> ! {
    // SAFETY: it takes any number, and does not return.
    unsafe { libc::_exit(code) }
}

/// Sends `signal` to every process of the group `group`. `Ok(false)` if the group is empty.
///
/// # Errors
/// If the signal does not exist, or no member may be signalled.
pub fn signal_group(group: i32, signal: i32) -> io::Result<bool> {
    let Some(id) = Pid::from_raw(group).filter(|_| group > 1) else { return Ok(false) };
    match process::kill_process_group(id, to_signal(signal)?) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::SRCH) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Returns whether the process group `group` is empty. It costs one system call: ask this after the end of a
/// container's first process, before [`destroy`](crate::destroy) scans all processes.
pub fn group_is_empty(group: i32) -> bool {
    let Some(id) = Pid::from_raw(group).filter(|_| group > 1) else { return true };
    process::test_kill_process_group(id) == Err(rustix::io::Errno::SRCH)
}

/// Opens a pidfd for the child `pid`, which has not been reaped.
pub(crate) fn open_pidfd(pid: i32) -> io::Result<OwnedFd> {
    let id = Pid::from_raw(pid).filter(|_| pid > 0).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(process::pidfd_open(id, process::PidfdFlags::empty())?)
}

pub(crate) fn to_signal(signal: i32) -> io::Result<Signal> {
    Signal::from_named_raw(signal).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))
}

pub(crate) fn signal_pidfd(pidfd: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    match process::pidfd_send_signal(pidfd, to_signal(signal)?) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Waits until `fd` is readable, at most for `timeout`. Returns whether it is.
pub(crate) fn poll_readable(fd: BorrowedFd<'_>, timeout: Option<Duration>) -> io::Result<bool> {
    let limit = timeout.map(|t| Timespec {
        tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(t.subsec_nanos()),
    });
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    match rustix::io::retry_on_intr(|| poll(&mut fds, limit.as_ref())) {
        Ok(count) => Ok(count > 0),
        Err(errno) => Err(errno.into()),
    }
}
