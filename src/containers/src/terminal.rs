//! Terminals for processes: a pair of descriptors, one for the user of the terminal and one for the process.
//!
//! The new process makes it the controlling terminal of its session (`spawn/stage.rs`).

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use crate::User;

/// A new pseudoterminal.
#[derive(Debug)]
pub struct Terminal {
    /// The user's side: bytes that are written here are input of the process, and its output is read here.
    pub user: OwnedFd,
    /// The process's side: its standard streams.
    pub process: OwnedFd,
}

impl Terminal {
    /// Opens a terminal of this size.
    ///
    /// # Errors
    /// If the host has none left.
    pub fn open(rows: u32, columns: u32) -> io::Result<Terminal> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let user = rustix::pty::openpt(flags)?;
        rustix::pty::grantpt(&user)?;
        Terminal::of(user, rows, columns)
    }

    /// Opens a terminal in the `/dev/pts` of a process with a root of its own: programs in that root find it by its
    /// name.
    ///
    /// # Errors
    /// If the process has no `/dev/pts` of its own, or the host has no terminal left.
    pub fn open_inside(pid: i32, rows: u32, columns: u32) -> io::Result<Terminal> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let root = rustix::fs::open(format!("/proc/{pid}/root"), flags, Mode::empty())?;
        // The container can change its root: no path in it may lead out of it, and only the device is opened.
        let found = rustix::fs::openat2(root, "dev/pts/ptmx", flags, Mode::empty(), ResolveFlags::IN_ROOT)?;
        let about = rustix::fs::fstat(&found)?;
        let is_device = FileType::from_raw_mode(about.st_mode) == FileType::CharacterDevice;
        if !is_device || about.st_rdev != rustix::fs::makedev(5, 2) {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the container has no terminals of its own"));
        }
        let path = format!("/proc/self/fd/{}", found.as_raw_fd());
        let user = rustix::fs::open(path, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
        Terminal::of(user, rows, columns)
    }

    fn of(user: OwnedFd, rows: u32, columns: u32) -> io::Result<Terminal> {
        rustix::pty::unlockpt(&user)?;
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let process = rustix::pty::ioctl_tiocgptpeer(&user, flags)?;
        resize_terminal(&user, rows, columns)?;
        Ok(Terminal { user, process })
    }

    /// Makes the user of the process the owner of the terminal.
    ///
    /// # Errors
    /// If this process may not.
    pub fn give(&self, user: &User) -> io::Result<()> {
        std::os::unix::fs::fchown(&self.process, Some(user.uid), None)
    }
}

/// Sets the size of a terminal; the processes that use it are notified.
///
/// # Errors
/// If it is not a terminal.
pub fn resize_terminal(terminal: impl AsFd, rows: u32, columns: u32) -> io::Result<()> {
    let size = |count: u32| u16::try_from(count).unwrap_or(u16::MAX);
    let size = Winsize { ws_row: size(rows), ws_col: size(columns), ws_xpixel: 0, ws_ypixel: 0 };
    Ok(rustix::termios::tcsetwinsize(terminal, size)?)
}

/// Makes a descriptor nonblocking.
///
/// # Errors
/// If the descriptor cannot be changed.
pub fn set_nonblocking(fd: impl AsFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(&fd)?;
    Ok(rustix::fs::fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?)
}

/// Creates a pipe. Returns the read end and the write end.
///
/// # Errors
/// If the process has no descriptors left.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?)
}

/// Reads the available bytes. Returns their number; zero at the end.
///
/// # Errors
/// `WouldBlock` if no bytes are available.
pub fn read_some(fd: impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::retry_on_intr(|| rustix::io::read(fd.as_fd(), &mut *buffer))?)
}

/// Writes the bytes that fit. Returns their number.
///
/// # Errors
/// `WouldBlock` if none fit.
pub fn write_some(fd: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::io::retry_on_intr(|| rustix::io::write(fd.as_fd(), bytes))?)
}
