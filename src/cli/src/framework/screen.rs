//! A text on a terminal that replaces itself.
//!
//! It does not check whether standard output is a terminal.

use std::io::Write;

use anyhow::Result;

/// A text that is drawn over itself.
#[derive(Debug, Default)]
pub(super) struct Overdrawn {
    /// How many lines stand there now.
    lines: usize,
}

impl Overdrawn {
    /// Takes away what stands there.
    pub(super) fn clear(&mut self) -> Result<()> {
        if self.lines > 0 {
            // Up by so many lines, and everything below away.
            write!(std::io::stdout(), "\x1b[{}A\x1b[J", self.lines)?;
            self.lines = 0;
        }
        Ok(())
    }

    /// Puts this text, whole lines, where the last one stands.
    pub(super) fn draw(&mut self, text: &str) -> Result<()> {
        self.clear()?;
        self.lines = text.lines().count();
        let mut out = std::io::stdout().lock();
        writeln!(out, "{text}")?;
        Ok(out.flush()?)
    }
}
