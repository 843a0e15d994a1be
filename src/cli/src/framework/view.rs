//! Shows a running framework: a text that replaces itself on a terminal, or a line for each change elsewhere.
//!
//! The frameworks write the text and the lines.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use anyhow::Result;

use super::screen::Overdrawn;

/// How often the text is drawn.
pub(super) const EVERY: Duration = Duration::from_millis(500);

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

    /// Shows the status.
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
