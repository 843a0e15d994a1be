//! Writes to standard output and standard error without a panic.
//!
//! The standard library's `println!` and `eprintln!` panic when the write fails, for example because the disk is full
//! or the reader has exited. A message must not end a process, least of all one with tasks, so clippy denies them
//! (`print_stdout` and `print_stderr` in the workspace's lints) and programs use [`out!`] and [`err!`] instead.
#![forbid(unsafe_code)]

use std::fmt::Arguments;
use std::io::{ErrorKind, IsTerminal, Result, Write};

/// Writes a line to standard output, as `println!` does, and ignores errors.
#[macro_export]
macro_rules! out {
    ($($text:tt)*) => {
        $crate::write_line(::std::io::stdout(), ::std::format_args!($($text)*))
    };
}

/// Writes a line to standard error, as `eprintln!` does, and ignores errors.
#[macro_export]
macro_rules! err {
    ($($text:tt)*) => {
        $crate::write_line(::std::io::stderr(), ::std::format_args!($($text)*))
    };
}

/// Writes a line and ignores errors. The line is one write: lines of other processes do not interrupt it.
pub fn write_line(mut to: impl Write, text: Arguments<'_>) {
    let mut line = std::fmt::format(text);
    line.push('\n');
    let _ = to.write_all(line.as_bytes());
    let _ = to.flush();
}

/// Writes to standard output. A closed pipe, as with `head`, is not an error.
///
/// # Errors
/// Other errors of the system, for example a full disk.
pub fn write(text: Arguments<'_>) -> Result<()> {
    let mut to = std::io::stdout();
    match to.write_fmt(text).and_then(|()| to.flush()) {
        Err(why) if why.kind() != ErrorKind::BrokenPipe => Err(why),
        _ => Ok(()),
    }
}

/// Returns whether lines on standard error may have colours: it is a terminal, and [`allows_colours`] holds.
pub fn has_colours() -> bool {
    std::io::stderr().is_terminal() && allows_colours()
}

/// Returns whether the user allows colours on terminals: `NO_COLOR` is unset or empty.
pub fn allows_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use std::io;

    /// A writer that accepts one write and fails all others.
    struct Full(Vec<u8>, bool);

    impl io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if std::mem::replace(&mut self.1, true) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }

    #[test]
    fn a_line_is_one_write_and_errors_are_ignored() {
        let mut device = Full(Vec::new(), false);
        super::write_line(&mut device, format_args!("{} of {}", 1, 2));
        super::write_line(&mut device, format_args!("lost"));
        assert_eq!(device.0, b"1 of 2\n");
    }
}
