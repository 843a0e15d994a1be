//! Handles lost outputs: the tasks that wrote them run again, if the outputs are still to be read.
//!
//! Outputs in sandboxes are lost with their agent. Those in a shared directory are found missing by their readers.

use super::record::{Phase, StagePhase};
use super::{Core, Reply, RequestError};
use crate::job::{Grouping, Input, StagesInput};
use crate::split::Part;
use crate::task::SandboxSource;

impl Core {
    /// Returns whether outputs of the job stay in the sandboxes.
    pub(super) fn keeps_in_sandboxes(&self, serial: u64) -> bool {
        self.records.get(&serial).is_none_or(|record| self.shared(record).is_none())
    }

    /// Records that an agent is lost with all outputs in its sandboxes.
    pub(super) fn agent_lost(&mut self, agent_id: &str) {
        for serial in self.active.clone() {
            if !self.keeps_in_sandboxes(serial) {
                continue;
            }
            let Some(record) = self.records.get_mut(&serial) else { continue };
            let mut any = false;
            for stage in 0..record.stages.len() {
                if record.job.stages[stage].outputs.is_empty() {
                    continue;
                }
                let run = &mut record.stages[stage];
                let there = |task: &super::record::Task| {
                    matches!(task.phase, Phase::Done { .. }) && task.machine.id == agent_id
                };
                let gone: Vec<u32> =
                    run.tasks().iter().filter(|(_, task)| there(task)).map(|(index, _)| *index).collect();
                any |= !gone.is_empty();
                run.gone.extend(gone);
            }
            if any {
                self.remake(serial);
            }
        }
    }

    /// Records that a reader cannot read the outputs of a task; `attempt` is the one that it looked for.
    pub(super) fn output_gone(&mut self, serial: u64, stage: usize, index: u32, attempt: Option<u32>) {
        let Some(run) = self.records.get_mut(&serial).and_then(|record| record.stages.get_mut(stage)) else { return };
        let Some(task) = run.tasks().get(&index) else { return };
        // Another reader may have reported it before, and the output may exist again.
        if matches!(task.phase, Phase::Done { .. }) && attempt.is_none_or(|attempt| attempt == task.attempts) {
            run.gone.insert(index);
            self.remake(serial);
        }
    }

    /// Runs tasks again whose outputs are lost and are to be read by stages that have not finished. Goes from the last
    /// stage to the first, since a task that runs again reads the outputs of earlier stages.
    fn remake(&mut self, serial: u64) {
        let Some(record) = self.records.get_mut(&serial) else { return };
        let mut again = Vec::new();
        for stage in (0..record.stages.len()).rev() {
            if record.stages[stage].gone.is_empty() {
                continue;
            }
            let readers: Vec<usize> = record.readers(stage).collect();
            // Outputs that no stage reads are the job's result.
            let is_open = |reader: &usize| record.stages[*reader].head.phase != StagePhase::Done;
            let is_wanted = readers.is_empty() || readers.iter().any(is_open);
            if !is_wanted {
                continue;
            }
            let run = &mut record.stages[stage];
            for index in std::mem::take(&mut run.gone) {
                run.change(index, |task| {
                    task.phase = Phase::Waiting(base::Time::EPOCH);
                    task.losses = task.losses.saturating_add(1);
                    task.set_message("its outputs are lost and are computed again");
                });
                again.push((serial, stage, index));
            }
            run.head.phase = StagePhase::Open;
            self.changed.heads.insert(serial);
        }
        for key in again {
            self.changed.tasks.insert(key);
            self.totals.remade += 1;
            self.make_ready(key);
        }
        self.jobs_to_advance.insert(serial);
    }

    /// Returns the locations of the outputs that a task reads, if they are in sandboxes.
    pub(super) fn sources(&self, task_id: &str) -> Result<Reply, RequestError> {
        let (serial, stage, index) =
            self.current(task_id).ok_or_else(|| RequestError::NoSuchTask(task_id.to_owned()))?;
        let record = &self.records[&serial];
        let Input::Stages(input) = &record.stage(stage).input else { return Ok(Reply::Sources(Vec::new())) };
        let part = record.stages[stage].tasks().get(&index).map_or(Part::default(), |task| task.part);
        let mut sources = Vec::new();
        for &source in &input.stages {
            let run = &record.stages[source];
            for (number, task) in run.tasks().range(tasks_read(input, part)) {
                if task.phase == Phase::Dropped {
                    continue;
                }
                let id = record.task_id(source, *number, task.attempts);
                let framework = self.framework_id.as_deref().unwrap_or_default();
                sources.push(SandboxSource {
                    stage: record.stage(source).name.clone(),
                    index: *number,
                    attempt: task.attempts,
                    agent: task.machine.address.clone(),
                    path: format!("/frameworks/{framework}/executors/{id}/runs/latest"),
                });
            }
        }
        Ok(Reply::Sources(sources))
    }
}

/// Returns the numbers of the tasks of each source whose outputs a task reads.
pub(super) fn tasks_read(input: &StagesInput, part: Part) -> std::ops::Range<u32> {
    match input.by {
        Grouping::All | Grouping::Partition => 0..u32::MAX,
        Grouping::Task => {
            let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
            small(part.0)..small(part.0 + part.1)
        }
    }
}
