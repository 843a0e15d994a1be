//! What commands and daemons write for people: standard output whose reader may go away, and colours where they are seen.

use std::fmt::Arguments;
use std::io::{ErrorKind, IsTerminal, Result, Write};

/// Writes to standard output. That nobody reads it any more, as with `head`, is no error.
///
/// # Errors
/// What else the system says, for example of a full disk.
pub fn write(text: Arguments<'_>) -> Result<()> {
    match std::io::stdout().write_fmt(text) {
        Err(why) if why.kind() != ErrorKind::BrokenPipe => Err(why),
        _ => Ok(()),
    }
}

/// Whether lines on standard error may have colours: at a terminal, unless `NO_COLOR` is set.
pub fn has_colours() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}
