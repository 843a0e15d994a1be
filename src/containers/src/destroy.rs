//! Ends a whole tree of processes, by SIGKILL or another signal.
//!
//! Without cgroups a process that has left both its parent and its session cannot be found again; all others are. An
//! executor that is a subreaper (`prctl(2)`) keeps even those among its descendants.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags};

use crate::child::{poll_readable, signal_pidfd};
use crate::{Process, ProcessTable, StartTime, start_time};

/// The error when a part of a process tree could not be ended.
#[derive(Debug, thiserror::Error)]
pub enum DestroyError {
    /// Processes are left when the time is over, for example in uninterruptible sleep.
    #[error("Processes {remaining:?} of container process {root} did not end within {waited:?}")]
    TimedOut {
        /// Pid of the container's first process.
        root: i32,
        /// Pids of the processes that are left.
        remaining: Vec<i32>,
        /// Time for which the caller waited.
        waited: Duration,
    },
}

/// Ends the tree of the process `root` (see [`ProcessTable::tree`]) by SIGKILL and waits until all of it is gone.
///
/// The tree is stopped first, so that it cannot grow while it is scanned. `started` guards against a pid that has been
/// reused: then nothing is done. With `None` the caller guarantees that `root` is its own child, not yet waited for or
/// only just. A process that is the caller's child stays a zombie; the caller waits for it.
///
/// # Errors
/// [`DestroyError::TimedOut`] after `limit`; the processes that were found have been sent SIGKILL nevertheless.
#[allow(clippy::disallowed_methods)] // a deadline of real processes needs the real clock
pub fn destroy(root: i32, started: Option<StartTime>, limit: Duration) -> Result<(), DestroyError> {
    if started.is_some_and(|expected| start_time(root).is_some_and(|now| now != expected)) {
        return Ok(());
    }
    let deadline = Instant::now() + limit;
    loop {
        let members = stop_all(&|| ProcessTable::scan().tree(root));
        if members.is_empty() {
            return Ok(());
        }
        let handles = kill_all(&members);
        for handle in &handles {
            let left = deadline.saturating_duration_since(Instant::now());
            // If poll fails, the next scan decides.
            let _ = poll_readable(handle.as_fd(), Some(left));
        }
        if Instant::now() >= deadline {
            let remaining: Vec<i32> = ProcessTable::scan().tree(root).iter().map(|p| p.pid).collect();
            let timed_out = DestroyError::TimedOut { root, remaining: remaining.clone(), waited: limit };
            return if remaining.is_empty() { Ok(()) } else { Err(timed_out) };
        }
    }
}

/// Ends every process that was started with the variable `name` = `value` in its environment, and its tree.
///
/// For the processes that remain when a container's first process died unexpectedly: they are no longer its
/// descendants, and have sessions of their own. The variable must be one that only this container's processes have,
/// such as `MESOS_DIRECTORY` with the path of the sandbox. It reads the environment of every process, so it is too
/// expensive for containers that end normally.
///
/// # Errors
/// As [`destroy`], for the first tree that does not end.
pub fn destroy_marked(name: &str, value: &OsStr, limit: Duration) -> Result<(), DestroyError> {
    let mark = [name.as_bytes(), b"=", value.as_bytes()].concat();
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    for process in ProcessTable::scan().processes() {
        if process.pid != own && has_variable(process.pid, &mark) {
            destroy(process.pid, Some(process.started), limit)?;
        }
    }
    Ok(())
}

/// Returns whether the process was started with this `NAME=value`; false if its environment may not be read.
fn has_variable(pid: i32, mark: &[u8]) -> bool {
    std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|all| all.split(|&byte| byte == 0).any(|one| one == mark))
}

/// Ends all descendants of the calling process, as [`destroy`] does, and waits for those that are its children.
/// For an executor that is about to exit.
///
/// # Errors
/// As [`destroy`].
#[allow(clippy::disallowed_methods)] // as above
pub fn kill_children(limit: Duration) -> Result<(), DestroyError> {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let deadline = Instant::now() + limit;
    while crate::has_children() {
        let members = stop_all(&|| ProcessTable::scan().tree(own));
        for handle in kill_all(&members) {
            let left = deadline.saturating_duration_since(Instant::now());
            let _ = poll_readable(handle.as_fd(), Some(left));
        }
        while crate::reap().is_some() {}
        if Instant::now() >= deadline {
            let remaining: Vec<i32> = ProcessTable::scan().tree(own).iter().map(|p| p.pid).collect();
            return Err(DestroyError::TimedOut { root: own, remaining, waited: limit });
        }
    }
    Ok(())
}

/// Sends `signal` to every process of the tree of `root`, once. Returns the number of processes.
///
/// # Errors
/// If the signal does not exist.
pub fn signal_tree(root: i32, signal: i32) -> io::Result<usize> {
    crate::child::to_signal(signal)?;
    let members = ProcessTable::scan().tree(root);
    for process in &members {
        if let Some(handle) = open(*process) {
            // The process is gone, or belongs to another user now: neither is an error.
            let _ = signal_pidfd(handle.as_fd(), signal);
        }
    }
    Ok(members.len())
}

/// Stops the processes that `scan` finds until it finds no new ones. Returns all that were found.
fn stop_all(scan: &dyn Fn() -> Vec<Process>) -> BTreeSet<Process> {
    let mut found = BTreeSet::new();
    loop {
        let new: Vec<Process> = scan().into_iter().filter(|process| !found.contains(process)).collect();
        if new.is_empty() {
            return found;
        }
        for process in new {
            if let Some(handle) = open(process) {
                let _ = signal_pidfd(handle.as_fd(), libc::SIGSTOP);
            }
            found.insert(process);
        }
    }
}

/// Sends SIGKILL to `members`. Returns their pidfds, to wait for their end.
fn kill_all(members: &BTreeSet<Process>) -> Vec<OwnedFd> {
    let mut handles = Vec::new();
    for handle in members.iter().filter_map(|process| open(*process)) {
        let _ = signal_pidfd(handle.as_fd(), libc::SIGKILL);
        handles.push(handle);
    }
    handles
}

/// Opens a pidfd of exactly this process; `None` if it is gone.
fn open(process: Process) -> Option<OwnedFd> {
    let pidfd = rustix::process::pidfd_open(Pid::from_raw(process.pid)?, PidfdFlags::empty()).ok()?;
    (start_time(process.pid) == Some(process.started)).then_some(pidfd)
}
