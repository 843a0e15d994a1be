//! The least left to do first, with what executors cost when they move. Demands are not looked at.

use super::action::Action;
use super::observation::Observation;
use super::plan::Plan;
use super::shortest::along_paths;

/// Shares by the inverse root of what is left, and short jobs served first.
///
/// An executor stays with its job unless that has more than its share: a move costs as much as a short task, and one
/// job with all executors wastes them at the end of each of its stages. Estimates come with the observation; with
/// [`History`](super::History) they are those of earlier runs.
pub(super) fn shortest(observation: &Observation) -> Vec<Action> {
    let mut plan = Plan::new(observation);
    let left: Vec<f64> = observation.jobs.iter().map(|job| job.remaining().max(1) as f64).collect();
    let share = |job: usize| match plan.is_unfinished(job) {
        true => left[job].sqrt().recip() * f64::from(observation.jobs[job].weight.max(1)),
        false => 0.0,
    };
    let shares: Vec<f64> = (0..left.len()).map(share).collect();
    let total = shares.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let cap = |job: usize| (f64::from(observation.executors) * shares[job] / total).ceil() as u32;
    if let Some(source) = plan.source() {
        along_paths(&mut plan, source, u32::MAX);
    }
    let mut order: Vec<usize> = (0..left.len()).collect();
    order.sort_by(|a, b| left[*a].total_cmp(&left[*b]).then(a.cmp(b)));
    for job in &order {
        along_paths(&mut plan, *job, cap(*job));
    }
    // What no job wants within its share goes to the shortest ones that can use it.
    for job in &order {
        along_paths(&mut plan, *job, u32::MAX);
    }
    plan.into_actions()
}
