//! How a running framework looks: a text that is drawn over itself on a terminal, or lines about what has changed.
//!
//! What the text and the lines say is the frameworks' business.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use anyhow::Result;

/// How often it is drawn.
pub(super) const EVERY: Duration = Duration::from_millis(500);

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

/// Something that has got into a state.
pub(super) struct News {
    /// Its name.
    pub(super) name: String,
    /// The state.
    pub(super) state: &'static str,
    /// Its line, printed once for each state.
    pub(super) line: String,
}

/// A status that can be shown.
pub(super) trait Shown {
    /// All of it, for a terminal.
    fn text(&self) -> String;
    /// What each of its parts is doing.
    fn news(&self) -> Vec<News>;
}

/// What is on the screen.
#[derive(Debug)]
pub(super) struct View {
    live: bool,
    silent: bool,
    text: Overdrawn,
    /// The printed state of each part.
    said: BTreeMap<String, &'static str>,
}

impl View {
    /// `live` draws, otherwise there are lines, unless `silent`.
    pub(super) fn new(live: bool, silent: bool) -> View {
        View { live, silent, text: Overdrawn::default(), said: BTreeMap::new() }
    }

    /// Shows how things are.
    pub(super) fn show(&mut self, status: &impl Shown) -> Result<()> {
        if self.live { self.text.draw(&status.text()) } else { self.say(status) }
    }

    /// Shows how things were at the end.
    pub(super) fn last(&mut self, status: &impl Shown) -> Result<()> {
        if !self.live {
            self.say(status)?;
        }
        self.text.draw(&status.text())
    }

    /// A line for each part that has another state than before.
    fn say(&mut self, status: &impl Shown) -> Result<()> {
        if self.silent {
            return Ok(());
        }
        for news in status.news() {
            if self.said.insert(news.name, news.state) != Some(news.state) {
                let mut out = std::io::stdout().lock();
                writeln!(out, "{}", news.line)?;
                out.flush()?;
            }
        }
        Ok(())
    }
}
