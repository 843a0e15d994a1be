//! What each task of a stage is given: its part of the input, of a size that is fixed or found on the way (Libra).

use std::time::Duration;

use super::Core;
use super::record::{Record, StageRun};
use crate::job::{Grouping, Input, Job, Size, Stage};
use crate::sizing::{Fixed, Memory, Rule, Sample, Sizing, SizingConfig, Tuner};
use crate::split::{Part, Pieces};

/// Chunks that a stage is cut into before anything of it is known, for each slot.
const FIRST_PARTS: u32 = 8;

/// By what a stage is known again in a later run: its program, and the kind of its input.
pub(super) fn key(job: &Job, stage: &Stage) -> String {
    let kind = match &stage.input {
        Input::Tasks(_) => "tasks".to_owned(),
        Input::Files(files) => files.by.name().to_owned(),
        Input::Range(_) => "range".to_owned(),
        Input::Stages(_) => "stages".to_owned(),
    };
    let run = match &stage.run {
        jobs::Run::Command(command) => command.clone(),
        jobs::Run::Program(words) => words.join(" "),
        jobs::Run::Image => String::new(),
    };
    // A long command is known by what it is a part of.
    if run.len() > 512 { format!("{kind} {}/{}", job.name, stage.name) } else { format!("{kind} {run}") }
}

/// How many tasks a stage has, if that is known before they run; `sources` has the number of tasks of a stage that it
/// reads.
fn total(stage: &Stage, pieces: &Pieces, sources: impl Fn(usize) -> (u32, Option<u32>)) -> Option<u32> {
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    match &stage.input {
        Input::Tasks(count) => Some(*count),
        Input::Range(range) => match range.size {
            Size::Fixed(size) => Some(small((range.to - range.from).div_ceil(size.max(1)))),
            Size::Auto | Size::Target(_) => None,
        },
        Input::Files(files) => match files.size {
            Size::Fixed(units) => Some(parts_from(pieces, 0, units, stage.spans_files())),
            Size::Auto | Size::Target(_) => None,
        },
        Input::Stages(input) => Some(match input.by {
            Grouping::All => 1,
            Grouping::Task => input.stages.first().map_or(0, |&source| sources(source).0.div_ceil(input.size.max(1))),
            Grouping::Partition => input.stages.first().and_then(|&source| sources(source).1).unwrap_or(1),
        }),
    }
}

/// How many parts of `units` there are from the piece `first` on.
fn parts_from(pieces: &Pieces, first: u64, units: u64, spans_files: bool) -> u32 {
    let (mut count, mut next) = (0, first);
    while let Some(part) = pieces.part(next, units, spans_files) {
        next += part.1;
        count += 1;
    }
    count
}

/// The size of a stage's tasks, where it is found on the way.
fn sizing(stage: &Stage, job: &Job, units: u64, slots: u32, memory: &Memory) -> Option<Sizing> {
    let size = match &stage.input {
        Input::Files(files) => files.size,
        Input::Range(range) => range.size,
        Input::Tasks(_) | Input::Stages(_) => return None,
    };
    let first = Fixed::new(Rule::Chunks(FIRST_PARTS), units, slots).size();
    match size {
        Size::Fixed(size) => Some(Sizing::Fixed(Fixed::new(Rule::Size(size), units, slots))),
        Size::Auto => {
            let config = SizingConfig { start: first.max(1), most: units.max(1), ..SizingConfig::default() };
            let tuner = match memory.recall(&key(job, stage)) {
                Some(before) => Tuner::resume(config, before),
                None => Tuner::new(config),
            };
            Some(Sizing::Tuned(Box::new(tuner)))
        }
        // Until a task has shown how long a unit takes, what earlier runs found counts.
        Size::Target(target) => {
            let known = memory.recall(&key(job, stage)).map(|before| before.rate * target.as_secs_f64());
            let size = known.map_or(first, |units| units.max(1.0) as u64);
            Some(Sizing::Fixed(Fixed::new(Rule::Size(size), units, slots)))
        }
    }
}

/// Opens a stage: its total and its sizes are set.
pub(super) fn open(record: &mut Record, stage: usize, slots: u32, memory: &Memory) {
    let job = record.job.clone();
    let sources = |source: usize| {
        let run = &record.stages[source];
        (run.head.total.unwrap_or(run.next), job.stages[source].partitions)
    };
    let total = total(&job.stages[stage], &record.stages[stage].pieces, sources);
    let run = &mut record.stages[stage];
    run.head.total = total;
    run.left = units_left(&job.stages[stage], run);
    if run.sizing.is_none() {
        run.sizing = sizing(&job.stages[stage], &job, run.left, slots, memory);
    }
}

/// What is left of an open stage's input follows from the parts that were given. An earlier version may have cut the
/// rest otherwise.
pub(super) fn settle(record: &mut Record, stage: usize) {
    let job = record.job.clone();
    let (run, stage) = (&mut record.stages[stage], &job.stages[stage]);
    run.left = units_left(stage, run);
    if let Input::Files(files) = &stage.input
        && let Size::Fixed(units) = files.size
    {
        run.head.total = Some(run.next + parts_from(&run.pieces, run.cursor, units, stage.spans_files()));
    }
}

fn units_left(stage: &Stage, run: &StageRun) -> u64 {
    match &stage.input {
        Input::Tasks(count) => u64::from(*count).saturating_sub(u64::from(run.next)),
        Input::Range(range) => (range.to - range.from).saturating_sub(run.cursor),
        Input::Files(_) => run.pieces.units_from(run.cursor),
        Input::Stages(_) => 0,
    }
}

/// The part of the next task, which goes to this machine; `slots` tasks can run at once.
pub(super) fn next_part(stage: &Stage, run: &mut StageRun, machine: &str, slots: u32) -> Part {
    let left = run.left;
    let size = run.sizing.as_mut().map_or(1, |sizing| {
        sizing.set_left(left, slots);
        sizing.next_size(machine).max(1)
    });
    let part = match &stage.input {
        Input::Tasks(_) => Part(run.cursor, 1, 1, 0),
        Input::Range(_) => {
            let (asked, size) = (size, size.min(left));
            Part(run.cursor, size, size, asked)
        }
        Input::Files(_) => run.pieces.part(run.cursor, size, run.spans_files).unwrap_or(Part(run.cursor, 0, 0, 0)),
        Input::Stages(input) => match input.by {
            Grouping::Task => Part(run.cursor, u64::from(input.size), 1, 0),
            Grouping::All | Grouping::Partition => Part(run.cursor, 1, 1, 0),
        },
    };
    // The tuner does not wait for a task that says nothing of its size.
    if part.3 == 0
        && let Some(Sizing::Tuned(tuner)) = &mut run.sizing
    {
        tuner.lost(machine, size);
    }
    run.cursor += part.1;
    run.left = run.left.saturating_sub(part.2);
    part
}

impl Core {
    /// A task has finished: its duration says how large the next ones should be.
    pub(super) fn measured(&mut self, serial: u64, stage: usize, index: u32, took: Duration) {
        let Some(record) = self.records.get_mut(&serial) else { return };
        let job = record.job.clone();
        let run = &mut record.stages[stage];
        let Some((machine, part)) = run.tasks().get(&index).map(|task| (task.machine.clone(), task.part)) else {
            return;
        };
        let (units, asked) = (part.2, part.3);
        let target = match &job.stages[stage].input {
            Input::Files(input) => target(input.size),
            Input::Range(input) => target(input.size),
            Input::Tasks(_) | Input::Stages(_) => return,
        };
        match (&mut run.sizing, target) {
            // Pieces are not cut, so the units of a part differ from those that were asked for.
            (Some(sizing @ Sizing::Tuned(_)), _) if asked > 0 && units > 0 => {
                let duration = took.mul_f64(asked as f64 / units as f64);
                sizing.finished(Sample { machine: &machine.id, size: asked, duration });
            }
            (Some(sizing), Some(target)) if units > 0 => {
                // Half of the way: single tasks say little.
                let wanted = units as f64 * target.as_secs_f64() / took.as_secs_f64().max(1e-3);
                let now = match sizing {
                    Sizing::Fixed(fixed) => fixed.size() as f64,
                    Sizing::Tuned(tuner) => tuner.size() as f64,
                };
                let next = (now * wanted).sqrt().clamp(1.0, u64::MAX as f64 / 4.0) as u64;
                *sizing = Sizing::Fixed(Fixed::new(Rule::Size(next), 1, 1));
            }
            _ => return,
        }
        self.changed.sizings.insert((serial, stage));
    }

    /// A task did not finish: the tuner must not wait for it.
    pub(super) fn unmeasured(&mut self, serial: u64, stage: usize, index: u32) {
        let Some(run) = self.records.get_mut(&serial).and_then(|r| r.stages.get_mut(stage)) else { return };
        let Some((machine, asked)) = run.tasks().get(&index).map(|task| (task.machine.clone(), task.part.3)) else {
            return;
        };
        if let Some(sizing) = &mut run.sizing {
            sizing.lost(&machine.id, asked);
        }
    }

    /// A stage has finished: what it showed is remembered.
    pub(super) fn learn(&mut self, serial: u64, stage: usize) {
        let Some(record) = self.records.get(&serial) else { return };
        let (job, run) = (record.job.clone(), &record.stages[stage]);
        let key = key(&job, &job.stages[stage]);
        if let Some(mean) = run.mean() {
            self.history.observe(&key, mean);
            self.changed.learned = true;
        }
        if let Some(Sizing::Tuned(tuner)) = &run.sizing
            && let Some(found) = tuner.found()
        {
            self.memory.keep(&key, found);
        }
    }
}

fn target(size: Size) -> Option<Duration> {
    match size {
        Size::Target(target) => Some(target),
        Size::Auto | Size::Fixed(_) => None,
    }
}

/// What is counted of a stage's input; none where it is not shared by size.
pub(super) fn unit(stage: &Stage) -> Option<&'static str> {
    match &stage.input {
        Input::Files(files) => Some(files.by.name()),
        Input::Range(_) => Some("numbers"),
        Input::Tasks(_) | Input::Stages(_) => None,
    }
}
