//! Shrinks tasks to make resources available for a waiting query, and enlarges them when other queries have ended.
//!
//! Both end a task and launch it again in another size. Growth with a second task beside the first is in `moves`.

use std::time::Duration;

use base::Time;
use sdk::Calls;

use super::launch::{even_share, least, useful};
use super::moves::benefits_from_larger_task;
use super::query::{Query, State};
use super::scheduler::VideoScheduler;
use crate::schedule::{ShrinkableTask, tasks_to_shrink};

/// Time for which a query waits for resources before a task with more than its share is shrunk for it.
const WAIT_BEFORE_RESIZE: Duration = Duration::from_secs(3);
/// Longest time for which shrunk tasks may wait for their next launch before other tasks are shrunk too.
const LONGEST_CHANGE: Duration = Duration::from_secs(10);
/// Divisor that limits how many tasks shrink at a time: one in this many live queries, and at least one.
const CHANGING_PART: usize = 8;

/// State of shrinking and growing tasks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Resizing {
    /// Time at which a task was last shrunk or enlarged.
    last: Time,
    /// Number of cores that ended queries released and no task uses again.
    free: f64,
    /// Time at which cores were released first; `None` while there are none.
    since: Option<Time>,
}

impl Resizing {
    /// Records that a query has ended that held this many cores.
    pub(super) fn record_released(&mut self, cores: f64) {
        self.free += cores;
    }

    /// Records that a task now uses this many of the released cores.
    pub(super) fn record_used(&mut self, cores: f64) {
        self.free = (self.free - cores).max(0.0);
    }
}

impl VideoScheduler {
    /// Shrinks tasks if queries have waited too long: ends tasks that hold more than their queries need, to launch them
    /// again with fewer cores. Together they release what the waiting queries need, from a part of the queries at a
    /// time.
    pub(super) fn shrink_tasks(&mut self, now: Time, calls: &mut Calls) {
        let waited = |q: &Query| q.waiting_since.map_or(Duration::ZERO, |since| now.since(since));
        let waits = |q: &&Query| q.is_due(now) && waited(q) > WAIT_BEFORE_RESIZE;
        // Resources that were released must be used before more are released.
        let under_way = self.queries.values().any(|q| q.reserve_at_most.is_some() && waited(q) < LONGEST_CHANGE);
        let soon = now.since(self.resizing.last) < WAIT_BEFORE_RESIZE;
        if under_way || soon || !self.connected || !self.queries.values().any(|q| waits(&q)) {
            return;
        }
        let even = even_share(&self.queries, 0.0);
        let missing = self.queries.values().filter(waits).map(|q| least(q, even, self.options.cores_min, now)).sum();
        let names: Vec<&String> =
            self.queries.iter().filter(|(_, q)| q.may_resize(now)).map(|(name, _)| name).collect();
        let tasks: Vec<ShrinkableTask> = names
            .iter()
            .map(|name| &self.queries[*name])
            .map(|q| ShrinkableTask {
                held: q.reserved,
                least: least(q, even, self.options.cores_min, now),
                recent_share: q.recent_share,
                can_pause: q.can_pause(now),
            })
            .collect();
        let live = self.queries.values().filter(|q| q.is_live()).count();
        let chosen = tasks_to_shrink(&tasks, missing, (live / CHANGING_PART).max(1));
        let chosen: Vec<(String, f64)> = chosen.into_iter().map(|(index, size)| (names[index].clone(), size)).collect();
        for (name, size) in chosen {
            self.resizing.last = now;
            self.resize(&name, Some(size), "its task is made smaller, to make room for another query", now, calls);
        }
    }

    /// Ends a task, to launch it again with at most this many cores, or with as many as its query can use.
    fn resize(&mut self, name: &str, at_most: Option<f64>, why: &str, now: Time, calls: &mut Calls) {
        let Some(query) = self.queries.get_mut(name) else { return };
        query.reserve_at_most = at_most;
        query.resized = Some(now);
        if let Some(task) = &query.task {
            calls.kill(task, None);
        }
        self.wait(name, why, now, now, calls);
    }

    /// Enlarges one task after other queries have ended: the one that lacks the most cores of those that its query can
    /// use.
    pub(super) fn enlarge_task(&mut self, now: Time, calls: &mut Calls) {
        let waiting = self.queries.values().any(|q| q.state == State::Waiting);
        if self.resizing.free <= 0.0 {
            self.resizing.since = None;
            return;
        }
        // If both tasks fit, a move to a second, larger task comes first.
        let since = *self.resizing.since.get_or_insert(now);
        let soon = now.since(since).min(now.since(self.resizing.last)) < WAIT_BEFORE_RESIZE;
        if waiting || soon || !self.connected {
            return;
        }
        let held = self.queries.values().fold(0.0, |sum, q| sum + q.held());
        let room = self.options.cores_max.map_or(self.resizing.free, |most| (most - held).min(self.resizing.free));
        let missing = |q: &Query| useful(q, now) - q.reserved;
        let short = |q: &&Query| benefits_from_larger_task(q, now) && missing(q).min(room) > q.reserved / 2.0;
        let shortest = self.queries.values().filter(short).max_by(|a, b| missing(a).total_cmp(&missing(b)));
        let Some((name, more)) = shortest.map(|q| (q.submission.spec.name.clone(), missing(q).min(room))) else {
            return;
        };
        self.resizing.last = now;
        self.resizing.record_used(more);
        self.resize(&name, None, "its task is made larger: others have ended", now, calls);
    }
}
