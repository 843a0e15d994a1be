//! Handles status updates: a task's progress, end, next attempt, or loss.

use std::time::Duration;

use base::Time;
use jobs::ends::{End, UNREACHABLE_MAX, kill_unneeded, state_and_message};
use sdk::v1::{TaskId, TaskState, TaskStatus};
use sdk::{Calls, is_terminal};

use super::record::{Goal, LiveState, Phase};
use super::view::JobEvent;
use super::{Core, MACHINES_MAX, TaskKey};
use crate::job::Class;
use crate::task::Fault;

/// Number of consecutive losses of a task from which its job fails: no further attempt would help.
const LOSSES_MAX: u32 = 50;

impl Core {
    pub(super) fn update(&mut self, status: &TaskStatus, now: Time, calls: &mut Calls) {
        let id = &status.task_id.value;
        let Some(key) = self.current(id) else { return kill_unneeded(status, now, calls) };
        self.record_task_event(key, status);
        if is_terminal(status.state()) {
            self.task_ended(key, status, now);
        } else {
            self.progress(key, status, now);
        }
        self.jobs_to_advance.insert(key.0);
        self.changed.tasks.insert(key);
    }

    fn record_task_event(&mut self, (serial, stage, index): TaskKey, status: &TaskStatus) {
        let Some(record) = self.records.get(&serial) else { return };
        let event = JobEvent::Task {
            name: record.name().to_owned(),
            stage: record.stage(stage).name.clone(),
            index,
            task_id: status.task_id.value.to_string(),
            state: status.state().as_str_name().to_owned(),
            message: status.message.clone().unwrap_or_default(),
        };
        self.record_event(event);
    }

    fn progress(&mut self, key: TaskKey, status: &TaskStatus, now: Time) {
        let (serial, stage, index) = key;
        let step = match status.state() {
            TaskState::TaskStaging | TaskState::TaskStarting => Some(LiveState::Staging),
            TaskState::TaskRunning => Some(LiveState::Running),
            TaskState::TaskUnreachable | TaskState::TaskUnknown => Some(LiveState::Unreachable),
            _ => None,
        };
        match step {
            Some(LiveState::Unreachable) => self.unreachable.add(key, now),
            Some(_) => self.unreachable.remove(key),
            None => {}
        }
        let Some(run) = self.records.get_mut(&serial).and_then(|record| record.stages.get_mut(stage)) else { return };
        let began = run.change(index, |task| {
            let Phase::Live { step: known, launched, running, .. } = &mut task.phase else { return None };
            *known = step.unwrap_or(*known);
            let begins = step == Some(LiveState::Running) && running.is_none();
            begins.then(|| {
                *running = Some(now);
                now.since(*launched)
            })
        });
        if let Some(Some(began)) = began {
            self.moving.measured(began.as_secs_f64() * 1e3);
        }
    }

    fn task_ended(&mut self, key: TaskKey, status: &TaskStatus, now: Time) {
        let (serial, stage, index) = key;
        self.unreachable.remove(key);
        self.sprint_ended(key, now);
        let Some(record) = self.records.get_mut(&serial) else { return };
        let Some(task) = record.stages[stage].tasks().get(&index) else { return };
        let Phase::Live { launched, stopping, sprint, .. } = task.phase else { return };
        if sprint > 0 && status.state() == TaskState::TaskDropped && self.without_limits.len() < MACHINES_MAX {
            self.without_limits.insert(task.machine.id.clone());
        }
        let took = now.since(launched);
        let mut end = End::of(status.state());
        // A task that found its sources gone, or did not reach the framework, has not failed.
        let fault = Fault::of_message(status.message.as_deref().unwrap_or_default());
        let fault = fault.filter(|_| end == End::Failed && record.job.stages[stage].needs_runner());
        match fault {
            Some(Fault::Source | Fault::Framework) => end = End::Lost,
            Some(Fault::Input) => end = End::FailedPermanently,
            _ => {}
        }
        match end {
            End::Finished => self.totals.finished += 1,
            End::Failed | End::FailedPermanently => self.totals.failed += 1,
            End::Lost => self.totals.lost += 1,
        }
        if end == End::Finished {
            let run = &mut record.stages[stage];
            let millis = u32::try_from(took.as_millis()).unwrap_or(u32::MAX);
            run.change(index, |task| {
                task.phase = Phase::Done { at: now, millis };
                task.message = None;
                task.losses = 0;
            });
            run.took = (run.took.0 + u64::from(millis), run.took.1 + 1);
            run.squares += took.as_secs_f64().powi(2);
            run.sprinted += if sprint > 0 { u64::from(millis) } else { 0 };
            if record.job.priority == Class::High {
                self.tuning.task_finished(&run.key.clone(), took, sprint > 0);
            }
            return self.measured(serial, stage, index, took);
        }
        let text = fault.map_or_else(
            || state_and_message(status),
            |fault| format!("{}: {}", fault.what(), state_and_message(status)),
        );
        record.stages[stage].change(index, |task| match &task.message {
            // The runner's report says more than the status.
            Some(known) if fault.is_some() && !known.is_empty() => {}
            _ => task.set_message(&text),
        });
        self.unmeasured(serial, stage, index);
        self.try_again(key, end, stopping, now);
    }

    /// Schedules the next attempt of a task that did not finish, or fails its job.
    fn try_again(&mut self, key: TaskKey, end: End, stopping: bool, now: Time) {
        let (serial, stage, index) = key;
        let Some(record) = self.records.get_mut(&serial) else { return };
        let (retries, restart) = (record.job.stages[stage].retries, record.job.stages[stage].restart);
        let over = stopping || record.goal != Goal::Run;
        let wait = record.stages[stage].change(index, |task| {
            let wait = match end {
                _ if over => None,
                End::Lost if task.losses < LOSSES_MAX => {
                    task.losses += 1;
                    Some(restart.wait(task.losses))
                }
                End::Failed if task.failures < retries => {
                    task.failures += 1;
                    Some(restart.wait(task.failures))
                }
                _ => None,
            };
            task.phase = wait.map_or(Phase::Failed, |wait| Phase::Waiting(now + wait));
            wait
        });
        match wait.flatten() {
            Some(wait) => self.wait_until(key, now + wait, now),
            None if !over => self.fail_by(key),
            None => {}
        }
    }

    /// Fails the job of a task that has failed for good.
    fn fail_by(&mut self, (serial, stage, index): TaskKey) {
        let Some(record) = self.records.get(&serial) else { return };
        let message = record.stages[stage].tasks().get(&index).and_then(|task| task.message.as_deref());
        let name = &record.stage(stage).name;
        let why = format!("task {index} of stage '{name}' has failed: {}", message.unwrap_or("without a message"));
        self.failing.push((serial, why));
    }

    /// Abandons tasks on agents that have been unreachable for too long: they are replaced now, and killed if their
    /// agent returns.
    pub(super) fn check_unreachable(&mut self, now: Time, calls: &mut Calls) {
        for key in self.unreachable.overdue(UNREACHABLE_MAX, now) {
            self.unreachable.remove(key);
            let (serial, stage, index) = key;
            let Some(record) = self.records.get(&serial) else { continue };
            let Some(task) = record.stages[stage].tasks().get(&index).filter(|task| task.is_live()) else { continue };
            let task_id = record.task_id(stage, index, task.attempts);
            calls.kill(&task_id, None);
            let status = TaskStatus {
                task_id: TaskId { value: task_id.into() },
                state: TaskState::TaskLost as i32,
                message: Some("its agent did not answer for too long".to_owned()),
                ..Default::default()
            };
            self.update(&status, now, calls);
        }
    }

    /// Returns the longest time that a task of a stage has been on its agent so far.
    pub(super) fn longest_run(&self, serial: u64, stage: usize, now: Time) -> Duration {
        let run = self.records.get(&serial).and_then(|record| record.stages.get(stage));
        let since = run.into_iter().flat_map(|run| run.tasks().values()).filter_map(|task| match task.phase {
            Phase::Live { launched, .. } => Some(now.since(launched)),
            _ => None,
        });
        since.max().unwrap_or_default()
    }
}
