//! How video queries look in a terminal: a table that is drawn again and again, or lines about what has changed.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use anyhow::Result;
use video::core::{QueryStatus, State, Status};
use video::schedule::Policy;

use crate::read::table::table;

/// How often it is drawn.
pub(super) const EVERY: Duration = Duration::from_millis(500);

/// What is on the screen.
#[derive(Debug)]
pub(super) struct View {
    live: bool,
    silent: bool,
    /// How many lines the table has that is drawn.
    lines: usize,
    /// What was said of each query.
    said: BTreeMap<String, State>,
}

impl View {
    pub(super) fn new(live: bool, silent: bool) -> View {
        View { live, silent, lines: 0, said: BTreeMap::new() }
    }

    /// Shows how things are.
    pub(super) fn show(&mut self, status: &Status) -> Result<()> {
        if self.live { self.draw(status) } else { self.say(status) }
    }

    /// Shows how things were at the end.
    pub(super) fn last(&mut self, status: &Status) -> Result<()> {
        if !self.live {
            self.say(status)?;
        }
        self.draw(status)
    }

    fn draw(&mut self, status: &Status) -> Result<()> {
        let mut text = text(status);
        text.push('\n');
        let mut out = std::io::stdout().lock();
        if self.live && self.lines > 0 {
            // Up to where the last table began, and away with it.
            write!(out, "\x1b[{}A\x1b[J", self.lines)?;
        }
        self.lines = text.lines().count();
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    }

    /// A line for each query that has another state than before.
    fn say(&mut self, status: &Status) -> Result<()> {
        if self.silent {
            return Ok(());
        }
        for query in &status.queries {
            if self.said.insert(query.name.clone(), query.state) != Some(query.state) {
                let mut out = std::io::stdout().lock();
                let why = if query.message.is_empty() { String::new() } else { format!(": {}", query.message) };
                let task = query.task.as_deref().filter(|_| matches!(query.state, State::Running | State::Starting));
                let task = task.map_or(String::new(), |task| format!(" ({task})"));
                writeln!(out, "{} is {}{task}{why}", query.name, state(query.state))?;
                out.flush()?;
            }
        }
        Ok(())
    }
}

fn state(state: State) -> &'static str {
    match state {
        State::Waiting => "waiting",
        State::Starting => "starting",
        State::Running => "running",
        State::Done => "done",
        State::Failed => "failed",
    }
}

fn text(status: &Status) -> String {
    let heads =
        ["QUERY", "KIND", "STATE", "CONFIGURATION", "CORES", "USED", "QUALITY", "GOAL", "LAG", "GOAL", "FOUND", "AT"];
    let mut table = table(&heads);
    for query in &status.queries {
        table.add_row(row(query));
    }
    let lines: Vec<String> = table.to_string().lines().map(|l| l.trim_end().to_owned()).collect();
    let policy = match status.policy {
        Policy::Videostorm => "videostorm",
        Policy::Fair => "fair",
    };
    format!("{policy}: {:.3} cores held by tasks\n{}", status.cores, lines.join("\n"))
}

fn row(query: &QueryStatus) -> Vec<String> {
    let config = query.config.map_or("-".to_owned(), |c| c.to_string());
    let running = query.state == State::Running;
    let number = |value: f64, digits: usize| if running { format!("{value:.digits$}") } else { "-".to_owned() };
    let quality = if running { query.quality } else { query.mean_quality };
    vec![
        query.name.clone(),
        query.kind.name().to_owned(),
        state(query.state).to_owned(),
        config,
        number(query.cores, 3),
        number(query.used, 3),
        format!("{quality:.2}"),
        format!("{:.2}", query.goals.min_quality),
        format!("{:.1} s", query.lag),
        format!("{:.0} s", query.goals.max_lag),
        query.found.to_string(),
        format!("{:.0} s", query.position),
    ]
}
