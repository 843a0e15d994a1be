//! First come, first served; equal shares; shares by the power of a job's work. Demands are not looked at.

use super::action::Action;
use super::observation::Observation;
use super::plan::Plan;

/// Jobs in the order of their arrival, each with all that it can use: Spark's default.
pub(super) fn fifo(observation: &Observation) -> Vec<Action> {
    let mut plan = Plan::new(observation);
    let mut order: Vec<usize> = (0..observation.jobs.len()).collect();
    order.sort_by_key(|job| (std::cmp::Reverse(observation.jobs[*job].class), observation.jobs[*job].arrival, *job));
    for job in order {
        while !plan.is_exhausted() {
            let Some(stage) = plan.first_runnable(job) else { break };
            if plan.give(job, stage, u32::MAX) == 0 {
                break;
            }
        }
    }
    plan.into_actions()
}

/// The same number of executors for every job with tasks to start: the public simulator's dynamic partition. An
/// executor stays with its job as long as that has runnable tasks.
pub(super) fn fair(observation: &Observation) -> Vec<Action> {
    let plan = Plan::new(observation);
    let unfinished = (0..observation.jobs.len()).filter(|job| plan.is_unfinished(*job)).count().max(1);
    let cap = observation.executors.div_ceil(u32::try_from(unfinished).unwrap_or(u32::MAX));
    shared(plan, |_| cap)
}

/// Executors in proportion to the power `alpha` of a job's whole work, times its weight: `N T^a / sum T^a`. With 0 these
/// are equal shares, with a negative one short jobs get more.
pub(super) fn weighted(observation: &Observation, alpha: f64) -> Vec<Action> {
    let plan = Plan::new(observation);
    let share = |job: &usize| {
        let job = &observation.jobs[*job];
        (job.work().max(1) as f64).powf(alpha) * f64::from(job.weight.max(1))
    };
    let shares: Vec<f64> =
        (0..observation.jobs.len()).map(|job| if plan.is_unfinished(job) { share(&job) } else { 0.0 }).collect();
    let total: f64 = shares.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let caps: Vec<u32> =
        shares.iter().map(|share| (f64::from(observation.executors) * share / total).ceil() as u32).collect();
    shared(plan, |job| caps[job])
}

/// First the job to which the executors belong, then every job up to its cap, in the order of arrival.
fn shared(mut plan: Plan<'_>, cap: impl Fn(usize) -> u32) -> Vec<Action> {
    if let Some(source) = plan.source() {
        while let Some(stage) = plan.first_runnable(source).filter(|_| !plan.is_exhausted()) {
            if plan.give(source, stage, u32::MAX) == 0 {
                break;
            }
        }
    }
    for job in 0..plan.observation.jobs.len() {
        while !plan.is_exhausted() && plan.held(job) < cap(job) {
            let Some(stage) = plan.first_runnable(job) else { break };
            let more = cap(job) - plan.held(job);
            if plan.give(job, stage, more) == 0 {
                break;
            }
        }
    }
    plan.into_actions()
}
