//! Records of a bundled framework beside those of every framework: the kinds of its tasks, tasks that no job submitted,
//! and its own measures.

use std::collections::BTreeMap;

use resources::Quantities;
use rustc_hash::FxHashMap;

use super::recorder::Recorder;
use super::recorder::seconds;
use crate::bundled::{FrameworkEvent, TimedEvent};

/// A task that was not submitted: a worker of a job that takes as many as the offers allow.
#[derive(Debug)]
pub(super) struct UnsubmittedTask {
    pub needs: Quantities,
    pub launched: f64,
    pub agent: u32,
}

/// A measure that changes in steps, and may have no value for a while.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    value: Option<f64>,
    since: f64,
    sum: f64,
    seconds: f64,
}

impl Level {
    fn set(&mut self, value: Option<f64>, now: f64) {
        *self = Level { value, since: now, ..self.until(now) };
    }

    fn until(self, now: f64) -> Level {
        let Some(value) = self.value else { return self };
        let passed = (now - self.since).max(0.0);
        Level { sum: self.sum + value * passed, seconds: self.seconds + passed, since: now, ..self }
    }
}

/// Records that only bundled frameworks have.
#[derive(Debug, Default)]
pub(super) struct BundledRecords {
    /// Number and attempt of tasks whose ids do not contain them.
    pub names: FxHashMap<String, (u64, u32)>,
    /// Id of the last launch of each task, by its number.
    pub newest: FxHashMap<u64, String>,
    pub unsubmitted_tasks: FxHashMap<String, UnsubmittedTask>,
    levels: BTreeMap<usize, Level>,
    /// Sum and number of the values that were found, by measure.
    found: BTreeMap<usize, (f64, u64)>,
}

impl Recorder {
    /// Records an event of a bundled framework.
    pub(crate) fn record_event(&mut self, framework: usize, entry: TimedEvent) {
        let now = seconds(entry.at);
        let records = &mut self.records[framework];
        match entry.event {
            FrameworkEvent::JobStarted(task) => records.job_started(task, now),
            FrameworkEvent::JobEnded(task, well) => records.job_ended(task, well, now),
            FrameworkEvent::Demand(wanted) => records.waiting = wanted,
            FrameworkEvent::MeasureChanged(measure, value) => {
                records.bundled.levels.entry(measure).or_default().set(value, now)
            }
            FrameworkEvent::MeasureSample(measure, value) => {
                let (sum, count) = records.bundled.found.entry(measure).or_default();
                (*sum, *count) = (*sum + value, *count + 1);
            }
        }
    }

    /// Returns the current value of the measure with this index.
    pub fn level(&self, framework: usize, measure: usize) -> Option<f64> {
        self.records[framework].bundled.levels.get(&measure)?.value
    }

    /// Returns the mean of the measure with this index: over time, or over the values that were found.
    pub fn mean_of(&self, framework: usize, measure: usize, now: f64) -> Option<f64> {
        let bundled = &self.records[framework].bundled;
        let over_time =
            bundled.levels.get(&measure).map(|level| level.until(now)).map(|level| (level.sum, level.seconds));
        let each = bundled.found.get(&measure).map(|(sum, count)| (*sum, *count as f64));
        let (sum, of) = over_time.or(each).filter(|(_, of)| *of > 0.0)?;
        Some(sum / of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_counts_while_it_is_there() {
        let mut level = Level::default();
        level.set(Some(2.0), 10.0);
        level.set(Some(4.0), 20.0);
        level.set(None, 25.0);
        level.set(Some(0.0), 95.0);
        let all = level.until(100.0);
        assert_eq!((all.sum, all.seconds), (40.0, 20.0));
    }
}
