//! Watches processes that are not children: the executors that kept running while the agent restarted.
//!
//! Only the parent of a process receives its exit status, so the status stays unknown here.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use base::Time;
use rustix::process::{Pid, PidfdFlags};
use rustix::time::ClockId;

use crate::child::{poll_readable, signal_pidfd};
use crate::{StartTime, start_time};

/// How to check that a recorded pid still means the same process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// The start time was recorded with the pid.
    Started(StartTime),
    /// Only the pid was recorded, at this time (that of the file): a process that started later is another one. Correct
    /// to two seconds.
    StartedBefore(Time),
}

/// The error when attaching failed for a reason other than that the process is gone.
#[derive(Debug, thiserror::Error)]
#[error("Failed to watch process {pid}")]
pub struct AttachError {
    /// Pid of the process.
    pub pid: i32,
    /// The system's error.
    pub source: io::Error,
}

/// A process that another process started, watched through a pidfd.
#[derive(Debug)]
pub struct Attached {
    pid: i32,
    started: StartTime,
    pidfd: OwnedFd,
}

impl Attached {
    /// Attaches to `pid`. Returns `Ok(None)` if that process is gone, or if the pid is now that of another process.
    ///
    /// # Errors
    /// If the system refuses a pidfd for another reason.
    pub fn open(pid: i32, guard: Guard) -> Result<Option<Attached>, AttachError> {
        let Some(id) = Pid::from_raw(pid).filter(|_| pid > 0) else { return Ok(None) };
        let pidfd = match rustix::process::pidfd_open(id, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(rustix::io::Errno::SRCH) => return Ok(None),
            Err(errno) => return Err(AttachError { pid, source: errno.into() }),
        };
        // The start time is read after the pidfd was opened: if it matches now, the pidfd means that process.
        let Some(started) = start_time(pid) else { return Ok(None) };
        let same = match guard {
            Guard::Started(expected) => started == expected,
            Guard::StartedBefore(time) => wall_clock(started) <= time + Duration::from_secs(2),
        };
        Ok(same.then_some(Attached { pid, started, pidfd }))
    }

    /// Returns the pid of the process.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Returns the time at which the process was started.
    pub fn started(&self) -> StartTime {
        self.started
    }

    /// Returns the pidfd, which becomes readable when the process has ended.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Returns the pid and the pidfd, for an event loop.
    pub fn into_parts(self) -> (i32, OwnedFd) {
        (self.pid, self.pidfd)
    }

    /// Waits for the end of the process, at most for `timeout`. Returns whether it has ended.
    ///
    /// # Errors
    /// An error of `poll`.
    pub fn is_gone(&self, timeout: Duration) -> io::Result<bool> {
        poll_readable(self.pidfd.as_fd(), Some(timeout))
    }

    /// Sends `signal` to this process and no other. Does nothing if it has ended.
    ///
    /// # Errors
    /// An unknown signal, or a process of another user.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        signal_pidfd(self.pidfd.as_fd(), signal)
    }
}

/// Converts a start time to wall clock time, by the current difference of the clocks.
fn wall_clock(started: StartTime) -> Time {
    let now = |clock| {
        let time = rustix::time::clock_gettime(clock);
        Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
    };
    let ticks = rustix::param::clock_ticks_per_second().max(1);
    let age = now(ClockId::Boottime).saturating_sub(Duration::from_millis(started.0.saturating_mul(1000) / ticks));
    Time::from_epoch(now(ClockId::Realtime).saturating_sub(age))
}
