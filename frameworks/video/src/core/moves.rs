//! Migration: a query that misses its goals where it is gets a second task on another agent, and changes over to it when
//! its worker has come up. Nothing of the stream is lost or done twice: the new worker begins where the last report ended,
//! and from then on the old one is not listened to.

use std::collections::BTreeMap;
use std::time::Duration;

use base::Time;
use sdk::{Calls, Packer};

use super::launch::{loads, task, thousandths, useful};
use super::query::{Query, State};
use super::scheduler::Options;
use crate::schedule::{Load, Placing, better_place};

/// How long a query misses its goals before it asks for another agent, and how long it stays once it has come to one.
const PATIENCE: Duration = Duration::from_secs(3);
const STAY: Duration = Duration::from_secs(10);
/// How much higher the score must be elsewhere.
const GAIN: f64 = 0.2;
/// How many times the cores that it has it must get there.
const MORE: f64 = 1.2;

/// A second task of a query.
#[derive(Clone, Debug)]
pub(super) struct Move {
    pub task: String,
    pub agent: String,
    pub host: String,
    pub reserved: f64,
    pub launched: Time,
}

/// Looks which queries miss their goals, and since when.
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

/// The query that should move, if there is one: that which has missed its goals for longest. One moves at a time.
pub(super) fn wants_to_move(queries: &BTreeMap<String, Query>, now: Time) -> Option<&str> {
    if queries.values().any(|q| q.moving.is_some()) {
        return None;
    }
    let long = |q: &Query| q.missing_since.filter(|since| now.since(*since) >= PATIENCE);
    let missing = queries.iter().filter(|(_, q)| q.state == State::Running && now.since(q.launched) >= STAY);
    missing.filter_map(|(name, q)| long(q).map(|since| (since, name.as_str()))).min().map(|(_, name)| name)
}

/// Launches a second task for the query that should move, if these offers have a better place for it and tasks may hold
/// `left` more cores.
pub(super) fn begin_move(
    packer: &mut Packer,
    queries: &mut BTreeMap<String, Query>,
    options: &Options,
    left: f64,
    now: Time,
) -> Option<String> {
    let name = wants_to_move(queries, now)?.to_owned();
    let query = queries.get(&name)?;
    let patient = query.is_patient(options.horizon);
    let mut loads = loads(packer, queries, options.horizon);
    // Its own agent has what is held there, even if it offers nothing.
    let held = |q: &&Query| q.is_live() && q.agent == query.agent;
    let here = loads.entry(query.agent.clone()).or_insert_with(|| {
        let used = queries.values().filter(held).map(|q| q.reserved).sum();
        (Load { cores: used, used, ..Default::default() }, query.host.clone())
    });
    let elsewhere = |(agent, (load, _)): (&String, &(Load, String))| {
        if *agent == query.agent { 0.0 } else { load.cores - load.used }
    };
    let want = thousandths(useful(query, now).min(left));
    // What it would hold where it is, instead of what it does.
    here.0.used += want - query.reserved;
    here.0.patient += if patient { want - query.reserved } else { 0.0 };
    let want = want.min(thousandths(loads.iter().map(elsewhere).fold(0.0, f64::max)));
    if want < options.cores_min.max(query.share.cores * MORE) {
        return None;
    }
    let names: Vec<&String> = loads.keys().collect();
    let views: Vec<Load> = loads.values().map(|(load, _)| *load).collect();
    let at = names.iter().position(|agent| **agent == query.agent)?;
    let to = better_place(&views, Placing { cores: want, patient }, at, GAIN)?;
    let agent = names.get(to)?.to_string();
    let id = format!("video-{name}-{}", query.starts + 1);
    let placed = packer.place_by(task(&id, &name, want, options), |bin| (bin.agent_id().value == agent).then_some(1.0));
    placed.ok()?;
    let host = loads.get(&agent).map(|(_, host)| host.clone()).unwrap_or_default();
    let query = queries.get_mut(&name)?;
    query.starts += 1;
    query.moving = Some(Move { task: id, agent, host, reserved: want, launched: now });
    Some(name)
}

impl Query {
    /// Takes its second task for its own, in this state, and gives the name of the one before.
    pub(super) fn change_over(&mut self, state: State) -> Option<String> {
        let Move { task, agent, host, reserved, launched } = self.moving.take()?;
        self.agent = agent;
        self.host = host;
        self.reserved = reserved;
        self.launched = launched;
        self.state = state;
        self.missing_since = None;
        self.worker_changed();
        self.task.replace(task)
    }
}

/// Ends second tasks that do not come up.
pub(super) fn watch_moves(queries: &mut BTreeMap<String, Query>, longest: Duration, now: Time, calls: &mut Calls) {
    for query in queries.values_mut() {
        if let Some(slow) = query.moving.take_if(|m| now.since(m.launched) > longest) {
            calls.kill(&slow.task, None);
        }
    }
}
