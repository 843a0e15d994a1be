//! Reads the events of single tasks in Google's trace of 2011 (`task_events`), line by line. Their meaning for jobs of
//! a scenario is in `events.rs`.

use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use super::cells::Cells;
use super::shape::Shape;
use super::{Wrong, wrong};
use crate::scenario::error::ScenarioError;

/// Bound of times within the trace, in microseconds. Events after its end have later times.
const AFTER: f64 = 9e18;
/// Length limit of a line, in bytes.
const LINE_MAX: u64 = 4_096;

/// An event in the life of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskEvent {
    /// The task was submitted.
    Submit,
    /// The task was placed on a machine.
    Schedule,
    /// The task was evicted from its machine.
    Evict,
    /// The task failed.
    Fail,
    /// The task finished.
    Finish,
    /// The task was killed.
    Kill,
    /// The task ended in an unknown way.
    Lost,
    /// The request of the task was changed.
    Update,
}

/// A line of `task_events`.
#[derive(Clone, Debug, PartialEq)]
pub struct GoogleEvent {
    /// Time of the event, in seconds since the trace's beginning.
    pub time: f64,
    /// Id of the job.
    pub job: u64,
    /// Number of the task in its job.
    pub task: u32,
    /// Id of the machine; 0 if the task is on none.
    pub machine: u64,
    /// Kind of the event.
    pub event: TaskEvent,
    /// Name of the user, which is a hash in the trace.
    pub user: String,
    /// Scheduling class, from 0 to 3, which is the most sensitive to latency.
    pub class: u8,
    /// Priority of the task, from 0 to 11.
    pub priority: u8,
    /// Requested processors, memory and disk, as shares of the largest machine.
    pub requested: [f64; 3],
}

/// Returns the events of a file without a header, in its order, without those after the trace's end.
pub fn google_events(reader: impl BufRead, file: &Path) -> impl Iterator<Item = Result<GoogleEvent, ScenarioError>> {
    Lines {
        reader,
        file: file.to_owned(),
        line: 0,
        text: Vec::new(),
        places: (0..Shape::Google.columns().len()).collect(),
    }
}

struct Lines<R> {
    reader: R,
    file: PathBuf,
    line: usize,
    text: Vec<u8>,
    places: Vec<usize>,
}

impl<R: BufRead> Lines<R> {
    /// Reads the next line; returns `false` at the end.
    fn advance(&mut self) -> Result<bool, Wrong> {
        self.line += 1;
        self.text.clear();
        let read = (&mut self.reader).take(LINE_MAX).read_until(b'\n', &mut self.text);
        let length = read.map_err(|why| (self.line, format!("cannot be read: {why}")))?;
        if length as u64 == LINE_MAX {
            return Err((self.line, format!("is longer than {LINE_MAX} bytes")));
        }
        Ok(length > 0)
    }

    fn event(&self) -> Result<Option<GoogleEvent>, Wrong> {
        let text = std::str::from_utf8(&self.text).map_err(|_| (self.line, "is not UTF-8".to_owned()))?;
        if text.trim().is_empty() {
            return Ok(None);
        }
        event(&Cells::cut(self.line, text.trim_end(), Shape::Google, &self.places, false)?)
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<GoogleEvent, ScenarioError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.advance().and_then(|more| if more { self.event().map(Some) } else { Ok(None) }) {
                Ok(None) => return None,
                Ok(Some(None)) => {}
                Ok(Some(Some(event))) => return Some(Ok(event)),
                Err(fault) => return Some(Err(wrong(&self.file, fault))),
            }
        }
    }
}

/// Returns the event of a line; `None` if it is after the trace's end.
fn event(cells: &Cells<'_>) -> Result<Option<GoogleEvent>, Wrong> {
    let micros = cells.number("timestamp", 0.0, 1e19)?;
    if micros > AFTER {
        return Ok(None);
    }
    let id = |name: &str| {
        let text = cells.text(name);
        if text.is_empty() { Ok(0) } else { text.parse::<u64>().map_err(|_| cells.wrong(name, "a whole number")) }
    };
    let event = match cells.number("event_type", 0.0, 8.0)? as u8 {
        0 => TaskEvent::Submit,
        1 => TaskEvent::Schedule,
        2 => TaskEvent::Evict,
        3 => TaskEvent::Fail,
        4 => TaskEvent::Finish,
        5 => TaskEvent::Kill,
        6 => TaskEvent::Lost,
        _ => TaskEvent::Update,
    };
    let share = |name: &str| cells.number_or_zero(name, 0.0, 1.0);
    Ok(Some(GoogleEvent {
        time: micros / 1e6,
        job: id("job_id")?,
        task: cells.number("task_index", 0.0, f64::from(u32::MAX))? as u32,
        machine: id("machine_id")?,
        event,
        user: cells.text("user").to_owned(),
        class: cells.number_or_zero("scheduling_class", 0.0, 3.0)? as u8,
        priority: cells.number_or_zero("priority", 0.0, 11.0)? as u8,
        requested: [share("cpu_request")?, share("memory_request")?, share("disk_space_request")?],
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Result<GoogleEvent, String>> {
        let events = google_events(text.as_bytes(), Path::new("part.csv"));
        events.map(|event| event.map_err(|error| error.to_string())).collect()
    }

    #[test]
    fn lines_of_the_trace() {
        let lines = "0,2,3418309,0,4155527081,0,70s3v5qRyCO/1PCdI6fVXnrW8FU/w+5CKRSa72xgcIo=,3,9,0.125,0.07446,0.0004244,0\n\n\
            600000000,,515042969,11,,5,user,0,1,,,,\n9223372036854775807,,1,1,1,4,u,0,0,0,0,0,0\n";
        let events: Vec<GoogleEvent> = read(lines).into_iter().map(Result::unwrap).collect();
        assert_eq!(events.len(), 2);
        assert_eq!(
            (events[0].event, events[0].machine, events[0].class, events[0].priority),
            (TaskEvent::Submit, 4_155_527_081, 3, 9)
        );
        assert_eq!(events[0].requested, [0.125, 0.07446, 0.0004244]);
        assert_eq!((events[1].time, events[1].machine, events[1].event), (600.0, 0, TaskEvent::Kill));
    }

    #[test]
    fn invalid_lines_are_named() {
        for (line, rule) in [
            ("0,1", "part.csv:1: has 2 columns: must have 13"),
            ("0,,x,0,0,0,u,0,0,0,0,0,0", "column 3 (job_id): 'x' is not a whole number"),
            ("0,,1,0,0,9,u,0,0,0,0,0,0", "column 6 (event_type): '9' is not a number from 0 to 8"),
        ] {
            let error = read(line)[0].clone().unwrap_err();
            assert!(error.contains(rule), "{error}");
        }
        assert!(read(&"1".repeat(5_000))[0].clone().unwrap_err().contains("longer than 4096 bytes"));
    }
}
