//! Divides the input of a stage among its tasks: the size of a part is fixed, or chosen while the stage runs (Libra).

use std::time::Duration;

use super::Core;
use super::record::{Record, StagePhase, StageRun};
use crate::job::{Grouping, Input, Job, Size, Stage};
use crate::sizing::{Fixed, Memory, Rule, Sample, Sizing, SizingConfig, Tuner};
use crate::split::{Part, Pieces};

/// Number of parts for each slot into which a stage is divided before anything is known about it.
const FIRST_PARTS: u32 = 8;

/// Returns the key by which a later run recognizes a stage: its program, and the kind of its input.
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
    // A stage with a long command is recognized by the names of its job and stage.
    if run.len() > 512 { format!("{kind} {}/{}", job.name, stage.name) } else { format!("{kind} {run}") }
}

/// Returns the number of a stage's tasks, if it is known before they run. `pieces` are its input files, if they were
/// examined. `sources` returns the number of tasks of a stage that it reads, if that is known, and of its partitions.
fn total(stage: &Stage, pieces: Option<&Pieces>, sources: impl Fn(usize) -> (Option<u32>, Option<u32>)) -> Option<u32> {
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    match &stage.input {
        Input::Tasks(count) => Some(*count),
        Input::Range(range) => match range.size {
            Size::Fixed(size) => Some(small((range.to - range.from).div_ceil(size.max(1)))),
            Size::Auto | Size::Target(_) => None,
        },
        Input::Files(files) => match files.size {
            Size::Fixed(units) => pieces.map(|pieces| parts_from(pieces, 0, units, stage.spans_files())),
            Size::Auto | Size::Target(_) => None,
        },
        Input::Stages(input) => match (input.by, input.stages.first()) {
            (Grouping::All, _) => Some(1),
            (Grouping::Task, None) => Some(0),
            (Grouping::Task, Some(&source)) => sources(source).0.map(|count| count.div_ceil(input.size.max(1))),
            (Grouping::Partition, source) => Some(source.and_then(|&source| sources(source).1).unwrap_or(1)),
        },
    }
}

/// Returns the number of tasks of each stage, as far as it is known: before a stage opens, by the job's definition and
/// the stages that it reads.
pub(super) fn totals(record: &Record) -> Vec<Option<u32>> {
    let mut known: Vec<Option<u32>> = Vec::with_capacity(record.stages.len());
    // A stage reads only stages before it.
    for (run, stage) in record.stages.iter().zip(&record.job.stages) {
        let sources = |source: usize| (known.get(source).copied().flatten(), record.job.stages[source].partitions);
        known.push(run.head.total.or_else(|| match run.head.phase {
            StagePhase::Open | StagePhase::Done => Some(run.next.saturating_add(run.fresh())),
            StagePhase::Blocked | StagePhase::Planning => total(stage, None, sources),
        }));
    }
    known
}

/// Returns the number of parts of `units` from the piece `first` on.
fn parts_from(pieces: &Pieces, first: u64, units: u64, spans_files: bool) -> u32 {
    let (mut count, mut next) = (0, first);
    while let Some(part) = pieces.part(next, units, spans_files) {
        next += part.1;
        count += 1;
    }
    count
}

/// Returns the sizing of a stage whose task size is chosen while it runs.
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
        // Until a task has shown how long a unit takes, the result of earlier runs is used.
        Size::Target(target) => {
            let known = memory.recall(&key(job, stage)).map(|before| before.rate * target.as_secs_f64());
            let size = known.map_or(first, |units| units.max(1.0) as u64);
            Some(Sizing::Fixed(Fixed::new(Rule::Size(size), units, slots)))
        }
    }
}

/// Sets the number and the sizes of a stage's tasks when it opens.
pub(super) fn open(record: &mut Record, stage: usize, slots: u32, memory: &Memory) {
    let job = record.job.clone();
    let sources = |source: usize| {
        let run = &record.stages[source];
        (Some(run.head.total.unwrap_or(run.next)), job.stages[source].partitions)
    };
    let total = total(&job.stages[stage], Some(&record.stages[stage].pieces), sources);
    let run = &mut record.stages[stage];
    run.head.total = total;
    run.left = units_left(&job.stages[stage], run);
    if run.sizing.is_none() {
        run.sizing = sizing(&job.stages[stage], &job, run.left, slots, memory);
    }
}

/// Computes the unassigned input of an open stage from the assigned parts. An earlier version may have divided the rest
/// differently.
pub(super) fn compute_left(record: &mut Record, stage: usize) {
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

/// Returns the part of the next task, which runs on this agent; `slots` tasks can run at once.
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
    // The tuner must not wait for a task that says nothing about its size.
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
    /// Adjusts the size of the next tasks to the duration of a task that has finished.
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
            // Pieces are not cut, so the units of a part differ from the requested ones.
            (Some(sizing @ Sizing::Tuned(_)), _) if asked > 0 && units > 0 => {
                let duration = took.mul_f64(asked as f64 / units as f64);
                sizing.finished(Sample { machine: &machine.id, size: asked, duration });
            }
            (Some(sizing), Some(target)) if units > 0 => {
                // Move only half of the way on a logarithmic scale: a single task says little.
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

    /// Tells the tuner not to wait for a task that did not finish.
    pub(super) fn unmeasured(&mut self, serial: u64, stage: usize, index: u32) {
        let Some(run) = self.records.get_mut(&serial).and_then(|r| r.stages.get_mut(stage)) else { return };
        let Some((machine, asked)) = run.tasks().get(&index).map(|task| (task.machine.clone(), task.part.3)) else {
            return;
        };
        if let Some(sizing) = &mut run.sizing {
            sizing.lost(&machine.id, asked);
        }
    }

    /// Records the durations and sizes of a stage that has finished.
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

/// Returns the unit of a stage's input; `None` if the input is not divided by size.
pub(super) fn unit(stage: &Stage) -> Option<&'static str> {
    match &stage.input {
        Input::Files(files) => Some(files.by.name()),
        Input::Range(_) => Some("numbers"),
        Input::Tasks(_) | Input::Stages(_) => None,
    }
}
