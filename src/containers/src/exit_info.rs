//! The exit status of a process that is not a child of this one. `/proc` has it until its parent reaps it; Linux 6.15
//! and newer also keep it for holders of a pidfd.

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::WaitStatus;

/// `struct pidfd_info` of linux/pidfd.h in its first version.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    /// The requested fields; after the call, those that were filled.
    mask: u64,
    cgroup: u64,
    /// Process ids and user ids, which are not used here.
    ids: [u32; 11],
    /// Exit status in the form of wait(2).
    exit_code: i32,
}

/// `_IOWR(0xFF, 11, struct pidfd_info)`.
const PIDFD_GET_INFO: libc::c_ulong = (3 << 30) | ((size_of::<PidfdInfo>() as libc::c_ulong) << 16) | (0xff << 8) | 11;
const PIDFD_INFO_EXIT: u64 = 1 << 3;

/// Returns the exit status of process `pid`, which has ended; the pidfd was opened while it ran. `None` if the kernel
/// does not have it (any more).
pub fn exit_status(pid: i32, pidfd: BorrowedFd<'_>) -> Option<WaitStatus> {
    status_of_zombie(pid).or_else(|| status_of_reaped(pidfd))
}

/// Returns the last field of `stat`, if the process is a zombie. Only root and the same user can read it.
fn status_of_zombie(pid: i32) -> Option<WaitStatus> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, which may contain any character, ends at the last bracket; the state is next.
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    let is_zombie = fields.next()? == "Z";
    let exit_code = fields.nth(EXIT_CODE)?.parse().ok()?;
    is_zombie.then(|| WaitStatus::from_raw(exit_code))
}

/// Number of fields between the state and the exit code.
const EXIT_CODE: usize = 48;

fn status_of_reaped(pidfd: BorrowedFd<'_>) -> Option<WaitStatus> {
    let mut info = PidfdInfo { mask: PIDFD_INFO_EXIT, ..PidfdInfo::default() };
    // SAFETY: the descriptor is open, and the kernel reads and writes exactly the structure whose size is in the
    // request.
    let result = unsafe { libc::ioctl(pidfd.as_raw_fd(), PIDFD_GET_INFO as _, &raw mut info) };
    (result == 0 && info.mask & PIDFD_INFO_EXIT != 0).then(|| WaitStatus::from_raw(info.exit_code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Launcher, Program, Spec};
    use std::os::fd::AsFd;

    #[test]
    fn the_layout_is_the_kernels() {
        assert_eq!(size_of::<PidfdInfo>(), 64);
        assert_eq!(PIDFD_GET_INFO, 0xc040_ff0b);
    }

    #[test]
    fn the_end_of_a_process() {
        let child = Launcher::posix().spawn(&Spec::new(Program::Shell("exit 7".into()))).unwrap();
        let (pid, pidfd) = child.into_parts();
        crate::child::poll_readable(pidfd.as_fd(), None).unwrap();
        assert_eq!(exit_status(pid, pidfd.as_fd()).and_then(|status| status.code()), Some(7));
        crate::wait(pid).unwrap();
        if let Some(status) = exit_status(pid, pidfd.as_fd()) {
            assert_eq!(status.code(), Some(7));
        }
    }
}
