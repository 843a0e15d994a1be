//! One round of placement: places the waiting tasks in order on the current offers, then holds or declines the rest, as
//! [`Knobs`](crate::Knobs) say.

use std::sync::Arc;
use std::time::Duration;

use base::Time;
use sdk::Calls;
use sdk::v1::Offer;

use super::Core;
use super::cluster::ClusterValues;
use super::queue::JobKey;
use crate::Need;
use crate::constraint::Checker;
use crate::job::{Job, Kind};
use crate::place::{Placer, Policy, Rules};
use jobs::offers::{AgentIdentity, AgentOffers, Offers, TaskResources};

/// Time ahead in which due work prevents a suppress.
const SOON: Duration = Duration::from_secs(2);

/// Index of GPUs in a [`Need`].
const GPUS: usize = 3;

/// Returns which of these have GPUs; empty if none has.
fn with_gpus(free: &[Need]) -> Vec<bool> {
    let with_gpus: Vec<bool> = free.iter().map(|free| free.0[GPUS] > 0).collect();
    if with_gpus.contains(&true) { with_gpus } else { Vec::new() }
}

/// A task that was placed in this round.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) serial: u64,
    pub(super) number: u32,
    pub(super) room: usize,
    pub(super) taken: TaskResources,
}

/// The current offers while tasks are placed on them.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) rooms: Vec<AgentOffers>,
    identities: Vec<Arc<AgentIdentity>>,
    placer: Placer,
    policy: Policy,
    /// Number of tasks placed on each room (the offers of one agent).
    counts: Vec<u32>,
    /// Whether each room has GPUs; empty if none has. Tasks without GPUs are placed there only if they fit nowhere
    /// else.
    with_gpus: Vec<bool>,
    most: u32,
    /// Maximum number of tasks for each room, because its agent is avoided or on trial; empty if there is no limit.
    limits: Vec<u32>,
    /// Time until which a gang keeps each room; `None` if none does.
    pub(super) kept: Vec<Option<Time>>,
    /// Tasks that end by this time may be placed on rooms that a gang keeps. It is half of the time in which the gang
    /// gathers; in the other half the gang gets all resources that become free.
    backfill_until: Time,
    pub(super) placed: Vec<Placed>,
}

impl Plan {
    fn new(rooms: Vec<AgentOffers>, policy: Policy, most: Option<u32>) -> Plan {
        let free: Vec<Need> = rooms.iter().map(AgentOffers::free).collect();
        Plan {
            identities: rooms.iter().map(|r| r.identity.clone()).collect(),
            placer: Placer::new(policy, &free),
            policy,
            counts: vec![0; rooms.len()],
            with_gpus: with_gpus(&free),
            most: most.unwrap_or(u32::MAX),
            limits: Vec::new(),
            kept: vec![None; rooms.len()],
            backfill_until: Time::EPOCH,
            placed: Vec::new(),
            rooms,
        }
    }

    /// Sets the maximum number of tasks for each agent; `of` returns `None` for no limit.
    fn limit(&mut self, of: impl Fn(&str) -> Option<u32>) {
        let limits: Vec<Option<u32>> = self.identities.iter().map(|identity| of(&identity.agent_id)).collect();
        let is_limited = limits.iter().any(Option::is_some);
        self.limits =
            if is_limited { limits.into_iter().map(|limit| limit.unwrap_or(u32::MAX)).collect() } else { Vec::new() };
    }

    /// Changes the policy for the following tasks.
    fn follow(&mut self, policy: Policy) {
        if policy != self.policy {
            self.placer = Placer::new(policy, self.placer.free());
            self.policy = policy;
        }
    }

    /// Places one task. Returns `None` if it does not fit.
    fn put(&mut self, need: &Need, check: &mut JobConstraints) -> Option<(usize, TaskResources)> {
        if need.0[GPUS] > 0 || self.with_gpus.is_empty() {
            return self.put_in(need, check, false);
        }
        self.put_in(need, check, true).or_else(|| self.put_in(need, check, false))
    }

    /// Places one task; with `plain`, only in rooms without GPUs.
    fn put_in(&mut self, need: &Need, check: &mut JobConstraints, plain: bool) -> Option<(usize, TaskResources)> {
        loop {
            let with_gpus = if plain { &self.with_gpus[..] } else { &[] };
            let (kept, most) = (if check.end <= self.backfill_until { &[] } else { &self.kept[..] }, self.most);
            let limits = &self.limits[..];
            let mut rules = JobRules {
                check,
                identities: &self.identities,
                counts: &mut self.counts,
                with_gpus,
                limits,
                kept,
                most,
            };
            let room = self.placer.put(need, &mut rules)?;
            if let Some(taken) = self.rooms[room].take(need) {
                return Some((room, taken));
            }
            // The amounts suffice, but not in one reservation: nothing more is placed here in this round.
            rules.taken_back(room);
            self.placer.close(room);
        }
    }

    /// Places all tasks of a gang, or none. The error is the largest number of its tasks that were found to fit.
    fn put_gang(&mut self, need: &Need, size: u32, check: &JobConstraints) -> Result<Vec<(usize, TaskResources)>, u32> {
        let mut found = match self.put_ranks(need, size, check.clone()) {
            Ok(ranks) => return Ok(ranks),
            Err(found) => found,
        };
        // The first rank has fixed the value of each `cluster` constraint, perhaps to one without room for the others.
        let values = ClusterValues::of(check, &self.identities, self.placer.free(), need);
        for (most, value) in values.best() {
            if most <= found {
                break;
            }
            match self.put_ranks(need, size, values.only(value, check)) {
                Ok(ranks) => return Ok(ranks),
                Err(other) => found = found.max(other),
            }
        }
        Err(found)
    }

    /// Places all tasks of a gang one after the other, or none. The error is the number of tasks that fit.
    fn put_ranks(
        &mut self,
        need: &Need,
        size: u32,
        mut check: JobConstraints,
    ) -> Result<Vec<(usize, TaskResources)>, u32> {
        let before = (self.placer.clone(), self.counts.clone());
        let mut done = Vec::new();
        for found in 0..size {
            if let Some(one) = self.put(need, &mut check) {
                done.push(one);
                continue;
            }
            for (room, taken) in done {
                self.rooms[room].put_back(taken);
            }
            (self.placer, self.counts) = before;
            return Err(found);
        }
        Ok(done)
    }

    /// Keeps the rooms that a gang can use until `until` at most; `gather` is how long it gathers in all.
    fn keep(&mut self, need: &Need, check: &JobConstraints, until: Time, gather: Duration) {
        self.backfill_until = until - gather / 2;
        for room in 0..self.rooms.len() {
            let is_avoided = self.limits.get(room) == Some(&0);
            if !is_avoided && need.fits(&self.placer.free()[room]) && check.allows(&self.identities[room], room) {
                self.kept[room] = Some(until);
            }
        }
    }
}

/// Constraints of a job during a round.
#[derive(Clone, Debug)]
pub(super) struct JobConstraints {
    pub(super) checker: Checker,
    /// Whether each room satisfies the constraints on the agent alone; empty without constraints.
    pub(super) allowed: Vec<bool>,
    /// Latest end of a task that is launched now.
    pub(super) end: Time,
}

impl JobConstraints {
    pub(super) fn allows(&self, identity: &AgentIdentity, room: usize) -> bool {
        self.allowed.get(room).copied().unwrap_or(true) && self.checker.broken_by_others(identity).is_none()
    }
}

struct JobRules<'a> {
    check: &'a mut JobConstraints,
    identities: &'a [Arc<AgentIdentity>],
    counts: &'a mut [u32],
    /// Whether each room is excluded because it has GPUs; empty if none is.
    with_gpus: &'a [bool],
    /// Maximum number of tasks for each room; empty if there is no limit.
    limits: &'a [u32],
    /// Time until which a gang keeps each room; kept rooms are excluded.
    kept: &'a [Option<Time>],
    most: u32,
}

impl Rules for JobRules<'_> {
    fn allows(&self, room: usize) -> bool {
        let barred = self.with_gpus.get(room).copied().unwrap_or(false);
        let most = self.limits.get(room).map_or(self.most, |limit| self.most.min(*limit));
        let kept = self.kept.get(room).is_some_and(Option::is_some);
        !barred && !kept && self.counts[room] < most && self.check.allows(&self.identities[room], room)
    }

    fn placed(&mut self, room: usize) {
        self.counts[room] += 1;
        self.check.checker.placed(&*self.identities[room]);
    }

    fn taken_back(&mut self, room: usize) {
        self.counts[room] -= 1;
        self.check.checker.taken_back(&*self.identities[room]);
    }
}

impl Core {
    /// Adds offers, and declines those that are too many.
    pub(super) fn add_offers(&mut self, offers: Vec<Offer>, now: Time, calls: &mut Calls) {
        let mut surplus = Vec::new();
        for offer in offers {
            let id = offer.id.clone();
            match self.offers.add(offer, now, &self.knobs.holding()) {
                Some(room) => {
                    let room = &self.offers.rooms[room];
                    self.known_agents.offered(room, room.free(), now);
                }
                None => surplus.push(id),
            }
        }
        calls.decline(surplus, self.knobs.refuse_idle);
    }

    /// Places waiting tasks, and declines offers that are of no use.
    pub(super) fn round(&mut self, now: Time, calls: &mut Calls) {
        self.end_gathering(now);
        self.refill_pace(now);
        if !self.needs_round(now) {
            return;
        }
        let kept = if self.queue.is_empty() || self.offers.rooms.is_empty() || self.is_pace_exhausted() {
            self.kept_before(&self.offers.rooms)
        } else {
            self.place_all(now, calls)
        };
        self.decline_unused_offers(&kept, now, calls);
    }

    /// Returns whether anything has changed since the last round, so that a round can have an effect.
    fn needs_round(&mut self, now: Time) -> bool {
        let changed = [self.offers.take_changed(), self.queue.take_changed(), std::mem::take(&mut self.dirty)];
        changed.contains(&true) || self.offers.next().is_some_and(|due| due <= now)
    }

    /// Returns the time until which the gathering gang keeps each room, as an earlier round set it.
    fn kept_before(&self, rooms: &[AgentOffers]) -> Vec<Option<Time>> {
        rooms.iter().map(|room| room.kept.filter(|_| self.gathering.is_some())).collect()
    }

    /// Places tasks on all current offers, and launches them. Returns, for each of the remaining rooms, the time until
    /// which a gang keeps it.
    fn place_all(&mut self, now: Time, calls: &mut Calls) -> Vec<Option<Time>> {
        let rooms = std::mem::take(&mut self.offers.rooms);
        let mut plan = Plan::new(rooms, self.knobs.policy, self.knobs.tasks_per_offer);
        plan.limit(|agent_id| self.limit_of(agent_id));
        for key in self.job_order(&plan) {
            if self.is_pace_exhausted() {
                // The gathering gang may not have been examined in this round.
                let before = self.kept_before(&plan.rooms);
                plan.kept.iter_mut().zip(before).for_each(|(kept, before)| *kept = kept.or(before));
                break;
            }
            let Some(job) = self.records.get(&key.1).map(|r| r.sized_job().clone()) else { continue };
            plan.follow(job.policy.unwrap_or(self.knobs.policy));
            if job.kind == Kind::Gang {
                self.place_gang(key, &job, &mut plan, now);
            } else {
                self.place_job(key, &job, &mut plan, now);
            }
        }
        self.launch(plan, now, calls)
    }

    /// Returns the jobs that have ready tasks, in the order in which they are placed.
    fn job_order(&self, plan: &Plan) -> Vec<JobKey> {
        let mut keys = self.queue.jobs();
        if self.knobs.policy == Policy::FirstFitDecreasing {
            let size = |key: &JobKey| self.records.get(&key.1).map_or(0.0, |r| plan.placer.size(&r.sized_job().need));
            keys.sort_by(|a, b| a.0.cmp(&b.0).then(size(b).total_cmp(&size(a))));
        }
        keys
    }

    fn place_job(&mut self, key: JobKey, job: &Job, plan: &mut Plan, now: Time) {
        let mut check = self.check(key.1, job, &plan.identities, now);
        let before = plan.placed.len();
        for number in self.queue.of(key) {
            if self.knobs.pace.is_some() && self.pace.left == 0 {
                break;
            }
            // All waiting tasks of a job have the same need: where one does not fit, no other does.
            let Some((room, taken)) = plan.put(&job.need, &mut check) else { break };
            self.pace.left = self.pace.left.saturating_sub(1);
            plan.placed.push(Placed { serial: key.1, number, room, taken });
        }
        for placed in &plan.placed[before..] {
            self.queue.launched(key, placed.number);
        }
    }

    fn place_gang(&mut self, key: JobKey, job: &Job, plan: &mut Plan, now: Time) {
        let check = self.check(key.1, job, &plan.identities, now);
        match plan.put_gang(&job.need, job.count, &check) {
            Ok(ranks) => {
                self.gang_formed(key.1);
                self.pace.left = self.pace.left.saturating_sub(job.count);
                let placed =
                    (0..).zip(ranks).map(|(number, (room, taken))| Placed { serial: key.1, number, room, taken });
                plan.placed.extend(placed);
                self.queue.launched(key, 0);
            }
            Err(found) => {
                if let Some(until) = self.gather_for_gang(key, found, now) {
                    plan.keep(&job.need, &check, until, job.gather);
                }
            }
        }
    }

    /// Returns the constraints of a job, with its running tasks counted.
    pub(super) fn check(&self, serial: u64, job: &Job, identities: &[Arc<AgentIdentity>], now: Time) -> JobConstraints {
        let mut checker = Checker::new(&job.constraints);
        let end = job.time_limit.map_or(Time::NEVER, |limit| now + limit);
        if checker.is_empty() && self.lacking(job).is_none() {
            return JobConstraints { checker, allowed: Vec::new(), end };
        }
        self.count_in(serial, &mut checker, now);
        for identity in identities {
            checker.note_agent(&**identity);
        }
        let is_allowed = |identity: &Arc<AgentIdentity>| {
            checker.broken_by_agent(&**identity).is_none() && !self.lacks_ability(job, &identity.agent_id)
        };
        let allowed = identities.iter().map(is_allowed).collect();
        JobConstraints { checker, allowed, end }
    }

    /// Adds the running tasks of a job, and the attribute values of known agents, to a checker.
    pub(super) fn count_in(&self, serial: u64, checker: &mut Checker, now: Time) {
        if !checker.depends_on_other_tasks() {
            return;
        }
        for agent in self.known_agents.fresh(now) {
            checker.note_agent(agent);
        }
        let Some(record) = self.records.get(&serial) else { return };
        let version = record.current().number;
        let live = record.instances().values().filter(|i| i.version == version).filter_map(|i| i.live());
        for live in live.filter(|live| live.stopping.is_none()) {
            checker.placed(&live.values);
        }
    }

    fn is_pace_exhausted(&self) -> bool {
        self.knobs.pace.is_some() && self.pace.left == 0
    }

    /// Allows the next tasks to be placed when the interval of the pace is over.
    fn refill_pace(&mut self, now: Time) {
        let Some(pace) = self.knobs.pace else { return };
        if self.pace.until.is_none_or(|until| until <= now) {
            if self.pace.left == 0 {
                self.queue.refresh();
            }
            self.pace.left = pace.tasks;
            self.pace.until = Some(now + pace.every);
        }
    }

    /// Declines the offers that are neither kept nor held.
    fn decline_unused_offers(&mut self, kept: &[Option<Time>], now: Time, calls: &mut Calls) {
        let idle = self.queue.is_empty();
        let at_once = idle && self.knobs.decline_fast;
        let (mut unused, mut held) = (Vec::new(), Vec::new());
        for (mut room, kept) in std::mem::take(&mut self.offers.rooms).into_iter().zip(kept) {
            room.kept = *kept;
            match kept {
                Some(_) => held.push(room),
                None if at_once || room.until <= now => unused.extend(room.offers),
                None => held.push(room),
            }
        }
        self.offers.set(held);
        let refuse = self.refuse_time();
        self.offer_state.refused |= !unused.is_empty() && !refuse.is_zero();
        calls.decline(unused, refuse);
    }

    /// Returns the filter time of offers that are declined now.
    fn refuse_time(&self) -> Duration {
        if self.queue.is_empty() { self.knobs.refuse_idle } else { self.knobs.refuse }
    }

    /// Suppresses or revives offers as needed.
    pub(super) fn update_offer_state(&mut self, now: Time, calls: &mut Calls) {
        if self.queue.is_empty() {
            self.queue.take_fresh();
            let soon = self.queue.next().is_some_and(|at| at <= now + SOON);
            if self.knobs.suppress_idle && !soon {
                self.offer_state.suppress(calls);
            }
        } else if self.offer_state.revive(self.queue.is_fresh(), self.knobs.revive_every, now, calls) {
            self.queue.take_fresh();
        }
    }

    /// Returns the time at which the next revive is allowed.
    pub(super) fn next_revive(&self) -> Option<Time> {
        self.offer_state.next(self.queue.is_fresh(), self.knobs.revive_every)
    }
}

/// Returns how many ranks of a gang, counted up to its size, fit on these amounts.
pub(super) fn count_fitting_ranks(
    identities: &[Arc<AgentIdentity>],
    all: &[Need],
    job: &Job,
    check: &JobConstraints,
    policy: Policy,
) -> u32 {
    let count = |mut check: JobConstraints| -> u32 {
        let mut placer = Placer::new(job.policy.unwrap_or(policy), all);
        let mut counts = vec![0; all.len()];
        let mut rules = JobRules {
            check: &mut check,
            identities,
            counts: &mut counts,
            with_gpus: &[],
            limits: &[],
            kept: &[],
            most: u32::MAX,
        };
        (0..job.count).take_while(|_| placer.put(&job.need, &mut rules).is_some()).fold(0, |ranks, _| ranks + 1)
    };
    let mut ranks = count(check.clone());
    // The first rank has fixed the value of each `cluster` constraint, perhaps to one without room for the others.
    let values = ClusterValues::of(check, identities, all, &job.need);
    for (most, value) in values.best() {
        if most <= ranks || ranks == job.count {
            break;
        }
        ranks = ranks.max(count(values.only(value, check)));
    }
    ranks
}

/// Returns the rooms without a placed task to the current offers. Returns the time until which a gang keeps each of
/// them.
pub(super) fn keep_unused_offers(offers: &mut Offers, plan: Plan) -> Vec<Option<Time>> {
    let rest = plan.rooms.into_iter().zip(plan.kept).zip(plan.counts).filter(|(_, count)| *count == 0);
    let (rooms, kept) = rest.map(|(room, _)| room).unzip();
    offers.set(rooms);
    kept
}
