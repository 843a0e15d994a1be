//! Signals that a process waits for, instead of their default actions.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};

use rustix::process::{Signal, set_parent_process_death_signal};

/// A receiver of SIGTERM, SIGINT, SIGHUP and the end of the parent process. The signals no longer end the process: they
/// are blocked for the calling thread and those that it starts from then on.
#[derive(Debug)]
pub struct EndSignals {
    fd: OwnedFd,
}

/// A signal of [`EndSignals`] that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndSignal {
    /// The process is asked to end, by SIGTERM, SIGINT or SIGHUP.
    Asked,
    /// The parent process, or the thread of it that started this process, has ended.
    ParentEnded,
}

impl EndSignals {
    /// Blocks the signals, and makes the kernel report the end of the parent. Call it in the only thread.
    ///
    /// # Errors
    /// If the system has no descriptor left.
    pub fn open() -> io::Result<EndSignals> {
        let fd = open(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP, PARENT_ENDED.as_raw()], 0)?;
        set_parent_process_death_signal(Some(PARENT_ENDED))?;
        Ok(EndSignals { fd })
    }

    /// Waits until one of the signals arrives. Of several that have arrived, the end of the parent is returned last.
    ///
    /// # Errors
    /// An error of the system.
    pub fn wait(&self) -> io::Result<EndSignal> {
        let mut buffer = [0; size_of::<libc::signalfd_siginfo>()];
        rustix::io::retry_on_intr(|| rustix::io::read(&self.fd, &mut buffer))?;
        // The number is the first field of signalfd_siginfo, which the kernel always writes whole.
        let number = i32::from_ne_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]);
        Ok(if number == PARENT_ENDED.as_raw() { EndSignal::ParentEnded } else { EndSignal::Asked })
    }
}

/// The signal that reports the end of the parent. The kernel returns the signal with the lowest number first, and this
/// one has the highest number of those of [`EndSignals`].
const PARENT_ENDED: Signal = Signal::POWER;

/// Blocks all signals that can be blocked, for the calling thread: for a process that must outlive another one in the
/// same process group. Processes that it starts have none blocked.
pub fn hold_signals() {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset fills the set before it is read; pthread_sigmask cannot fail with SIG_BLOCK and a valid
    // pointer.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), std::ptr::null_mut());
    }
}

/// Ignores SIGXFSZ, as Rust's runtime ignores SIGPIPE: a write beyond the file size limit (`RLIMIT_FSIZE`) fails with
/// EFBIG, and does not end the process. Processes that it starts have the default action.
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
