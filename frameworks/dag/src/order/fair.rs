//! Orders by arrival and by shares: first come, first served; equal shares; shares by the power of a job's work.
//! Demands are ignored.

use super::action::Action;
use super::observation::Observation;
use super::plan::Plan;
use super::shortest::along_paths;

/// Serves jobs by class and in the order of their arrival, each with all executors that it can use: Spark's default.
pub(super) fn fifo(observation: &Observation) -> Vec<Action> {
    let mut plan = Plan::new(observation);
    let mut order: Vec<usize> = (0..observation.jobs.len()).collect();
    order.sort_by_key(|job| (std::cmp::Reverse(observation.jobs[*job].class), observation.jobs[*job].arrival, *job));
    for job in order {
        by_place(&mut plan, job, u32::MAX);
    }
    plan.into_actions()
}

/// Gives every job with tasks to start the same number of executors: the public simulator's dynamic partition. An
/// executor stays with its job as long as the job has runnable tasks.
pub(super) fn fair(observation: &Observation) -> Vec<Action> {
    let mut plan = Plan::new(observation);
    if let Some(source) = plan.source() {
        by_place(&mut plan, source, u32::MAX);
    }
    let order: Vec<usize> = (0..observation.jobs.len()).collect();
    up_to_shares(&mut plan, &order, |_| 1.0, by_place);
    plan.into_actions()
}

/// Gives executors in proportion to the power `alpha` of a job's whole work, times its weight: `N T^a / sum T^a`. With
/// 0 the shares are equal, with a negative `alpha` short jobs get more. An executor leaves a job that has more than its
/// share, unless no other job needs it.
pub(super) fn weighted(observation: &Observation, alpha: f64) -> Vec<Action> {
    let share = |job: usize| {
        let job = &observation.jobs[job];
        (job.work().max(1) as f64).powf(alpha) * f64::from(job.weight.max(1))
    };
    let order: Vec<usize> = (0..observation.jobs.len()).collect();
    released(observation, &order, share, by_place).into_actions()
}

/// Gives executors in proportion to the power -0.3 of the work that a job has left, times its weight. The job with the
/// least work left is served first, and each along its longest path. The durations of stages are those of the
/// observation: with [`History`](super::History) they are those of earlier runs.
pub(super) fn remaining(observation: &Observation) -> Vec<Action> {
    let left: Vec<u64> = observation.jobs.iter().map(super::Job::remaining).collect();
    let mut order: Vec<usize> = (0..left.len()).collect();
    order.sort_by_key(|job| (left[*job], *job));
    let alpha = -0.3;
    let share = |job: usize| (left[job].max(1) as f64).powf(alpha) * f64::from(observation.jobs[job].weight.max(1));
    let mut plan = released(observation, &order, share, along_paths);
    // Executors that remain after all shares go to the shortest jobs.
    for job in order {
        along_paths(&mut plan, job, u32::MAX);
    }
    plan.into_actions()
}

/// A function that gives a job executors up to a number, and returns how many it got.
type Serve = fn(&mut Plan<'_>, usize, u32) -> u32;

/// Serves first the job to which the executors belong, up to its share, so that they need not move; then all jobs; and
/// then that job again, with executors that no other job can use.
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

/// Returns the number of executors of a share, rounded up; a rounding error of 1e-9 does not count.
fn cap(observation: &Observation, share: f64, total: f64) -> u32 {
    (f64::from(observation.executors) * share / total.max(f64::MIN_POSITIVE) - 1e-9).ceil() as u32
}

/// Serves every job up to its share, in this order. The shares of the others grow with each job that has as many
/// executors as tasks.
fn up_to_shares(plan: &mut Plan<'_>, order: &[usize], share: impl Fn(usize) -> f64, serve: Serve) {
    let share = |job: usize| if plan.is_unfinished(job) { share(job) } else { 0.0 };
    let mut shares: Vec<f64> = order.iter().map(|job| share(*job)).collect();
    let mut total: f64 = shares.iter().sum();
    // Jobs before this index have all executors that they can use within their shares.
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

/// Gives a job executors up to this number, stage by stage in their order, those first that can run at once. Returns
/// how many it got.
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
