//! Tasks made smaller to let another query in, and made larger when others have left.
//!
//! Both end a task to launch it again in another size; growing beside a first task is for moves.

use std::time::Duration;

use base::Time;
use sdk::Calls;

use super::launch::useful;
use super::moves::is_short;
use super::query::{Query, State};
use super::scheduler::VideoScheduler;

/// How long a query waits for room before a task with more than its share is made smaller for it.
const WAIT_FOR_ROOM: Duration = Duration::from_secs(3);
/// What counts as more than its share.
const OVER_SHARE: f64 = 1.2;

/// What is to be known of room.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room {
    /// When a task was made smaller or larger last.
    last: Time,
    /// Cores that ended queries gave back and no task has taken up.
    free: f64,
    /// Since when there have been any.
    since: Option<Time>,
}

impl Room {
    /// A query has ended that held this many cores.
    pub(super) fn freed(&mut self, cores: f64) {
        self.free += cores;
    }

    /// A task uses this many cores now.
    pub(super) fn used(&mut self, cores: f64) {
        self.free = (self.free - cores).max(0.0);
    }
}

impl VideoScheduler {
    /// When a query has waited too long: ends the task that holds the most over an equal share, to be launched again
    /// with that share.
    pub(super) fn make_room(&mut self, now: Time, calls: &mut Calls) {
        let waits = |q: &&Query| {
            q.state == State::Waiting
                && q.not_before <= now
                && q.waiting_since.is_some_and(|s| now.since(s) > WAIT_FOR_ROOM)
        };
        let waiting = self.queries.values().filter(waits).count();
        // Room that was made is to be used before there is more.
        let under_way = self.queries.values().any(|q| q.state == State::Waiting && q.reserve_at_most.is_some());
        if waiting == 0 || under_way || now.since(self.room.last) < WAIT_FOR_ROOM || !self.connected {
            return;
        }
        let live = self.queries.values().filter(|q| q.is_live());
        let (count, held) = live.fold((0, 0.0), |(n, sum), q| (n + 1, sum + q.reserved));
        let share = (held / (count + waiting).max(1) as f64).max(self.options.cores_min);
        let largest = self.queries.values_mut().filter(|q| q.may_restart() && q.reserved > share * OVER_SHARE);
        let Some(query) = largest.max_by(|a, b| a.reserved.total_cmp(&b.reserved)) else { return };
        self.room.last = now;
        query.reserve_at_most = Some(share);
        if let Some(task) = query.task.clone() {
            let name = query.submission.spec.name.clone();
            calls.kill(&task, None);
            self.wait(&name, "its task is made smaller, to make room for another query", now, now, calls);
        }
    }

    /// When others have ended: launches the task again, larger, that is the shortest of what its query could use.
    pub(super) fn grow(&mut self, now: Time, calls: &mut Calls) {
        let waiting = self.queries.values().any(|q| q.state == State::Waiting);
        if self.room.free <= 0.0 {
            self.room.since = None;
            return;
        }
        // A second, larger task comes first, if there is room for both.
        let since = *self.room.since.get_or_insert(now);
        let soon = now.since(since).min(now.since(self.room.last)) < WAIT_FOR_ROOM;
        if waiting || soon || !self.connected {
            return;
        }
        let held = self.queries.values().fold(0.0, |sum, q| sum + q.held());
        let room = self.options.cores_max.map_or(self.room.free, |most| (most - held).min(self.room.free));
        let missing = |q: &Query| useful(q, now) - q.reserved;
        let short = |q: &&Query| is_short(q, now) && missing(q).min(room) > q.reserved / 2.0;
        let shortest = self.queries.values().filter(short).max_by(|a, b| missing(a).total_cmp(&missing(b)));
        let Some((name, task, more)) =
            shortest.map(|q| (q.submission.spec.name.clone(), q.task.clone(), missing(q).min(room)))
        else {
            return;
        };
        self.room.last = now;
        self.room.used(more);
        if let Some(task) = task {
            calls.kill(&task, None);
        }
        self.wait(&name, "its task is made larger: others have ended", now, now, calls);
    }
}
