//! Reads Google's traces of 2011 (`task_events`) and 2019 (`instance_events`), which have the events of each task. A
//! job is one execution of a task from its submission; a task that is evicted and submitted again is another job.

use std::ops::RangeInclusive;
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::cells::Cells;
use super::{Row, TraceSettings, Wrong, push};

/// Bound of times within the trace. Events after its end have the time 2^63 - 1.
const AFTER: f64 = 9e18;

/// The differences between the two traces: names of columns, and numbers of events.
pub(super) struct Events {
    time: &'static str,
    event: &'static str,
    /// Columns that together identify a task.
    task: [&'static str; 2],
    cpus: &'static str,
    mem: &'static str,
    /// Number of the event with which a task begins to run.
    began: u32,
    /// Numbers of the events that end a task.
    ended: RangeInclusive<u32>,
    /// The largest number of an event.
    last: u32,
}

pub(super) const GOOGLE_2011: Events = Events {
    time: "timestamp",
    event: "event_type",
    task: ["job_id", "task_index"],
    cpus: "cpu_request",
    mem: "memory_request",
    began: 1,
    ended: 2..=6,
    last: 8,
};

pub(super) const GOOGLE_2019: Events = Events {
    time: "time",
    event: "type",
    task: ["collection_id", "instance_index"],
    cpus: "cpus",
    mem: "memory",
    began: 3,
    ended: 4..=8,
    last: 10,
};

/// Number of the event with which a task is submitted, in both traces.
const SUBMITTED: u32 = 0;

/// A task that has not ended.
struct Open {
    submitted: Duration,
    began: Option<Duration>,
    cpus: f64,
    mem_mb: f64,
}

/// Returns the jobs of a trace, in the order of their ends.
pub(super) fn rows<'a>(
    events: &Events,
    lines: impl Iterator<Item = Result<Cells<'a>, Wrong>>,
    settings: &TraceSettings<'_>,
) -> Result<Vec<Row>, Wrong> {
    let (all_cpus, all_mem) = settings.machine();
    let mut open: FxHashMap<[&str; 2], Open> = FxHashMap::default();
    let mut rows = Vec::new();
    for cells in lines {
        let cells = cells?;
        let micros = cells.number(events.time, 0.0, 1e19)?;
        if micros > AFTER {
            continue;
        }
        let now = Duration::from_micros(micros as u64);
        let share = |name: &str| cells.number_or_zero(name, 0.0, 1.0);
        let task = events.task.map(|name| cells.text(name));
        match cells.number(events.event, 0.0, f64::from(events.last))? as u32 {
            SUBMITTED => {
                let (cpus, mem_mb) = (share(events.cpus)? * all_cpus, share(events.mem)? * all_mem);
                open.insert(task, Open { submitted: now, began: None, cpus, mem_mb });
            }
            event if event == events.began => {
                if let Some(task) = open.get_mut(&task) {
                    task.began = Some(now);
                }
            }
            event if events.ended.contains(&event) => {
                let Some(Open { submitted, began: Some(began), cpus, mem_mb }) = open.remove(&task) else { continue };
                let duration = Some(now.saturating_sub(began));
                let row = Row { cpus, mem_mb, duration, ..Row::at(submitted) };
                if !row.asks_for_nothing() || settings.needs {
                    push(&mut rows, row, cells.line)?;
                }
            }
            _ => {}
        }
    }
    Ok(rows)
}
