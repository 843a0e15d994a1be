//! The terminal of `tepui task exec --tty`: every key is sent to the session, which echoes it.

use anyhow::{Context, Result};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// A terminal in raw mode. Dropping it restores the former mode.
pub(super) struct Raw {
    before: Termios,
}

impl Raw {
    /// Puts the terminal of standard input into raw mode.
    ///
    /// # Errors
    /// Standard input is not a terminal.
    pub(super) fn enter() -> Result<Raw> {
        let before = tcgetattr(std::io::stdin()).context("--tty needs a terminal as standard input")?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(std::io::stdin(), OptionalActions::Now, &raw).context("the terminal cannot be changed")?;
        Ok(Raw { before })
    }

    /// Returns rows and columns of the terminal.
    pub(super) fn size(&self) -> (u16, u16) {
        size()
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // If the terminal is gone there is nothing to restore.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Returns rows and columns of the terminal.
pub(super) fn size() -> (u16, u16) {
    match tcgetwinsize(std::io::stdin()) {
        // The size of a terminal on a serial line is unknown: 0.
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => (size.ws_row, size.ws_col),
        _ => (24, 80),
    }
}
