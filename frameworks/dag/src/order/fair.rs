//! First come, first served; equal shares; shares by the power of a job's work. Demands are ignored.

use super::action::Action;
use super::observation::Observation;
use super::plan::Plan;
use super::shortest::along_paths;

/// Jobs by class and in the order of their arrival, each with all that it can use: Spark's default.
pub(super) fn fifo(observation: &Observation) -> Vec<Action> {
    let mut plan = Plan::new(observation);
    let mut order: Vec<usize> = (0..observation.jobs.len()).collect();
    order.sort_by_key(|job| (std::cmp::Reverse(observation.jobs[*job].class), observation.jobs[*job].arrival, *job));
    for job in order {
        by_place(&mut plan, job, u32::MAX);
    }
    plan.into_actions()
}

/// The same number of executors for every job with tasks to start: the public simulator's dynamic partition. An
/// executor stays with its job as long as that has runnable tasks.
pub(super) fn fair(observation: &Observation) -> Vec<Action> {
    let mut plan = Plan::new(observation);
    if let Some(source) = plan.source() {
        by_place(&mut plan, source, u32::MAX);
    }
    let order: Vec<usize> = (0..observation.jobs.len()).collect();
    up_to_shares(&mut plan, &order, |_| 1.0, by_place);
    plan.into_actions()
}

/// Executors in proportion to the power `alpha` of a job's whole work, times its weight: `N T^a / sum T^a`. With 0
/// these are equal shares, with a negative one short jobs get more. An executor leaves a job that has more than its
/// share, unless no other job wants it.
pub(super) fn weighted(observation: &Observation, alpha: f64) -> Vec<Action> {
    let share = |job: usize| {
        let job = &observation.jobs[job];
        (job.work().max(1) as f64).powf(alpha) * f64::from(job.weight.max(1))
    };
    let order: Vec<usize> = (0..observation.jobs.len()).collect();
    released(observation, &order, share, by_place).into_actions()
}

/// Executors in proportion to the power -0.3 of what a job has left, times its weight; the job with
/// the least left is served first, and each along its longest path. What an estimate knows of a stage comes with the
/// observation: with [`History`](super::History) it is what earlier runs have shown.
pub(super) fn remaining(observation: &Observation) -> Vec<Action> {
    let left: Vec<u64> = observation.jobs.iter().map(super::Job::remaining).collect();
    let mut order: Vec<usize> = (0..left.len()).collect();
    order.sort_by_key(|job| (left[*job], *job));
    let alpha = -0.3;
    let share = |job: usize| (left[job].max(1) as f64).powf(alpha) * f64::from(observation.jobs[job].weight.max(1));
    let mut plan = released(observation, &order, share, along_paths);
    // What is above all shares helps the shortest.
    for job in order {
        along_paths(&mut plan, job, u32::MAX);
    }
    plan.into_actions()
}

/// Gives a job executors up to this number.
type Serve = fn(&mut Plan<'_>, usize, u32) -> u32;

/// First the job to which the executors belong, up to its share, so that they need not move; then all jobs; and then
/// that job again, with what no other wants.
fn released<'a>(observation: &'a Observation, order: &[usize], share: impl Fn(usize) -> f64, serve: Serve) -> Plan<'a> {
    let mut plan = Plan::new(observation);
    let source = plan.source();
    if let Some(source) = source {
        let total: f64 = order.iter().filter(|job| plan.is_unfinished(**job)).map(|job| share(*job)).sum();
        let cap = cap(observation, share(source), total);
        serve(&mut plan, source, cap);
    }
    up_to_shares(&mut plan, order, share, serve);
    if let Some(source) = source {
        serve(&mut plan, source, u32::MAX);
    }
    plan
}

/// The number of executors of a share, rounded up; a rounding error of 1e-9 does not count.
fn cap(observation: &Observation, share: f64, total: f64) -> u32 {
    (f64::from(observation.executors) * share / total.max(f64::MIN_POSITIVE) - 1e-9).ceil() as u32
}

/// Every job up to its share, in this order. The shares of the others grow with each job that has as many executors
/// as tasks.
fn up_to_shares(plan: &mut Plan<'_>, order: &[usize], share: impl Fn(usize) -> f64, serve: Serve) {
    let share = |job: usize| if plan.is_unfinished(job) { share(job) } else { 0.0 };
    let mut shares: Vec<f64> = order.iter().map(|job| share(*job)).collect();
    let mut total: f64 = shares.iter().sum();
    // Jobs before this place have all that they can use within their shares.
    let mut at = 0;
    while at < order.len() && !plan.is_exhausted() {
        let job = order[at];
        let cap = cap(plan.observation, shares[at], total);
        serve(plan, job, cap);
        if shares[at] > 0.0 && !plan.is_unfinished(job) {
            total -= shares[at];
            shares[at] = 0.0;
            at = 0;
        } else {
            at += 1;
        }
    }
}

/// Gives a job executors up to this number, stage by stage in their order, those first that can run at once. How many
/// it got.
fn by_place(plan: &mut Plan<'_>, job: usize, cap: u32) -> u32 {
    let before = plan.held(job);
    while !plan.is_exhausted() && plan.held(job) < cap {
        let Some(stage) = plan.first_runnable(job) else { break };
        let more = cap - plan.held(job);
        if plan.give(job, stage, more) == 0 {
            break;
        }
    }
    plan.held(job) - before
}
