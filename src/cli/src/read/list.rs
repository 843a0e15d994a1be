//! Prints the output of the commands that list something: a table, or the master's answer as JSON or YAML; once, or
//! after each change.
//!
//! The commands decide what is listed.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::print;
use crate::connect::MasterArgs;
use crate::interrupt::Interrupt;

/// Interval between updates with `--watch`.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Flags of every list.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    #[command(flatten)]
    pub(crate) master: MasterArgs,
    /// wide: a table with more columns; json, yaml: what the master answers
    #[arg(long, short, value_enum, value_name = "FORMAT", hide_possible_values = true)]
    output: Option<Format>,
    /// The same as --output=json
    #[arg(long, conflicts_with = "output")]
    json: bool,
    /// List again every two seconds, until interrupted; without a terminal, after each change
    #[arg(long, short)]
    watch: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Wide,
    Json,
    Yaml,
}

/// The content of a list.
pub(crate) enum ListOutput {
    /// Table for people.
    Text(String),
    /// Document for programs.
    Document(Value),
}

impl ListArgs {
    /// Returns whether the table has all columns.
    pub(crate) fn is_wide(&self) -> bool {
        self.output == Some(Format::Wide)
    }

    /// Returns whether the list is [`ListOutput::Document`].
    pub(crate) fn wants_document(&self) -> bool {
        self.json || matches!(self.output, Some(Format::Json | Format::Yaml))
    }

    /// Prints what `fetch` returns, with `--watch` until interrupted.
    ///
    /// # Errors
    /// Those of `fetch`. At a terminal, `--watch` shows them and calls `fetch` again.
    pub(crate) fn show(&self, fetch: impl AsyncFn() -> Result<ListOutput>) -> Result<ExitCode> {
        match self.watch {
            false => print(&self.format(crate::block_on(fetch())?)?),
            true => crate::block_on(watch(async || self.format(fetch().await?))),
        }
    }

    fn format(&self, listed: ListOutput) -> Result<String> {
        match listed {
            ListOutput::Text(text) => Ok(text),
            ListOutput::Document(document) if self.output == Some(Format::Yaml) => {
                let text = serde_saphyr::to_string(&document).context("the answer cannot be written as YAML")?;
                Ok(text.trim_end().to_owned())
            }
            ListOutput::Document(document) => Ok(serde_json::to_string_pretty(&document)?),
        }
    }
}

/// Prints the text of `fetch` after each change, until interrupted; at a terminal, in one place.
///
/// # Errors
/// Those of `fetch`. At a terminal, they are shown, and `fetch` is called again.
pub(crate) async fn watch(fetch: impl AsyncFn() -> Result<String>) -> Result<ExitCode> {
    let interrupt = Interrupt::watch()?;
    let wake_signal = interrupt.wake_signal();
    let is_terminal = std::io::stdout().is_terminal();
    let mut last = None;
    while !interrupt.is_set() {
        match fetch().await {
            text if is_terminal => draw(&text.unwrap_or_else(|error| format!("{error:#}")))?,
            text => {
                let text = text?;
                if last.as_ref() != Some(&text) {
                    print(&text)?;
                    last = Some(text);
                }
            }
        }
        // An interrupt ends the pause, and is checked above.
        let _ = tokio::time::timeout(POLL_INTERVAL, wake_signal.notified()).await;
    }
    Ok(ExitCode::SUCCESS)
}

/// Draws a text over the whole terminal, as far as it fits. Long lines are cut, not wrapped.
fn draw(text: &str) -> Result<()> {
    let rows = rustix::termios::tcgetwinsize(std::io::stdout()).map_or(0, |size| usize::from(size.ws_row));
    let room = rows.saturating_sub(2).max(1);
    let (total, mut lines) = (text.lines().count(), text.lines().take(room).collect::<Vec<_>>().join("\n"));
    if total > room {
        lines.push_str(&format!("\n({} more lines)", total - room));
    }
    let mut out = std::io::stdout().lock();
    write!(out, "\x1b[?7l\x1b[H\x1b[J{lines}\n\x1b[?7h")?;
    Ok(out.flush()?)
}
