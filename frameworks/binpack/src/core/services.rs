//! Services: keeps the requested number of tasks of the current version running.
//!
//! A new version replaces the old one step by step, within the bounds of [`crate::job::Update`] (those of Marathon's
//! `upgradeStrategy`): enough tasks stay healthy, and not too many run at once.

use base::Time;
use sdk::Calls;

use super::Core;
use super::record::{Goal, Record, StopReason};
use super::view::JobEvent;

/// The tasks of a service, grouped by version.
#[derive(Debug, Default)]
struct ServiceTasks {
    /// Tasks of the current version that are not being ended: number, slot, healthy, waiting.
    current: Vec<(u32, u32, bool, bool)>,
    /// Tasks of older versions that are not being ended: number, healthy, waiting.
    old: Vec<(u32, bool, bool)>,
    /// Number of tasks on agents, including those that are being ended.
    live: usize,
}

fn service_tasks(record: &Record) -> ServiceTasks {
    let version = record.current().number;
    let mut service_tasks = ServiceTasks { live: record.counts().live as usize, ..ServiceTasks::default() };
    for (number, instance) in record.instances() {
        // A task that is replaced within its version keeps its slot; one that is ended for good does not.
        if instance.live().is_some_and(|live| matches!(live.stopping, Some(StopReason::Surplus | StopReason::Job))) {
            continue;
        }
        let has_check = record.job().health.is_some();
        let well = instance.is_healthy(has_check);
        if instance.version == version {
            service_tasks.current.push((*number, instance.slot, well, instance.is_waiting()));
        } else {
            service_tasks.old.push((*number, well, instance.is_waiting()));
        }
    }
    service_tasks
}

/// Returns how many tasks must stay healthy while a service is replaced.
fn min_healthy_tasks(record: &Record) -> usize {
    let job = record.job();
    (f64::from(job.count) * job.update.min_healthy).ceil() as usize
}

impl Core {
    /// Moves a service one step closer to its goal.
    pub(super) fn advance_service(&mut self, serial: u64, now: Time, calls: &mut Calls) {
        let Some(record) = self.records.get(&serial) else { return };
        if record.head.goal == Goal::Stop {
            return;
        }
        let mut service_tasks = service_tasks(record);
        let wanted = record.job().count as usize;
        // Old tasks that are not on an agent are dropped.
        service_tasks.old.retain(|(number, _, waiting)| {
            if *waiting {
                self.drop_waiting(serial, *number, now);
            }
            !waiting
        });
        self.drop_surplus(serial, &mut service_tasks, wanted, now, calls);
        self.add_missing(serial, &service_tasks, wanted, now);
        self.end_old(serial, &service_tasks, calls);
        self.note_deployed(serial, &service_tasks, wanted);
    }

    /// Ends surplus tasks of the current version: first waiting ones, then unhealthy ones, then those with the highest
    /// slots.
    fn drop_surplus(
        &mut self,
        serial: u64,
        service_tasks: &mut ServiceTasks,
        wanted: usize,
        now: Time,
        calls: &mut Calls,
    ) {
        service_tasks.current.sort_by_key(|(_, slot, well, waiting)| (*waiting, !well, *slot));
        for (number, _, _, waiting) in service_tasks.current.split_off(wanted.min(service_tasks.current.len())) {
            if waiting {
                self.drop_waiting(serial, number, now);
            } else {
                self.stop_task(serial, number, StopReason::Surplus, calls);
            }
        }
    }

    /// Adds missing tasks of the current version, as many as may run besides the old ones.
    fn add_missing(&mut self, serial: u64, service_tasks: &ServiceTasks, wanted: usize, now: Time) {
        let Some(record) = self.records.get_mut(&serial) else { return };
        let missing = wanted.saturating_sub(service_tasks.current.len());
        let mut most = wanted + (wanted as f64 * record.job().update.max_over).floor() as usize;
        if min_healthy_tasks(record) >= wanted && most == wanted {
            // If all must stay healthy and none may be added, the replacement would never start.
            most += 1;
        }
        let waiting = service_tasks.current.iter().filter(|(_, _, _, waiting)| *waiting).count();
        // Old tasks count until they have ended, including those that are being ended.
        let room = most.saturating_sub(service_tasks.live + waiting);
        let mut taken: Vec<u32> = service_tasks.current.iter().map(|(_, slot, _, _)| *slot).collect();
        taken.sort_unstable();
        let mut slot = 0;
        let mut added = Vec::new();
        for _ in 0..missing.min(room) {
            while taken.binary_search(&slot).is_ok() {
                slot += 1;
            }
            added.push(record.add(slot, now));
            slot += 1;
        }
        if !added.is_empty() {
            self.changed.heads.insert(serial);
        }
        for number in added {
            self.enqueue(serial, number, now);
        }
    }

    /// Ends old tasks, as many as are not needed to keep the required number healthy.
    fn end_old(&mut self, serial: u64, service_tasks: &ServiceTasks, calls: &mut Calls) {
        let Some(record) = self.records.get(&serial) else { return };
        let least = min_healthy_tasks(record);
        let well_now = service_tasks.current.iter().filter(|(_, _, well, _)| *well).count();
        let well_old = service_tasks.old.iter().filter(|(_, well, _)| *well).count();
        let mut spare = (well_now + well_old).saturating_sub(least);
        // Ends the highest numbers first; an unhealthy task can end at once.
        let goes = service_tasks.old.iter().rev().filter(|(_, well, _)| {
            if *well {
                let goes = spare > 0;
                spare = spare.saturating_sub(1);
                return goes;
            }
            true
        });
        let goes: Vec<u32> = goes.map(|(number, _, _)| *number).collect();
        for number in goes {
            self.stop_task(serial, number, StopReason::Surplus, calls);
        }
    }

    /// Reports once that a change is complete.
    fn note_deployed(&mut self, serial: u64, service_tasks: &ServiceTasks, wanted: usize) {
        let Some(record) = self.records.get_mut(&serial) else { return };
        let well = service_tasks.current.iter().filter(|(_, _, well, _)| *well).count();
        let only = service_tasks.live == service_tasks.current.iter().filter(|(_, _, _, waiting)| !waiting).count();
        let reached = service_tasks.old.is_empty() && service_tasks.current.len() == wanted && well == wanted && only;
        if record.head.deploying && reached {
            record.head.deploying = false;
            let event = JobEvent::Deployed { name: record.name().to_owned(), version: record.current().number };
            self.changed.heads.insert(serial);
            self.record_event(event);
        }
    }

    /// Removes a task that was never launched, or that waits for its next attempt.
    pub(super) fn drop_waiting(&mut self, serial: u64, number: u32, now: Time) {
        let Some(record) = self.records.get_mut(&serial) else { return };
        let key = Core::key(record);
        record.remove(number, now);
        self.queue.remove(key, number);
        self.changed.instances.insert((serial, number));
    }

    /// Kills a task.
    pub(super) fn stop_task(&mut self, serial: u64, number: u32, why: StopReason, calls: &mut Calls) {
        let Some(record) = self.records.get_mut(&serial) else { return };
        let grace = record.job().kill_grace;
        let task_id = record.change(number, |instance| {
            let live = instance.live_mut()?;
            let first = live.stopping.is_none();
            live.stopping = Some(why);
            first.then(|| live.place.task_id.clone())
        });
        self.dirty |= !record.job().constraints.is_empty();
        if let Some(Some(task_id)) = task_id {
            calls.kill(&task_id, grace);
        }
        self.changed.instances.insert((serial, number));
    }
}
