//! The order by deadlines: the earliest deadline first, as long as it can be met. Demands are ignored.

use std::cmp::Reverse;

use super::action::Action;
use super::graph::paths;
use super::observation::Observation;
use super::plan::Plan;
use super::shortest::along_paths;

/// Serves jobs by their deadlines, each with all executors that it can use along its longest path.
///
/// A deadline that cannot be met any more comes after those that can: otherwise it would only make them late as well.
/// Jobs without a deadline come last, by class and in the order of their arrival.
pub(super) fn earliest(observation: &Observation) -> Vec<Action> {
    let mut plan = Plan::new(observation);
    for job in order(observation) {
        along_paths(&mut plan, job, u32::MAX);
    }
    plan.into_actions()
}

/// Returns the indices of the jobs in the order in which they are served.
fn order(observation: &Observation) -> Vec<usize> {
    let mut due: Vec<(u64, usize)> = Vec::new();
    let mut others: Vec<usize> = Vec::new();
    for (place, job) in observation.jobs.iter().enumerate() {
        match job.deadline {
            Some(deadline) => due.push((deadline, place)),
            None => others.push(place),
        }
    }
    due.sort_unstable();
    others.sort_by_key(|place| (Reverse(observation.jobs[*place].class), observation.jobs[*place].arrival, *place));
    let executors = u64::from(observation.executors.max(1));
    // Task-milliseconds of the jobs before this one.
    let mut before: u64 = 0;
    let (mut first, mut late) = (Vec::new(), Vec::new());
    for (deadline, place) in due {
        let job = &observation.jobs[place];
        let work = before.saturating_add(job.remaining());
        let longest = paths(job).length.into_iter().max().unwrap_or(0);
        // A lower bound of the end: all executors work on this job and those before, and no path is shorter than its
        // stages.
        let ends = observation.now.saturating_add(longest.max(work / executors));
        if ends <= deadline {
            before = work;
            first.push(place);
        } else {
            late.push(place);
        }
    }
    first.extend(late);
    first.extend(others);
    first
}
