//! Terminals for processes: a pair of descriptors, one for who uses it and one for the process.
//!
//! Taking it as the terminal of a session is the new process's step (`spawn/stage.rs`).

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

/// A new terminal.
#[derive(Debug)]
pub struct Terminal {
    /// What is written here is typed; what is read here was printed.
    pub user: OwnedFd,
    /// The process's standard streams.
    pub process: OwnedFd,
}

impl Terminal {
    /// Opens one of this size.
    ///
    /// # Errors
    /// If the host has none left.
    pub fn open(rows: u32, columns: u32) -> io::Result<Terminal> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let user = rustix::pty::openpt(flags)?;
        rustix::pty::grantpt(&user)?;
        rustix::pty::unlockpt(&user)?;
        let name = rustix::pty::ptsname(&user, Vec::new())?;
        let process = rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
        resize_terminal(&user, rows, columns)?;
        Ok(Terminal { user, process })
    }
}

/// Tells the processes at a terminal how large it is now.
///
/// # Errors
/// If it is no terminal.
pub fn resize_terminal(terminal: impl AsFd, rows: u32, columns: u32) -> io::Result<()> {
    let size = |count: u32| u16::try_from(count).unwrap_or(u16::MAX);
    let size = Winsize { ws_row: size(rows), ws_col: size(columns), ws_xpixel: 0, ws_ypixel: 0 };
    Ok(rustix::termios::tcsetwinsize(terminal, size)?)
}

/// Makes reading and writing answer "not now" instead of waiting.
///
/// # Errors
/// If the descriptor cannot be changed.
pub fn never_wait(fd: impl AsFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(&fd)?;
    Ok(rustix::fs::fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?)
}

/// A pipe: the end to read from, the end to write to.
///
/// # Errors
/// If the process has no descriptors left.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?)
}

/// Reads what is there; zero at the end.
///
/// # Errors
/// `WouldBlock` if there is nothing now.
pub fn read_some(fd: impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::retry_on_intr(|| rustix::io::read(fd.as_fd(), &mut *buffer))?)
}

/// Writes what fits.
///
/// # Errors
/// `WouldBlock` if nothing fits now.
pub fn write_some(fd: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::io::retry_on_intr(|| rustix::io::write(fd.as_fd(), bytes))?)
}
