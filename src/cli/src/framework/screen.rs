//! Draws a text on a terminal that replaces the previous one.
//!
//! It does not check whether standard output is a terminal.

use std::io::Write;

use anyhow::Result;

/// A text that replaces the previous one.
#[derive(Debug, Default)]
pub(super) struct RedrawnText {
    /// Number of lines that are on the terminal now.
    lines: usize,
}

impl RedrawnText {
    /// Removes the text from the terminal.
    pub(super) fn clear(&mut self) -> Result<()> {
        if self.lines > 0 {
            // Moves the cursor up to the text's first line, and clears everything below.
            write!(std::io::stdout(), "\x1b[{}A\x1b[J", self.lines)?;
            self.lines = 0;
        }
        Ok(())
    }

    /// Replaces the previous text by this one, which consists of whole lines.
    pub(super) fn draw(&mut self, text: &str) -> Result<()> {
        self.clear()?;
        self.lines = text.lines().count();
        let mut out = std::io::stdout().lock();
        writeln!(out, "{text}")?;
        Ok(out.flush()?)
    }
}
