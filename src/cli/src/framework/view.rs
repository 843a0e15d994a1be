//! Shows a running framework: a text that replaces itself on a terminal, or a line for each change elsewhere.
//!
//! The frameworks write the text and the lines.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use anyhow::Result;

use super::screen::RedrawnText;

/// Interval between updates.
pub(super) const UPDATE_INTERVAL: Duration = Duration::from_millis(500);

/// The state of a job or a query of the framework.
pub(super) struct ItemState {
    /// Name of the job or the query.
    pub(super) name: String,
    /// State of the job or the query.
    pub(super) state: &'static str,
    /// Line that is printed once for each state.
    pub(super) line: String,
}

/// A status that can be shown.
pub(super) trait Displayed {
    /// Formats the whole status, for a terminal.
    fn text(&self) -> String;
    /// Returns the state of each job or query.
    fn item_states(&self) -> Vec<ItemState>;
}

/// The display of a running framework.
#[derive(Debug)]
pub(super) struct View {
    live: bool,
    silent: bool,
    text: RedrawnText,
    /// Printed state of each job or query.
    printed: BTreeMap<String, &'static str>,
}

impl View {
    /// Creates a display that draws the text if `live`, and otherwise prints lines, unless `silent`.
    pub(super) fn new(live: bool, silent: bool) -> View {
        View { live, silent, text: RedrawnText::default(), printed: BTreeMap::new() }
    }

    /// Shows the status.
    pub(super) fn show(&mut self, status: &impl Displayed) -> Result<()> {
        if self.live { self.text.draw(&status.text()) } else { self.say(status) }
    }

    /// Shows the final status.
    pub(super) fn last(&mut self, status: &impl Displayed) -> Result<()> {
        if !self.live {
            self.say(status)?;
        }
        self.text.draw(&status.text())
    }

    /// Prints a line for each job or query with another state than before.
    fn say(&mut self, status: &impl Displayed) -> Result<()> {
        if self.silent {
            return Ok(());
        }
        for item_state in status.item_states() {
            if self.printed.insert(item_state.name, item_state.state) != Some(item_state.state) {
                let mut out = std::io::stdout().lock();
                writeln!(out, "{}", item_state.line)?;
                out.flush()?;
            }
        }
        Ok(())
    }
}
