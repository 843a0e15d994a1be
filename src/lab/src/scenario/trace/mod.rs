//! Reads traces of jobs in CSV: published ones as they are, and tepui's own. `shape.rs` has the columns, `rows.rs` the
//! jobs of lines.
//!
//! Columns with a header may have any order, with others between them; a file without a header has all columns of its
//! shape, in order. A file with an invalid row is rejected with row, column and rule. Rows that cannot be run (no
//! resources, or no known end) are ignored. Published traces start with their first job, and may have any order.

mod cells;
mod events;
mod google;
mod rows;
mod shape;

use std::path::Path;
use std::time::Duration;

use resources::{Amount, Name, Quantities, parse_quantities};

use super::error::ScenarioError;
use super::schema::JobKind;
use cells::Cells;
pub use google::{GoogleEvent, TaskEvent, google_events};
pub(super) use shape::NAMES;
use shape::Shape;

/// The most rows of one trace.
const MOST_ROWS: usize = 10_000_000;
/// The most tasks of one trace that are kept as the largest.
const MOST_LARGEST: usize = 64;

/// A job of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Time of the job's arrival, after the trace's beginning.
    pub submit: Duration,
    /// Number of tasks of the job.
    pub tasks: u32,
    /// CPUs of each task.
    pub cpus: f64,
    /// Megabytes of memory of each task.
    pub mem_mb: f64,
    /// GPUs of each task.
    pub gpus: f64,
    /// Duration of each task; `None` if the trace does not have it.
    pub duration: Option<Duration>,
    /// Whether all tasks start together.
    pub gang: bool,
}

impl Row {
    /// Returns a job of one task that arrives at this time.
    fn at(submit: Duration) -> Row {
        Row { submit, tasks: 1, ..Row::default() }
    }

    /// Returns the resources that one task of the job needs.
    pub fn needs(&self) -> Quantities {
        let all = [(Name::Cpus, self.cpus), (Name::Mem, self.mem_mb), (Name::Gpus, self.gpus)];
        let named = all.into_iter().filter(|(_, amount)| *amount > 0.0);
        named.map(|(name, amount)| (name, Amount::from_f64(amount))).collect()
    }

    /// Returns whether a task of this job needs at least as much of each resource as one of the other.
    fn covers(&self, other: &Row) -> bool {
        self.cpus >= other.cpus && self.mem_mb >= other.mem_mb && self.gpus >= other.gpus
    }

    fn asks_for_nothing(&self) -> bool {
        self.cpus + self.mem_mb + self.gpus <= 0.0
    }
}

/// A scenario's settings for a trace.
#[derive(Debug, Default)]
struct TraceSettings<'a> {
    /// Name of the trace's shape, for files without a header.
    shape: Option<&'a str>,
    /// Resources of the machine to which the trace's shares refer.
    machine: Option<Quantities>,
    /// Whether the scenario overrides the resources of tasks.
    needs: bool,
    /// Whether the scenario overrides the durations of tasks.
    time: bool,
}

impl TraceSettings<'_> {
    /// Returns CPUs and megabytes of the machine.
    fn machine(&self) -> (f64, f64) {
        let amount = |name: Name| self.machine.as_ref().map_or(0.0, |machine| machine.get(&name).to_f64());
        (amount(Name::Cpus), amount(Name::Mem))
    }
}

/// An invalid line: its number, and the rule that it breaks.
type Wrong = (usize, String);

/// Reads the jobs of a trace in the order of time, with the settings of this kind.
///
/// # Errors
/// Returns an error for an invalid row, with row, column and rule.
pub(super) fn read(file: &Path, kind: &JobKind) -> Result<Vec<Row>, ScenarioError> {
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|why| wrong(file, (1, format!("cannot be read: {why}"))))?;
    of_text(&text, file, kind)
}

fn wrong(file: &Path, (line, rule): Wrong) -> ScenarioError {
    ScenarioError { file: file.to_owned(), line, rule }
}

/// Reads the jobs of a trace from its text; `file` is named in errors.
///
/// # Errors
/// Returns an error for an invalid row, with row, column and rule.
pub fn of_text(text: &str, file: &Path, kind: &JobKind) -> Result<Vec<Row>, ScenarioError> {
    let settings = TraceSettings {
        shape: kind.shape.as_deref(),
        machine: kind.machine.as_deref().and_then(|text| parse_quantities(text).ok()),
        needs: kind.needs.is_some(),
        time: kind.time.is_some(),
    };
    parse(text, &settings).map_err(|fault| wrong(file, fault))
}

/// Returns the needs of the largest tasks: those that no other task exceeds or equals in each resource. There are at
/// most [`MOST_LARGEST`].
pub(super) fn largest(rows: &[Row]) -> Vec<Quantities> {
    let mut largest: Vec<&Row> = Vec::new();
    for row in rows {
        if !largest.iter().any(|other| other.covers(row)) {
            largest.retain(|other| !row.covers(other));
            largest.push(row);
            largest.truncate(MOST_LARGEST);
        }
    }
    largest.into_iter().map(Row::needs).collect()
}

fn parse(text: &str, settings: &TraceSettings<'_>) -> Result<Vec<Row>, Wrong> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).peekable();
    let first: Vec<&str> = lines.peek().map(|(_, line)| line.split(',').map(str::trim).collect()).unwrap_or_default();
    let (shape, places) = shape::find(&first, settings.shape).map_err(|rule| (1, rule))?;
    shape.accepts(settings).map_err(|rule| (1, rule))?;
    let headed = places.is_some();
    let places = places.unwrap_or_else(|| (0..shape.columns().len()).collect());
    let lines = lines.skip(usize::from(headed));
    let cells = lines.map(|(n, line)| Cells::cut(n + 1, line, shape, &places, headed));
    let mut rows = match shape {
        Shape::Google => events::rows(&events::GOOGLE_2011, cells, settings)?,
        Shape::Google2019 => events::rows(&events::GOOGLE_2019, cells, settings)?,
        _ => plain_rows(shape, cells, settings)?,
    };
    if shape == Shape::Services {
        last_to_the_end(&mut rows);
    }
    if shape != Shape::Own {
        rows.sort_by_key(|row| row.submit);
        let first = rows.first().map_or(Duration::ZERO, |row| row.submit);
        rows.iter_mut().for_each(|row| row.submit -= first);
    }
    Ok(rows)
}

/// Returns the rows of a trace that has a job on each line.
fn plain_rows<'a>(
    shape: Shape,
    lines: impl Iterator<Item = Result<Cells<'a>, Wrong>>,
    settings: &TraceSettings<'_>,
) -> Result<Vec<Row>, Wrong> {
    let mut read: Vec<Row> = Vec::new();
    for cells in lines {
        let cells = cells?;
        let Some(row) = rows::row(shape, &cells, settings)? else { continue };
        if row.asks_for_nothing() && !settings.needs {
            if shape == Shape::Own {
                return Err((cells.line, "a task needs cpus or mem_mb".to_owned()));
            }
            continue;
        }
        if shape == Shape::Own && read.last().is_some_and(|before| before.submit > row.submit) {
            return Err((cells.line, "rows must be in the order of submit_s".to_owned()));
        }
        push(&mut read, row, cells.line)?;
    }
    Ok(read)
}

/// Extends tasks without an end in the trace to its last event.
fn last_to_the_end(rows: &mut [Row]) {
    let last = rows.iter().map(|row| row.submit + row.duration.unwrap_or_default()).max().unwrap_or_default();
    for row in rows {
        row.duration.get_or_insert(last.saturating_sub(row.submit));
    }
}

fn push(rows: &mut Vec<Row>, row: Row, line: usize) -> Result<(), Wrong> {
    if rows.len() == MOST_ROWS {
        return Err((line, format!("a trace must have {MOST_ROWS} jobs at most")));
    }
    rows.push(row);
    Ok(())
}

#[cfg(test)]
mod tests;
