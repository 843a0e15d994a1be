//! Migration and growth of queries. A query that misses its goals gets a second task on another agent, and one that can
//! use more cores gets a larger task on any agent. It switches over when its new worker has started. No part of the
//! stream is lost or processed twice: the new worker starts where the last report ended, and later reports of the old
//! one are ignored.

use std::collections::BTreeMap;
use std::time::Duration;

use base::Time;
use sdk::{Calls, Packer};

use super::launch::{loads, task, thousandths, useful};
use super::query::{Query, State};
use super::scheduler::Options;
use crate::schedule::{Load, PlacementRequest, better_place, place_score};

/// Time for which a query must miss its goals before it asks for another agent; `STAY` is the least time between launch
/// and move.
const PATIENCE: Duration = Duration::from_secs(3);
const STAY: Duration = Duration::from_secs(10);
/// Least advantage of the score on the other agent.
const GAIN: f64 = 0.2;
/// Least size of the task on the other agent, relative to the query's current share of cores.
const MORE: f64 = 1.2;
/// Least size of a larger task relative to the current one, for which a second task is launched.
const GROWTH: f64 = 1.5;
/// Divisor that limits concurrent moves: one in this many live queries, and at least one.
const MOVING_PART: usize = 8;
/// Maximum number of queries for which a move is tried on one batch of offers.
const TRIED_MAX: usize = 32;

/// A second task of a query, to which the query is about to move.
#[derive(Clone, Debug)]
pub(super) struct Move {
    pub task: String,
    pub agent: String,
    pub host: String,
    pub reserved: f64,
    pub launched: Time,
}

/// Records when each query began to miss its goals.
pub(super) fn watch_goals(queries: &mut BTreeMap<String, Query>, now: Time) {
    for query in queries.values_mut() {
        let goals = query.submission.spec.goals;
        let missed = query.last.lag > goals.max_lag || query.quality() < goals.min_quality;
        if query.state == State::Running && missed {
            query.missing_since.get_or_insert(now);
        } else {
            query.missing_since = None;
        }
    }
}

/// Reason why a query needs a second task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum MoveReason {
    /// The query has missed its goals since this time, and needs another agent.
    MissesGoals(Time),
    /// The query meets its goals, and benefits from more cores on any agent.
    CanGrow,
}

/// Returns whether a larger task would improve the query's lag or quality.
pub(super) fn benefits_from_larger_task(query: &Query, now: Time) -> bool {
    let lags = query.last.lag > query.submission.spec.goals.max_lag / 2.0;
    let better = query.share.point + 1 < query.submission.points.len();
    query.may_resize(now) && (lags || better) && useful(query, now) > query.reserved * GROWTH
}

/// Returns how many more queries may begin to move.
fn may_move(queries: &BTreeMap<String, Query>) -> usize {
    let moving = queries.values().filter(|q| q.moving.is_some()).count();
    let live = queries.values().filter(|q| q.is_live()).count();
    (live / MOVING_PART).max(1).saturating_sub(moving)
}

/// Returns the queries that should move, and why. While a query waits for its first task, none moves only to grow.
fn queries_to_move(queries: &BTreeMap<String, Query>, now: Time) -> impl Iterator<Item = (MoveReason, &str)> {
    let waits = queries.values().any(|q| q.state == State::Waiting);
    let settled = move |q: &Query| q.state == State::Running && q.moving.is_none() && now.since(q.launched) >= STAY;
    let reason = move |q: &Query| match q.missing_since {
        Some(since) => (now.since(since) >= PATIENCE).then_some(MoveReason::MissesGoals(since)),
        None => (!waits && benefits_from_larger_task(q, now)).then_some(MoveReason::CanGrow),
    };
    queries.iter().filter(move |(_, q)| settled(q)).filter_map(move |(name, q)| Some((reason(q)?, name.as_str())))
}

/// Returns whether offers are useful for a query that already has a task.
pub(super) fn needs_offers_to_move(queries: &BTreeMap<String, Query>, now: Time) -> bool {
    queries_to_move(queries, now).next().is_some() && may_move(queries) > 0
}

/// Launches second tasks for queries that should move, on offers of a better agent and as long as tasks may hold `left`
/// more cores. A query that fits nowhere does not block the others. Returns the names of the queries that have begun to
/// move.
pub(super) fn begin_moves(
    packer: &mut Packer,
    queries: &mut BTreeMap<String, Query>,
    options: &Options,
    mut left: f64,
    now: Time,
) -> Vec<String> {
    let mut begun = Vec::new();
    let most = may_move(queries);
    // Queries that have missed their goals for longest come first.
    let mut candidates: Vec<(MoveReason, String)> =
        queries_to_move(queries, now).map(|(reason, name)| (reason, name.to_owned())).collect();
    candidates.sort();
    for (reason, name) in candidates.into_iter().take(TRIED_MAX) {
        if begun.len() >= most {
            break;
        }
        if let Some(reserved) = begin_move(packer, queries, options, (reason, &name, left), now) {
            left -= reserved;
            begun.push(name);
        }
    }
    begun
}

/// Launches a second task for this query, if there is a place for it. Returns the cores that the task holds.
fn begin_move(
    packer: &mut Packer,
    queries: &mut BTreeMap<String, Query>,
    options: &Options,
    (reason, name, left): (MoveReason, &str, f64),
    now: Time,
) -> Option<f64> {
    let query = queries.get(name)?;
    let patient = query.is_patient(options.horizon);
    let mut loads = loads(packer, queries, options.horizon);
    let want = thousandths(useful(query, now).min(left));
    let (want, to) = match reason {
        MoveReason::MissesGoals(_) => better_agent(&mut loads, queries, query, (want, patient))?,
        MoveReason::CanGrow => agent_for_larger_task(&loads, query, (want, patient))?,
    };
    if want < options.cores_min {
        return None;
    }
    let id = query.next_task();
    let placed = packer.place_by(task(&id, name, want, options), |bin| (bin.agent_id().value == to).then_some(1.0));
    placed.ok()?;
    let host = loads.remove(&to).map(|(_, host)| host).unwrap_or_default();
    let query = queries.get_mut(name)?;
    query.starts += 1;
    query.moving = Some(Move { task: id, agent: to, host, reserved: want, launched: now });
    Some(want)
}

/// Held and free cores and the host name, by agent with offers.
type Loads = BTreeMap<String, (Load, String)>;

/// Returns another agent on which the query scores higher, and the cores that it would hold there.
fn better_agent(
    loads: &mut Loads,
    queries: &BTreeMap<String, Query>,
    query: &Query,
    (want, patient): (f64, bool),
) -> Option<(f64, String)> {
    // The query's own agent counts with the cores held there, even if it has no offer.
    let held = |q: &&Query| q.is_live() && q.agent == query.agent;
    let here = loads.entry(query.agent.clone()).or_insert_with(|| {
        let used = queries.values().filter(held).map(|q| q.reserved).sum();
        (Load { cores: used, used, ..Default::default() }, query.host.clone())
    });
    // On its own agent the query counts with the new size instead of its present one.
    here.0.used += want - query.reserved;
    here.0.patient += if patient { want - query.reserved } else { 0.0 };
    let others = loads.iter().filter(|(agent, _)| **agent != query.agent);
    let want = want.min(thousandths(others.map(|(_, (load, _))| load.cores - load.used).fold(0.0, f64::max)));
    if want < query.share.cores * MORE {
        return None;
    }
    let names: Vec<&String> = loads.keys().collect();
    let views: Vec<Load> = loads.values().map(|(load, _)| *load).collect();
    let at = names.iter().position(|agent| **agent == query.agent)?;
    let to = better_place(&views, PlacementRequest { cores: want, patient }, at, GAIN)?;
    Some((want, names.get(to)?.to_string()))
}

/// Returns the agent on which a larger task scores highest, which may be the query's own, and the cores that it would
/// hold there.
fn agent_for_larger_task(loads: &Loads, query: &Query, (want, patient): (f64, bool)) -> Option<(f64, String)> {
    let want = want.min(thousandths(loads.values().map(|(load, _)| load.cores - load.used).fold(0.0, f64::max)));
    if want < query.reserved * GROWTH {
        return None;
    }
    let placing = PlacementRequest { cores: want, patient };
    let scores = loads.iter().filter_map(|(agent, (load, _))| Some((agent, place_score(load, placing)?)));
    let (to, _) = scores.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(a.0)))?;
    Some((want, to.clone()))
}

impl Query {
    /// Makes the second task the query's only one, in this state. Returns the id of the previous task.
    pub(super) fn switch_to_second_task(&mut self, state: State, now: Time) -> Option<String> {
        let Move { task, agent, host, reserved, launched } = self.moving.take()?;
        self.agent = agent;
        self.host = host;
        self.reserved = reserved;
        self.launched = launched;
        self.state = state;
        self.resized = Some(now);
        self.missing_since = None;
        self.worker_changed();
        self.task.replace(task)
    }
}

/// Kills second tasks whose workers have not started within `longest`.
pub(super) fn watch_moves(queries: &mut BTreeMap<String, Query>, longest: Duration, now: Time, calls: &mut Calls) {
    for query in queries.values_mut() {
        if let Some(slow) = query.moving.take_if(|m| now.since(m.launched) > longest) {
            calls.kill(&slow.task, None);
        }
    }
}
