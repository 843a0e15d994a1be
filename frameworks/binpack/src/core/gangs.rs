//! Gangs: launches all ranks or none, gathers offers for them, and restarts or ends them when one rank ends.

use std::time::Duration;

use base::Time;
use sdk::Calls;

use super::record::{Goal, Phase, StopReason};
use super::{Core, JobKey};

impl Core {
    /// Moves a gang one step closer to its goal: kills ranks that are no longer needed, restarts all ranks, or fails
    /// the gang.
    pub(super) fn advance_gang(&mut self, serial: u64, now: Time, calls: &mut Calls) {
        let Some(record) = self.records.get(&serial) else { return };
        if record.head.goal == Goal::Stop {
            return;
        }
        let counts = record.counts();
        if counts.live > 0 {
            let first_is_done = matches!(record.get(0).map(|i| &i.phase), Some(Phase::Done { ok: true, .. }));
            if record.head.gang.broken {
                self.end_ranks(serial, StopReason::Gang, calls);
            } else if record.ends_with_first() && first_is_done {
                self.end_ranks(serial, StopReason::GangDone, calls);
            }
            return;
        }
        if record.head.gang.broken {
            self.start_gang_anew(serial, now);
        }
        self.queue_gang(serial, now);
    }

    fn end_ranks(&mut self, serial: u64, why: StopReason, calls: &mut Calls) {
        let Some(record) = self.records.get(&serial) else { return };
        let live = record.instances().iter().filter(|(_, i)| i.live().is_some_and(|l| l.stopping.is_none()));
        let numbers: Vec<u32> = live.map(|(n, _)| *n).collect();
        for number in numbers {
            self.stop_task(serial, number, why, calls);
        }
    }

    /// Restarts a broken gang after its last rank has ended: all ranks wait again, or all have failed.
    fn start_gang_anew(&mut self, serial: u64, now: Time) {
        let Some(record) = self.records.get_mut(&serial) else { return };
        let (retries, restart) = (record.job().retries, record.job().restart);
        let gang = &mut record.head.gang;
        gang.broken = false;
        let failed = gang.hopeless || gang.failures > retries;
        let wait = restart.wait(gang.failures.max(gang.losses));
        let phase = if failed {
            Phase::Done { ok: false, at: now }
        } else {
            Phase::Waiting { since: now, not_before: now + wait }
        };
        let numbers: Vec<u32> = record.instances().keys().copied().collect();
        for number in numbers {
            record.change(number, |instance| instance.phase = phase.clone());
            self.changed.instances.insert((serial, number));
        }
        self.changed.heads.insert(serial);
    }

    /// Puts a gang into the queue when all its ranks wait.
    fn queue_gang(&mut self, serial: u64, now: Time) {
        let Some(record) = self.records.get(&serial) else { return };
        if record.counts().waiting != record.job().count {
            return;
        }
        let latest = record.instances().values().filter_map(|i| match i.phase {
            Phase::Waiting { not_before, .. } => Some(not_before),
            _ => None,
        });
        let rest = record.head.gang.rest_until;
        if let Some(not_before) = latest.chain(rest).max() {
            self.queue.add(Core::key(record), 0, not_before, now);
        }
    }

    /// Lets a gang gather offers when only `found` of its ranks fit on the current offers. Returns the time until which
    /// it keeps the offers that it can use. Returns `None` if it may not gather, or if it does not fit even on the
    /// total resources of all agents. Only one gang gathers at a time, since two could wait for each other.
    pub(super) fn gather_for_gang(&mut self, key: JobKey, found: u32, now: Time) -> Option<Time> {
        let serial = key.1;
        if self.gathering.is_some_and(|other| other != serial) {
            return None;
        }
        let record = self.records.get_mut(&serial)?;
        let (time, size) = (record.job().gather, record.job().count);
        let gang = &mut record.head.gang;
        gang.found = found;
        if gang.possible.is_too_few(size) || (found == 0 && gang.gather_until.is_none()) {
            return None;
        }
        self.gathering = Some(serial);
        Some(*gang.gather_until.get_or_insert(now + time))
    }

    /// Ends a gathering whose time is over.
    pub(super) fn end_gathering(&mut self, now: Time) {
        let Some(record) = self.gathering.and_then(|serial| self.records.get_mut(&serial)) else { return };
        let (key, time) = (Core::key(record), record.job().gather);
        let gang = &mut record.head.gang;
        if gang.gather_until.is_some_and(|until| now < until) {
            return;
        }
        let rest = rest(time, gang.gathered);
        gang.gathered = gang.gathered.saturating_add(1);
        gang.gather_until = None;
        gang.rest_until = Some(now + rest);
        self.gathering = None;
        // The offers that it kept are free for other jobs.
        self.dirty = true;
        self.queue.remove(key, 0);
        self.queue.add(key, 0, now + rest, now);
    }

    /// Records that all ranks of a gang were placed.
    pub(super) fn gang_formed(&mut self, serial: u64) {
        if self.gathering == Some(serial) {
            self.gathering = None;
        }
        if let Some(record) = self.records.get_mut(&serial) {
            let gang = &mut record.head.gang;
            (gang.gather_until, gang.rest_until, gang.found, gang.gathered) = (None, None, 0, 0);
        }
    }

    /// Ends the gathering of offers because all offers are void.
    pub(super) fn forget_gathering(&mut self) {
        if let Some(record) = self.gathering.take().and_then(|serial| self.records.get_mut(&serial)) {
            record.head.gang.gather_until = None;
        }
    }

    /// Returns the time at which the gathering gang declines its offers.
    pub(super) fn next_gang(&self) -> Option<Time> {
        self.records.get(&self.gathering?)?.head.gang.gather_until
    }
}

/// Returns how long a gang waits after it has held offers for `time` without effect, and `gathered` times before that.
/// During the wait other jobs are placed first. The wait is as long as the gang held offers, then twice, four and eight
/// times as long. So it holds offers for at most half of the time, and in the long run for a ninth.
fn rest(time: Duration, gathered: u32) -> Duration {
    time.saturating_mul(1 << gathered.min(3))
}
