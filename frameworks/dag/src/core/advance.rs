//! Advances jobs: opens stages whose predecessors have finished, closes those whose tasks have, and ends the job.

use base::Time;
use sdk::Calls;

use super::record::{Goal, Outcome, Phase, Record, StagePhase};
use super::view::JobEvent;
use super::{Core, WorkItem, approximate, sizes};
use crate::job::Input;

impl Core {
    /// Opens and closes stages of one job, or ends it, as its state requires.
    pub(super) fn advance(&mut self, serial: u64, now: Time) {
        let Some(record) = self.records.get(&serial).filter(|record| !record.is_over()) else { return };
        if record.goal == Goal::Run {
            for stage in 0..record.stages.len() {
                self.advance_stage(serial, stage, now);
            }
        }
        self.end_if_done(serial, now);
    }

    fn advance_stage(&mut self, serial: u64, stage: usize, now: Time) {
        let Some(record) = self.records.get_mut(&serial) else { return };
        match record.stages[stage].head.phase {
            StagePhase::Blocked if record.is_unblocked(stage) => {
                if let Input::Files(input) = &record.stage(stage).input {
                    self.work_items.push(WorkItem::Scan { serial, stage, input: input.clone() });
                    record.stages[stage].head.phase = StagePhase::Planning;
                    self.changed.heads.insert(serial);
                } else {
                    self.open_stage(serial, stage);
                }
                if let Some(run) = self.records.get_mut(&serial).map(|record| &mut record.stages[stage]) {
                    run.head.opened.get_or_insert(now);
                }
            }
            StagePhase::Open if record.stages[stage].is_complete() => self.close_stage(serial, stage, now),
            _ => {}
        }
    }

    /// Opens a stage, whose tasks may run from now on.
    pub(super) fn open_stage(&mut self, serial: u64, stage: usize) {
        let (slots, drop) = (self.slots(serial, stage), self.drop_share(serial, stage));
        let Some(record) = self.records.get_mut(&serial) else { return };
        sizes::open(record, stage, slots, &self.memory);
        let run = &mut record.stages[stage];
        run.head.phase = StagePhase::Open;
        run.head.drop = drop;
        let tasks_to_drop = approximate::tasks_to_drop(record, stage);
        let run = &mut record.stages[stage];
        run.tasks_to_drop = tasks_to_drop;
        self.changed.heads.insert(serial);
        if run.sizing.is_some() {
            self.changed.sizings.insert((serial, stage));
        }
        (self.fresh, self.dirty) = (true, true);
        let name = record.name().to_owned();
        let stage = record.stage(stage).name.clone();
        self.record_event(JobEvent::Stage { name, stage, phase: StagePhase::Open });
    }

    /// Closes a stage whose tasks have all ended. Dropped tasks run after all if the estimate without them is not good
    /// enough.
    fn close_stage(&mut self, serial: u64, stage: usize, now: Time) {
        if self.run_dropped(serial, stage, now) {
            return;
        }
        let Some(record) = self.records.get_mut(&serial) else { return };
        let first = record.stages[stage].head.ended.is_none();
        let run = &mut record.stages[stage];
        run.head.phase = StagePhase::Done;
        run.head.total = Some(run.next);
        run.head.ended = Some(now);
        self.changed.heads.insert(serial);
        let (name, label) = (record.name().to_owned(), record.stage(stage).name.clone());
        if first {
            self.learn(serial, stage);
        }
        self.record_event(JobEvent::Stage { name, stage: label, phase: StagePhase::Done });
        // Stages that wait for this one come after it and are examined next; open ones may continue.
        (self.fresh, self.dirty) = (true, true);
    }

    /// Kills a job's tasks, after which the job ends with the goal's outcome.
    pub(super) fn end_all(&mut self, serial: u64, goal: Goal, why: String, calls: &mut Calls) {
        let Some(record) = self.records.get_mut(&serial).filter(|record| record.goal == Goal::Run) else { return };
        record.goal = goal;
        record.why = why;
        self.changed.heads.insert(serial);
        for stage in 0..record.stages.len() {
            record.stages[stage].ready.clear();
            let tasks: Vec<(u32, Phase)> =
                record.stages[stage].tasks().iter().map(|(index, task)| (*index, task.phase)).collect();
            for (index, phase) in tasks {
                match phase {
                    Phase::Waiting(_) => record.stages[stage].change(index, |task| task.phase = Phase::Failed),
                    Phase::Live { stopping: false, .. } => record.stages[stage].change(index, |task| {
                        if let Phase::Live { stopping, .. } = &mut task.phase {
                            *stopping = true;
                        }
                    }),
                    _ => continue,
                };
                if let Phase::Live { .. } = phase {
                    let attempt = record.stages[stage].tasks().get(&index).map_or(0, |task| task.attempts);
                    calls.kill(&record.task_id(stage, index, attempt), None);
                }
                self.changed.tasks.insert((serial, stage, index));
            }
        }
        self.jobs_to_advance.insert(serial);
    }

    /// Ends the jobs that were found to fail where no calls could be made.
    pub(super) fn end_failing_jobs(&mut self, calls: &mut Calls) {
        for (serial, why) in std::mem::take(&mut self.failing) {
            self.end_all(serial, Goal::Fail, why, calls);
        }
    }

    fn end_if_done(&mut self, serial: u64, now: Time) {
        let Some(record) = self.records.get_mut(&serial) else { return };
        let outcome = match record.goal {
            Goal::Run if record.stages.iter().all(|stage| stage.head.phase == StagePhase::Done) => Outcome::Finished,
            Goal::Run => return,
            _ if record.live() > 0 => return,
            Goal::Cancel => Outcome::Cancelled,
            Goal::Fail => Outcome::Failed,
        };
        record.outcome = Some(outcome);
        record.ended = Some(now);
        let (name, why) = (record.name().to_owned(), record.why.clone());
        self.ended_tasks += record.tasks_known();
        self.learn_job(serial);
        self.request_removal(serial);
        self.ended.push_back(serial);
        self.active.remove(&serial);
        self.changed.heads.insert(serial);
        self.record_event(JobEvent::Ended { name, outcome, why });
        self.forget_oldest();
    }
}

impl Record {
    /// Returns the number of tasks that exist or are expected.
    pub(super) fn tasks_known(&self) -> u64 {
        self.stages.iter().map(|run| u64::from(run.head.total.unwrap_or(0).max(run.next))).sum()
    }
}
