//! Orders that serve short jobs first, and in a job the stage on its longest path. Demands are ignored.

use super::action::Action;
use super::graph::paths;
use super::observation::Observation;
use super::plan::Plan;

/// Serves these jobs one after the other, each with all executors that it can use, along its longest path.
pub(crate) fn first(observation: &Observation, jobs: &[usize]) -> Vec<Action> {
    let mut plan = Plan::new(observation);
    for job in jobs {
        along_paths(&mut plan, *job, u32::MAX);
    }
    plan.into_actions()
}

/// Serves the job with the least work first, and in it the stage at which the longest path starts: SJF-CP.
pub(super) fn critical_path(observation: &Observation) -> Vec<Action> {
    let mut plan = Plan::new(observation);
    let mut order: Vec<usize> = (0..observation.jobs.len()).collect();
    order.sort_by_cached_key(|job| (observation.jobs[*job].work(), *job));
    for job in order {
        along_paths(&mut plan, job, u32::MAX);
    }
    plan.into_actions()
}

/// Gives a job executors up to this number: to the stage with the longest path first, and to those that can run at once
/// before those that must wait. Returns how many it got.
pub(super) fn along_paths(plan: &mut Plan<'_>, job: usize, cap: u32) -> u32 {
    let before = plan.held(job);
    let mut lengths = None;
    let mut refused = Vec::new();
    while !plan.is_exhausted() && plan.held(job) < cap {
        let mut stages = plan.runnable(job);
        stages.retain(|stage| !refused.contains(stage));
        let Some(first) = stages.first().copied() else { break };
        let lengths: &Vec<u64> = lengths.get_or_insert_with(|| paths(&plan.observation.jobs[job]).length);
        let ready = plan.ready(job, first);
        let same = stages.into_iter().filter(|stage| plan.ready(job, *stage) == ready);
        let Some(best) = same.max_by_key(|stage| (lengths[*stage], std::cmp::Reverse(*stage))) else { break };
        let more = cap - plan.held(job);
        if plan.give(job, best, more) == 0 {
            refused.push(best);
        }
    }
    plan.held(job) - before
}
