//! Orders that consider demands: the packing of Tetris, and troublesome stages first, after Graphene. They do not place
//! tasks on particular machines.

use super::action::Action;
use super::graph::paths;
use super::observation::{Amounts, Observation};
use super::plan::Plan;

/// A stage with its score.
#[derive(Clone, Copy)]
struct Candidate {
    job: usize,
    stage: usize,
    score: f64,
}

/// Returns the value of a unit of each resource, such that all that is free of it is worth 1.
fn scales(plan: &Plan<'_>) -> [f64; 3] {
    let mut totals = [0.0; 3];
    for (count, amounts) in plan.amounts() {
        for (total, amount) in totals.iter_mut().zip(amounts.array()) {
            *total += f64::from(count) * amount as f64;
        }
    }
    totals.map(|total: f64| if total > 0.0 { total.recip() } else { 0.0 })
}

/// Returns how well a demand matches what is free: the product of both, summed over resources (Tetris, section 3.2).
fn alignment(demand: Amounts, free: Amounts, scales: [f64; 3]) -> f64 {
    let parts = demand.array().into_iter().zip(free.array()).zip(scales);
    parts.map(|((demand, free), scale)| demand as f64 * free as f64 * scale * scale).sum()
}

/// Serves the stage that matches the free resources best, combined with a preference for jobs with little work left:
/// Tetris. `short` is the weight of that preference; 1 weighs both alike.
pub(super) fn tetris(observation: &Observation, short: f64) -> Vec<Action> {
    let mut plan = Plan::new(observation);
    let scales = scales(&plan);
    let remaining: Vec<f64> = observation.jobs.iter().map(|job| job.remaining().max(1) as f64).collect();
    let mean = remaining.iter().sum::<f64>() / remaining.len().max(1) as f64;
    // The largest slot decides, as in the paper the machine that asks.
    while let Some(room) = plan.amounts().map(|(_, amounts)| amounts).max_by_key(|amounts| (amounts.cpus, amounts.mem))
    {
        let mut all: Vec<Candidate> = Vec::new();
        for job in 0..observation.jobs.len() {
            let soonest = plan.runnable(job).first().map(|stage| plan.ready(job, *stage));
            for stage in plan.runnable(job) {
                let demand = observation.jobs[job].stages[stage].demand;
                if Some(plan.ready(job, stage)) == soonest && room.fits(demand) > 0 {
                    let demand = if demand.is_zero() { room } else { demand };
                    all.push(Candidate { job, stage, score: alignment(demand, room, scales) });
                }
            }
        }
        let average = all.iter().map(|one| one.score).sum::<f64>() / all.len().max(1) as f64;
        for one in &mut all {
            one.score = one.score / average.max(f64::MIN_POSITIVE) + short * mean / (mean + remaining[one.job]);
        }
        all.sort_by(|a, b| b.score.total_cmp(&a.score).then((a.job, a.stage).cmp(&(b.job, b.stage))));
        // Assign a quarter of the slots in this order; then compute the scores anew for what is free.
        let mut most = (plan.free() / 4).max(1);
        let before = plan.given();
        for one in &all {
            most -= plan.give(one.job, one.stage, most).min(most);
            if most == 0 {
                break;
            }
        }
        if plan.given() == before {
            break;
        }
    }
    plan.into_actions()
}

/// Fraction of the longest task, or of the largest demand, of a job from which its stages are troublesome.
const TROUBLESOME: f64 = 0.5;

/// Serves short jobs first, and in a job the stages that lead to troublesome ones, then these, then all others: after
/// Graphene, adapted as for Decima. Stages with long tasks or large demands are troublesome, because those that start
/// late leave slots empty.
pub(super) fn graphene(observation: &Observation) -> Vec<Action> {
    let mut plan = Plan::new(observation);
    let scales = scales(&plan);
    let mut order: Vec<usize> = (0..observation.jobs.len()).collect();
    order.sort_by_cached_key(|job| (observation.jobs[*job].remaining(), *job));
    for job in order {
        if plan.is_exhausted() {
            break;
        }
        let rank = trouble(observation, job, scales);
        let mut refused = Vec::new();
        while !plan.is_exhausted() {
            let mut stages = plan.runnable(job);
            stages.retain(|stage| !refused.contains(stage));
            let Some(ready) = stages.first().map(|stage| plan.ready(job, *stage)) else { break };
            let same = stages.into_iter().filter(|stage| plan.ready(job, *stage) == ready);
            let Some(best) = same.max_by_key(|stage| (rank[*stage], std::cmp::Reverse(*stage))) else { break };
            if plan.give(job, best, u32::MAX) == 0 {
                refused.push(best);
            }
        }
    }
    plan.into_actions()
}

/// Returns for each stage of a job whether it is troublesome or leads to a troublesome one, and its longest path.
fn trouble(observation: &Observation, job: usize, scales: [f64; 3]) -> Vec<(bool, u64)> {
    let job = &observation.jobs[job];
    let large = |demand: Amounts| demand.array().into_iter().zip(scales).map(|(a, s)| a as f64 * s).fold(0.0, f64::max);
    let open = || job.stages.iter().filter(|stage| !stage.is_done());
    let longest = open().map(|stage| stage.duration).max().unwrap_or(0) as f64;
    let largest = open().map(|stage| large(stage.demand)).fold(0.0, f64::max);
    let mut leads: Vec<bool> = job
        .stages
        .iter()
        .map(|stage| {
            let long = stage.duration as f64 >= TROUBLESOME * longest;
            // If all demands were equal, all would be the largest: only those above the mean count.
            let wide =
                large(stage.demand) > TROUBLESOME * largest && large(stage.demand) > 1.5 * mean_demand(job, large);
            !stage.is_done() && (long || wide)
        })
        .collect();
    for at in (0..job.stages.len()).rev().filter(|at| leads[*at]).collect::<Vec<_>>() {
        mark(job, at, &mut leads);
    }
    leads.into_iter().zip(paths(job).length).collect()
}

fn mean_demand(job: &super::Job, large: impl Fn(Amounts) -> f64) -> f64 {
    job.stages.iter().map(|stage| large(stage.demand)).sum::<f64>() / job.stages.len().max(1) as f64
}

/// Marks the stages that must finish before a stage.
fn mark(job: &super::Job, at: usize, leads: &mut [bool]) {
    let mut open = vec![at];
    while let Some(at) = open.pop() {
        for parent in job.stages[at].parents.iter().map(|parent| *parent as usize).filter(|parent| *parent < at) {
            if !leads[parent] {
                leads[parent] = true;
                open.push(parent);
            }
        }
    }
}
