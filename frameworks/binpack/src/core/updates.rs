//! Applies status updates to a job: progress, an end, another attempt, or a loss.

use std::time::Duration;

use base::Time;
use jobs::ends::{End, UNREACHABLE_MAX, kill_unneeded, state_and_message};
use sdk::v1::{TaskState, TaskStatus};
use sdk::{Calls, is_terminal};

use super::Core;
use super::record::{Goal, LiveState, Phase, Record, StopReason, parse_task_id};
use super::view::{JobEvent, State};
use crate::job::{GangEnd, Kind};

impl Core {
    pub(super) fn update(&mut self, status: &TaskStatus, now: Time, calls: &mut Calls) {
        let id = &status.task_id.value;
        let state = status.state();
        let found = parse_task_id(id).filter(|(serial, number)| self.is_current(*serial, *number, id));
        let Some((serial, number)) = found else { return kill_unneeded(status, now, calls) };
        self.record_task_event(serial, number, status);
        if is_terminal(state) {
            self.ended(serial, number, status, now);
        } else {
            self.progress(serial, number, status, now);
        }
        self.jobs_to_advance.insert(serial);
        self.changed.instances.insert((serial, number));
    }

    /// Returns whether this is the newest attempt of the task and has not ended.
    pub(super) fn is_current(&self, serial: u64, number: u32, task_id: &str) -> bool {
        let instance = self.records.get(&serial).and_then(|r| r.get(number));
        instance.and_then(|i| i.live()).is_some_and(|live| live.place.task_id == task_id)
    }

    fn record_task_event(&mut self, serial: u64, number: u32, status: &TaskStatus) {
        let Some(record) = self.records.get(&serial) else { return };
        let Some(live) = record.get(number).and_then(|i| i.live()) else { return };
        let version = record.get(number).map_or(0, |i| i.version);
        let wanted = record.versions().iter().find(|v| v.number == version).unwrap_or(record.current());
        let event = JobEvent::Task {
            name: record.name().to_owned(),
            kind: record.kind(),
            number,
            version,
            since: wanted.since.as_secs_f64(),
            place: live.place.clone(),
            state: status.state().as_str_name().to_owned(),
            healthy: status.healthy,
            message: status.message.clone().unwrap_or_default(),
        };
        self.record_event(event);
    }

    fn progress(&mut self, serial: u64, number: u32, status: &TaskStatus, now: Time) {
        let Some(record) = self.records.get_mut(&serial) else { return };
        let stage = match status.state() {
            TaskState::TaskStaging => Some(LiveState::Staging),
            TaskState::TaskStarting => Some(LiveState::Starting),
            TaskState::TaskRunning => Some(LiveState::Running),
            TaskState::TaskUnreachable | TaskState::TaskUnknown => Some(LiveState::Unreachable),
            _ => None,
        };
        if stage == Some(LiveState::Unreachable) {
            self.unreachable.add((serial, number), now);
        } else if stage.is_some() {
            self.unreachable.remove((serial, number));
        }
        record.change(number, |instance| {
            let Some(live) = instance.live_mut() else { return };
            live.stage = stage.unwrap_or(live.stage);
            if stage == Some(LiveState::Running) {
                live.running.get_or_insert(now);
                live.healthy = status.healthy.or(live.healthy);
            }
        });
    }

    fn ended(&mut self, serial: u64, number: u32, status: &TaskStatus, now: Time) {
        self.learn_from_end(serial, number, status);
        let is_agents = self.counts_against_agent(serial, number, status, now);
        self.release(serial, number);
        let Some(record) = self.records.get_mut(&serial) else { return };
        let end = End::of(status.state());
        match end {
            End::Finished => self.totals.finished += 1,
            End::Failed | End::FailedPermanently => self.totals.failed += 1,
            End::Lost => self.totals.lost += 1,
        }
        record.change(number, |instance| instance.set_message(&state_and_message(status)));
        let stopping = record.get(number).and_then(|i| i.live()).and_then(|live| live.stopping);
        if record.head.goal == Goal::Stop {
            return record.done(number, end == End::Finished, now);
        }
        match (record.kind(), stopping) {
            (_, Some(StopReason::Job)) => record.done(number, end == End::Finished, now),
            (_, Some(StopReason::Surplus)) => {
                record.remove(number, now);
            }
            (Kind::Service, _) => {
                let replaced = stopping == Some(StopReason::Replace) || is_agents;
                record.service_task_ended(number, end, replaced, now);
                self.enqueue(serial, number, now);
            }
            (Kind::Gang, _) => self.rank_ended(serial, number, end, now),
            (Kind::Batch | Kind::Array, _) => {
                let replaced = stopping == Some(StopReason::Replace) || is_agents;
                record.batch_task_ended(number, end, replaced, now);
                self.enqueue(serial, number, now);
            }
        }
    }

    /// Removes the resources of a task from the usage of its agent.
    fn release(&mut self, serial: u64, number: u32) {
        self.unreachable.remove((serial, number));
        let Some(record) = self.records.get(&serial) else { return };
        // A task with constraints may be placed on the agent now.
        self.dirty |= !record.job().constraints.is_empty();
        let Some(live) = record.get(number).and_then(|i| i.live()) else { return };
        if let Some(usage) = self.usage.get_mut(&live.place.agent_id) {
            *usage = usage.minus(&live.need);
            if usage.0.iter().all(|amount| *amount <= 0) {
                self.usage.remove(&live.place.agent_id);
            }
        }
    }

    /// Records the end of a rank. The consequences for the gang follow when the gang is settled.
    fn rank_ended(&mut self, serial: u64, number: u32, end: End, now: Time) {
        let Some(record) = self.records.get_mut(&serial) else { return };
        let stopping = record.get(number).and_then(|i| i.live()).and_then(|live| live.stopping);
        self.changed.heads.insert(serial);
        if end == End::Finished || stopping == Some(StopReason::GangDone) {
            return record.done(number, true, now);
        }
        let first = !record.head.gang.broken;
        let gang = &mut record.head.gang;
        gang.broken = true;
        // The first failure determines the reason; the kills that follow it do not count.
        if first && stopping.is_none() {
            match end {
                End::Lost => gang.losses += 1,
                End::FailedPermanently => gang.hopeless = true,
                End::Failed | End::Finished => gang.failures += 1,
            }
        }
        record.done(number, false, now);
    }

    /// Gives up tasks on agents that have been unreachable for too long: they are replaced now, and killed if they
    /// return.
    pub(super) fn check_unreachable(&mut self, now: Time, calls: &mut Calls) {
        for (serial, number) in self.unreachable.overdue(UNREACHABLE_MAX, now) {
            let live = self.records.get(&serial).and_then(|r| r.get(number)).and_then(|i| i.live());
            let Some(task_id) = live.map(|live| live.place.task_id.clone()) else { continue };
            calls.kill(&task_id, None);
            let status = TaskStatus {
                task_id: sdk::v1::TaskId { value: task_id.into() },
                state: TaskState::TaskLost as i32,
                message: Some("its agent did not answer for too long".to_owned()),
                ..Default::default()
            };
            self.update(&status, now, calls);
        }
    }

    /// Returns the time at which the next task is given up.
    pub(super) fn next_unreachable(&self) -> Option<Time> {
        self.unreachable.first().map(|since| since + UNREACHABLE_MAX)
    }
}

impl Record {
    /// Records that a task has ended for good.
    pub(super) fn done(&mut self, number: u32, ok: bool, now: Time) {
        self.change(number, |instance| instance.phase = Phase::Done { ok, at: now });
    }

    fn batch_task_ended(&mut self, number: u32, end: End, replaced: bool, now: Time) {
        let (retries, restart) = (self.job().retries, self.job().restart);
        self.change(number, |instance| {
            let wait = match end {
                End::Finished => return instance.phase = Phase::Done { ok: true, at: now },
                End::Failed if replaced => Duration::ZERO,
                End::Lost => {
                    instance.losses += 1;
                    restart.wait(instance.losses)
                }
                End::Failed if instance.failures < retries => {
                    instance.failures += 1;
                    restart.wait(instance.failures)
                }
                End::Failed | End::FailedPermanently => {
                    instance.failures += 1;
                    return instance.phase = Phase::Done { ok: false, at: now };
                }
            };
            instance.phase = Phase::Waiting { since: now, not_before: now + wait };
        });
    }

    /// Restarts a task of a service, whatever its end was; one that fails repeatedly waits longer each time.
    fn service_task_ended(&mut self, number: u32, end: End, replaced: bool, now: Time) {
        let restart = self.job().restart;
        let past = self.get(number).and_then(|i| Some((i.live()?.place.clone(), i.version, i.message.clone())));
        if let Some((place, version, message)) = past {
            self.remember(place, version, &message, now);
        }
        self.change(number, |instance| {
            let ran = instance.live().and_then(|l| l.running).map_or(Duration::ZERO, |since| now.since(since));
            if ran >= restart.steady {
                instance.failures = 0;
                instance.losses = 0;
            }
            let wait = match end {
                _ if replaced => Duration::ZERO,
                End::Lost => {
                    instance.losses += 1;
                    // The first loss is not evidence against the task.
                    restart.wait(instance.losses - 1)
                }
                _ => {
                    instance.failures += 1;
                    restart.wait(instance.failures)
                }
            };
            instance.phase = Phase::Waiting { since: now, not_before: now + wait };
        });
    }

    /// Returns whether the gang has finished as soon as rank 0 has finished.
    pub(super) fn ends_with_first(&self) -> bool {
        self.kind() == Kind::Gang && self.job().ends == GangEnd::First
    }
}

/// Returns the state of a task, for people.
pub(super) fn state_of(record: &Record, number: u32) -> State {
    let Some(instance) = record.get(number) else { return State::Waiting };
    match &instance.phase {
        Phase::Waiting { .. } if instance.failures > 0 => State::Restarting,
        Phase::Waiting { .. } => State::Waiting,
        Phase::Done { ok: true, .. } => State::Finished,
        Phase::Done { ok: false, .. } if record.head.goal == Goal::Stop => State::Stopped,
        Phase::Done { ok: false, .. } => State::Failed,
        Phase::Live(live) if live.stopping.is_some() => State::Ending,
        Phase::Live(live) => match (live.stage, live.healthy) {
            (LiveState::Running, Some(false)) => State::Unhealthy,
            (LiveState::Running, _) => State::Running,
            (LiveState::Unreachable, _) => State::Unreachable,
            (LiveState::Staging | LiveState::Starting, _) => State::Staging,
        },
    }
}
