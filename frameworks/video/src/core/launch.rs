//! Launches tasks for queries: chooses their size and their command.

use std::collections::BTreeMap;
use std::time::Duration;

use base::Time;
use sdk::resources::{Amount, Resource, Resources};
use sdk::v1::{Offer, TaskInfo};
use sdk::{Calls, Packer};

use super::moves::begin_moves;
use super::query::{Query, State};
use super::scheduler::Options;
use crate::schedule::{Horizon, Load, PlacementRequest, place_score};

/// Duration of the filter on unused offers.
const REFUSE: Duration = Duration::from_secs(5);
/// Size of a task relative to the demand of its best configuration; the rest is for catching up with the stream.
const HEADROOM: f64 = 1.5;
/// Time in seconds after which a waiting query accepts a task of any size.
const ANY_SIZE_AFTER: f64 = 30.0;
/// Maximum number of cores of a task. A worker processes its stream in one thread, so it cannot use more.
const CORES_MAX: f64 = 1.0;

/// Command with which agents start a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerCommand {
    /// Path of the program on agents, or the name of the file that is fetched from `uri`.
    pub program: String,
    /// Arguments before those with the address of the scheduler.
    pub arguments: Vec<String>,
    /// URI from which the program is fetched; `None` if agents have it.
    pub uri: Option<String>,
    /// Address of the scheduler for workers, as `host:port`.
    pub driver: String,
    /// Token with which workers authenticate.
    pub token: String,
}

/// Launches tasks on offers, for waiting queries and for some that should move, and declines the other offers. Returns
/// the queries with new tasks.
pub(super) fn launch(
    offers: Vec<Offer>,
    queries: &mut BTreeMap<String, Query>,
    options: &Options,
    now: Time,
    calls: &mut Calls,
) -> Vec<String> {
    let held: f64 = queries.values().map(Query::held).sum();
    let mut left = options.cores_max.map_or(f64::INFINITY, |max| (max - held).max(0.0));
    let mut packer = Packer::new(offers);
    let mut launched = Vec::new();
    let waiting = waiting_in_order(queries, now);
    for (done, name) in waiting.iter().enumerate() {
        let loads = loads(&packer, queries, options.horizon);
        let free: f64 = loads.values().map(|(load, _)| load.cores - load.used).sum::<f64>().min(left);
        let fair = free / (waiting.len() - done) as f64;
        // A task uses the resources of one agent only.
        let largest = loads.values().map(|(load, _)| load.cores - load.used).fold(0.0, f64::max).min(left);
        if thousandths(largest + 1e-9) < options.cores_min {
            break;
        }
        let even = even_share(queries, free);
        let Some(query) = queries.get_mut(name) else { continue };
        let least = least(query, even, options.cores_min, now);
        let most = query.reserve_at_most.unwrap_or(fair.max(least)).min(largest);
        let want = thousandths(useful(query, now).min(most).max(options.cores_min));
        if want > left + 1e-9 || want < thousandths(query.accepts(least, now)) {
            continue;
        }
        let placing = PlacementRequest { cores: want, patient: query.is_patient(options.horizon) };
        let id = query.next_task();
        let task = task(&id, name, want, options);
        let score = |bin: &sdk::Bin| {
            let (load, _) = loads.get(bin.agent_id().value.as_str())?;
            place_score(load, placing)
        };
        let Ok(agent) = packer.place_by(task, score) else { continue };
        let host = loads.get(agent.value.as_str()).map(|(_, host)| host.clone()).unwrap_or_default();
        query.begin(id, (agent.value.into(), host), want, now);
        left -= want;
        launched.push(name.clone());
    }
    launched.extend(begin_moves(&mut packer, queries, options, left, now));
    packer.finish(calls, REFUSE);
    launched
}

/// Returns the waiting queries in the order of their turn: first those whose tasks were ended for others, then those
/// that have waited for longest.
fn waiting_in_order(queries: &BTreeMap<String, Query>, now: Time) -> Vec<String> {
    let mut waiting: Vec<(&String, &Query)> = queries.iter().filter(|(_, q)| q.is_due(now)).collect();
    waiting.sort_by_key(|(_, q)| (q.reserve_at_most.is_none(), q.waiting_since));
    waiting.into_iter().map(|(name, _)| name.clone()).collect()
}

/// Returns the even share of a query: the cores that tasks hold plus `free`, divided by the queries that have a task or
/// wait for one.
pub(super) fn even_share(queries: &BTreeMap<String, Query>, free: f64) -> f64 {
    let all = queries.values().filter(|q| q.is_live() || q.state == State::Waiting).count();
    let held: f64 = queries.values().map(Query::held).sum();
    (held + free) / all.max(1) as f64
}

/// Returns the smallest size of a task in cores: what keeps up with the stream at the lowest quality that its goals
/// allow, or an even share if that is less.
pub(super) fn least(query: &Query, even: f64, cores_min: f64, now: Time) -> f64 {
    query.demand(now).least_cores_for_goals().min(even).clamp(cores_min, CORES_MAX.max(cores_min))
}

impl Query {
    /// Records that a task of this query was launched on an agent.
    fn begin(&mut self, task: String, (agent, host): (String, String), reserved: f64, now: Time) {
        self.task = Some(task);
        (self.agent, self.host, self.reserved) = (agent, host, reserved);
        self.state = State::Starting;
        self.starts += 1;
        self.launched = now;
        self.waiting_since = None;
        self.reserve_at_most = None;
    }

    /// Returns the smallest number of cores that the query accepts now. It falls with the time that the query has
    /// waited, since free resources may be fragmented over many agents.
    fn accepts(&self, least: f64, now: Time) -> f64 {
        let least = self.reserve_at_most.map_or(least, |most| most.min(least));
        let waited = self.waiting_since.map_or(0.0, |since| now.since(since).as_secs_f64());
        least * (1.0 - waited / ANY_SIZE_AFTER).max(0.0)
    }
}

/// Returns the largest number of cores that a query can use.
pub(super) fn useful(query: &Query, now: Time) -> f64 {
    let best = query.submission.points.len().saturating_sub(1);
    (query.demand(now).need(best) * HEADROOM).min(CORES_MAX)
}

pub(super) fn thousandths(cores: f64) -> f64 {
    (cores * 1000.0).floor() / 1000.0
}

/// Returns, by agent with offers, the cores that the framework holds there, the free cores, and the host name.
pub(super) fn loads(
    packer: &Packer,
    queries: &BTreeMap<String, Query>,
    horizon: Horizon,
) -> BTreeMap<String, (Load, String)> {
    let mut loads: BTreeMap<String, (Load, String)> = BTreeMap::new();
    for bin in packer.bins() {
        let entry = loads.entry(bin.agent_id().value.to_string()).or_default();
        entry.0.cores += bin.left().non_revocable().cpus().to_f64();
        entry.1 = bin.hostname().to_owned();
    }
    let live = queries.values().filter(|q| q.is_live()).map(|q| (q, &q.agent, q.reserved));
    let moving = queries.values().filter_map(|q| q.moving.as_ref().map(|m| (q, &m.agent, m.reserved)));
    for (query, agent, reserved) in live.chain(moving) {
        if let Some((load, _)) = loads.get_mut(agent) {
            load.used += reserved;
            load.cores += reserved;
            load.patient += if query.is_patient(horizon) { reserved } else { 0.0 };
        }
    }
    // Tasks that were placed in this round are already among the live ones, and no longer in the free resources.
    loads
}

pub(super) fn task(id: &str, query: &str, cores: f64, options: &Options) -> TaskInfo {
    let mut needs = Resources::new();
    needs.add(Resource::scalar("cpus", Amount::from_f64(cores)));
    needs.add(Resource::scalar("mem", Amount::from_f64(f64::from(options.memory))));
    let worker = &options.worker;
    let fixed = ["--driver", &worker.driver, "--task", id];
    let words = std::iter::once(worker.program.as_str());
    let arguments: Vec<&str> = words.chain(worker.arguments.iter().map(String::as_str)).chain(fixed).collect();
    let mut task = sdk::task::program(id, &arguments, &needs);
    task.name = query.to_owned();
    task.labels = Some(sdk::task::labels([("framework", "video"), ("query", query)]));
    if let Some(command) = &mut task.command {
        command.environment = Some(sdk::task::environment([("TEPUI_VIDEO_TOKEN", worker.token.as_str())]));
        if let Some(uri) = &worker.uri {
            command.value = Some(format!("./{}", worker.program));
            command.uris.push(sdk::v1::command_info::Uri {
                value: uri.clone(),
                executable: Some(true),
                output_file: Some(worker.program.clone()),
                ..Default::default()
            });
        }
    }
    task
}
