//! Google's trace of 2011 (`task_events`): what happened to each task, event by event. A job here is a task from its
//! submission on, as long as it ran; one that was evicted and submitted again is another one.

use std::time::Duration;

use rustc_hash::FxHashMap;

use super::cells::Cells;
use super::{Row, Told, Wrong, push};

/// Later moments are those after the trace's end: 2^63 - 1.
const AFTER: f64 = 9e18;

/// A task that has not ended.
struct Open {
    submitted: Duration,
    began: Option<Duration>,
    cpus: f64,
    mem_mb: f64,
}

/// What happens to a task, of what matters here.
enum What {
    Submitted,
    Began,
    Ended,
    Other,
}

fn what(cells: &Cells<'_>) -> Result<What, Wrong> {
    Ok(match cells.number("event_type", 0.0, 8.0)? as u32 {
        0 => What::Submitted,
        1 => What::Began,
        2..=6 => What::Ended,
        _ => What::Other,
    })
}

/// The jobs, in the order of their ends.
pub(super) fn rows<'a>(
    lines: impl Iterator<Item = Result<Cells<'a>, Wrong>>,
    told: &Told<'_>,
) -> Result<Vec<Row>, Wrong> {
    let (all_cpus, all_mem) = told.machine();
    let mut open: FxHashMap<(&str, &str), Open> = FxHashMap::default();
    let mut rows = Vec::new();
    for cells in lines {
        let cells = cells?;
        let micros = cells.number("timestamp", 0.0, 1e19)?;
        if micros > AFTER {
            continue;
        }
        let now = Duration::from_micros(micros as u64);
        let share = |name: &str| if cells.is_empty(name) { Ok(0.0) } else { cells.number(name, 0.0, 1.0) };
        let task = (cells.text("job_id"), cells.text("task_index"));
        match what(&cells)? {
            What::Submitted => {
                let (cpus, mem_mb) = (share("cpu_request")? * all_cpus, share("memory_request")? * all_mem);
                open.insert(task, Open { submitted: now, began: None, cpus, mem_mb });
            }
            What::Began => {
                if let Some(task) = open.get_mut(&task) {
                    task.began = Some(now);
                }
            }
            What::Ended => {
                let Some(Open { submitted, began: Some(began), cpus, mem_mb }) = open.remove(&task) else { continue };
                let duration = Some(now.saturating_sub(began));
                let row = Row { cpus, mem_mb, duration, ..Row::at(submitted) };
                if !row.asks_for_nothing() || told.needs {
                    push(&mut rows, row, cells.line)?;
                }
            }
            What::Other => {}
        }
    }
    Ok(rows)
}
