//! Forks: clone3(2), and clone(2) where a seccomp filter refuses clone3, as Docker's default one does.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `struct clone_args` of clone3(2). Without a stack and CLONE_VM the child continues on its own copy of the memory.
#[repr(C)]
#[derive(Default)]
pub(super) struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

impl CloneArguments {
    /// Creates arguments with these flags, without CLONE_VM and CLONE_PIDFD, and with the group in which the process is
    /// created. The parent receives `exit_signal` when the child ends.
    pub(super) fn new(flags: libc::c_int, exit_signal: libc::c_int, born: Option<BorrowedFd<'_>>) -> CloneArguments {
        let mut arguments =
            CloneArguments { flags: flags as u64, exit_signal: exit_signal as u64, ..CloneArguments::default() };
        if let Some(directory) = born {
            arguments.flags |= CLONE_INTO_CGROUP;
            arguments.cgroup = u64::from(directory.as_raw_fd().unsigned_abs());
        }
        arguments
    }

    /// Forks. Returns 0 in the child and its pid in the parent, which also receives a descriptor of the child in
    /// `pidfd`.
    ///
    /// # Safety
    /// As for fork(2) in a process with several threads: the child must call only async-signal-safe functions, because
    /// locks of other threads stay locked in it.
    ///
    /// # Errors
    /// An error of the system. A group in which the process is created needs clone3.
    pub(super) unsafe fn fork(mut self, pidfd: Option<&mut libc::c_int>) -> io::Result<libc::pid_t> {
        if let Some(pidfd) = pidfd {
            self.flags |= libc::CLONE_PIDFD as u64;
            self.pidfd = std::ptr::from_mut(pidfd) as u64;
        }
        // SAFETY: the arguments have the kernel's layout and their size; `pidfd` is valid for the kernel to write to.
        let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const self, size_of::<CloneArguments>()) };
        match pid {
            0.. => Ok(pid as libc::pid_t),
            _ => {
                let error = io::Error::last_os_error();
                if error.raw_os_error() != Some(libc::ENOSYS) || self.flags & CLONE_INTO_CGROUP != 0 {
                    return Err(error);
                }
                // SAFETY: as the caller has promised.
                unsafe { self.fork_by_clone() }
            }
        }
    }

    /// Forks by clone(2), which has the flags in 32 bits, and the pidfd in the argument for the parent's id.
    unsafe fn fork_by_clone(self) -> io::Result<libc::pid_t> {
        let (none, flags) = (0_u64, self.flags | self.exit_signal);
        // SAFETY: without a stack this is a fork. The arguments after the third are zero, in whichever order the
        // architecture has them.
        let pid = unsafe { libc::syscall(libc::SYS_clone, flags, none, self.pidfd, none, none) };
        if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid as libc::pid_t) }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, FromRawFd, OwnedFd};

    use super::*;
    use crate::child::{poll_readable, wait};

    #[test]
    fn both_calls_fork_and_give_a_pidfd() {
        for is_old in [false, true] {
            let mut pidfd = -1;
            let mut arguments = CloneArguments::new(0, libc::SIGCHLD, None);
            // SAFETY: the child only ends, without locks.
            let pid = unsafe {
                match is_old {
                    false => arguments.fork(Some(&mut pidfd)),
                    true => {
                        arguments.flags |= libc::CLONE_PIDFD as u64;
                        arguments.pidfd = (&raw mut pidfd) as u64;
                        arguments.fork_by_clone()
                    }
                }
            };
            match pid.unwrap() {
                // SAFETY: ends the child, which has nothing to clean up.
                0 => unsafe { libc::_exit(7) },
                pid => {
                    // SAFETY: the kernel has put a new descriptor here that nothing else owns.
                    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
                    assert!(poll_readable(pidfd.as_fd(), None).unwrap());
                    assert_eq!(wait(pid).unwrap().code(), Some(7), "old: {is_old}");
                }
            }
        }
    }
}
