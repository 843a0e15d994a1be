//! Tasks made smaller to let another query in, and made larger when others have left.
//!
//! Both end a task to launch it again in another size; growing beside a first task is for moves.

use std::time::Duration;

use base::Time;
use sdk::Calls;

use super::launch::{even_share, least, useful};
use super::moves::is_short;
use super::query::{Query, State};
use super::scheduler::VideoScheduler;
use crate::schedule::{Holding, give_back};

/// How long a query waits for room before a task with more than its share is made smaller for it.
const WAIT_FOR_ROOM: Duration = Duration::from_secs(3);
/// How long tasks that are made smaller may take to be launched again before there is more room made.
const LONGEST_CHANGE: Duration = Duration::from_secs(10);
/// At most one in this many queries is made smaller at a time, and always one may be.
const CHANGING_PART: usize = 8;

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
    /// When queries have waited too long: ends tasks that hold more than their queries must have, to be launched again
    /// smaller. As much is given back as those that wait must have, a part of the queries at a time.
    pub(super) fn make_room(&mut self, now: Time, calls: &mut Calls) {
        let waited = |q: &Query| q.waiting_since.map_or(Duration::ZERO, |since| now.since(since));
        let waits = |q: &&Query| q.is_due(now) && waited(q) > WAIT_FOR_ROOM;
        // Room that was made is to be used before there is more.
        let under_way = self.queries.values().any(|q| q.reserve_at_most.is_some() && waited(q) < LONGEST_CHANGE);
        let soon = now.since(self.room.last) < WAIT_FOR_ROOM;
        if under_way || soon || !self.connected || !self.queries.values().any(|q| waits(&q)) {
            return;
        }
        let even = even_share(&self.queries, 0.0);
        let missing = self.queries.values().filter(waits).map(|q| least(q, even, self.options.cores_min, now)).sum();
        let names: Vec<&String> =
            self.queries.iter().filter(|(_, q)| q.may_resize(now)).map(|(name, _)| name).collect();
        let tasks: Vec<Holding> = names
            .iter()
            .map(|name| &self.queries[*name])
            .map(|q| Holding {
                held: q.reserved,
                least: least(q, even, self.options.cores_min, now),
                given: q.given,
                can_pause: q.can_pause(now),
            })
            .collect();
        let live = self.queries.values().filter(|q| q.is_live()).count();
        let chosen = give_back(&tasks, missing, (live / CHANGING_PART).max(1));
        let chosen: Vec<(String, f64)> = chosen.into_iter().map(|(index, size)| (names[index].clone(), size)).collect();
        for (name, size) in chosen {
            self.room.last = now;
            self.resize(&name, Some(size), "its task is made smaller, to make room for another query", now, calls);
        }
    }

    /// Ends a task, to be launched again with at most this many cores, or with what its query can use.
    fn resize(&mut self, name: &str, at_most: Option<f64>, why: &str, now: Time, calls: &mut Calls) {
        let Some(query) = self.queries.get_mut(name) else { return };
        query.reserve_at_most = at_most;
        query.resized = Some(now);
        if let Some(task) = &query.task {
            calls.kill(task, None);
        }
        self.wait(name, why, now, now, calls);
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
        let Some((name, more)) = shortest.map(|q| (q.submission.spec.name.clone(), missing(q).min(room))) else {
            return;
        };
        self.room.last = now;
        self.room.used(more);
        self.resize(&name, None, "its task is made larger: others have ended", now, calls);
    }
}
