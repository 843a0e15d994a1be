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
    shared(observation, |_| 1.0)
}

/// Executors in proportion to the power `alpha` of a job's whole work, times its weight: `N T^a / sum T^a`. With 0 these
/// are equal shares, with a negative one short jobs get more.
pub(super) fn weighted(observation: &Observation, alpha: f64) -> Vec<Action> {
    shared(observation, |job| {
        let job = &observation.jobs[job];
        (job.work().max(1) as f64).powf(alpha) * f64::from(job.weight.max(1))
    })
}

/// First the job to which the executors belong, then every job up to its share, in the order of arrival. The shares of
/// the others grow with each job that has as many executors as tasks.
fn shared(observation: &Observation, share: impl Fn(usize) -> f64) -> Vec<Action> {
    let mut plan = Plan::new(observation);
    if let Some(source) = plan.source() {
        while let Some(stage) = plan.first_runnable(source).filter(|_| !plan.is_exhausted()) {
            if plan.give(source, stage, u32::MAX) == 0 {
                break;
            }
        }
    }
    let mut shares: Vec<f64> =
        (0..observation.jobs.len()).map(|job| if plan.is_unfinished(job) { share(job) } else { 0.0 }).collect();
    let mut total: f64 = shares.iter().sum();
    // Jobs below this place have all that they can use within their shares.
    let mut job = 0;
    while job < shares.len() && !plan.is_exhausted() {
        // A little less than a whole executor more is none.
        let cap = (f64::from(observation.executors) * shares[job] / total.max(f64::MIN_POSITIVE) - 1e-9).ceil() as u32;
        let stage = if plan.held(job) < cap { plan.first_runnable(job) } else { None };
        let given = stage.map_or(0, |stage| plan.give(job, stage, cap - plan.held(job)));
        match given {
            0 => job += 1,
            _ if plan.is_unfinished(job) => {}
            _ => {
                total -= shares[job];
                shares[job] = 0.0;
                job = 0;
            }
        }
    }
    plan.into_actions()
}
