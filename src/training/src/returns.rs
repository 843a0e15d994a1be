//! Computes advantages: how much better a choice was than the mean of all rollouts of the same jobs at the same instant
//! (Decima's input-dependent baseline). It runs nothing.

use dag::order::{Job, Observation};

/// Number of values that summarize the remaining work of a cluster.
pub const STATE: usize = 3;

/// Estimates of the discounted job-seconds for which the present jobs will still wait: under shortest job first, under
/// equal shares, and if they never ended.
pub type State = [f64; STATE];

/// Returns the estimates for an observation when `left` seconds of the episode remain.
pub fn state(observation: &Observation, left: f64, discount: f64) -> State {
    let seconds = |job: &Job| job.remaining() as f64 / 1000.0 / f64::from(observation.executors.max(1));
    let mut works: Vec<f64> = observation.jobs.iter().map(seconds).collect();
    works.sort_by(f64::total_cmp);
    let waits = |end: f64| {
        let end = end.min(left.max(0.0));
        if discount > 1e-9 { (1.0 - (-discount * end).exp()) / discount } else { end }
    };
    let (mut before, mut state) = (0.0, [0.0; STATE]);
    for (at, work) in works.iter().enumerate() {
        // Longer jobs have received as much of an equal share when this one ends.
        let equal = before + work * (works.len() - at) as f64;
        before += work;
        state[0] += waits(before);
        state[1] += waits(equal);
        state[2] += waits(f64::INFINITY);
    }
    state
}

/// Returns the advantage of each point of each rollout, in job-seconds.
///
/// `points` are pairs of seconds and the job-seconds waited until then; the last point is the end. `mean_jobs` is the
/// mean number of jobs over earlier iterations (the differential reward). `discount` is the rate at which later seconds
/// count less.
///
/// The baseline is the mean over the rollouts at the same instant, plus what the state explains linearly of the rest
/// (our addition). Neither depends on the choice, so the expected gradient is unchanged.
pub fn advantages(rollouts: &[&[(f64, f64)]], states: &[&[State]], mean_jobs: f64, discount: f64) -> Vec<Vec<f64>> {
    let returns: Vec<Vec<f64>> = rollouts.iter().map(|points| to_go(points, mean_jobs, discount)).collect();
    let mut worth = above_mean(rollouts, &returns);
    let explained: [Vec<Vec<f64>>; STATE] = std::array::from_fn(|of| {
        let values: Vec<Vec<f64>> = states.iter().map(|own| own.iter().map(|state| state[of]).collect()).collect();
        above_mean(rollouts, &values)
    });
    let factors = fit(&worth, &explained);
    for (rollout, own) in worth.iter_mut().enumerate() {
        for (point, worth) in own.iter_mut().enumerate() {
            *worth -= (0..STATE).map(|of| factors[of] * explained[of][rollout][point]).sum::<f64>();
        }
    }
    worth
}

/// Returns by how much the values of each rollout's points exceed the mean of all rollouts at the same instant.
fn above_mean(rollouts: &[&[(f64, f64)]], values: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mean_at = |time: f64| {
        let all = rollouts.iter().zip(values).map(|(points, values)| at(points, values, time));
        all.sum::<f64>() / rollouts.len().max(1) as f64
    };
    let of = |(points, values): (&&[(f64, f64)], &Vec<f64>)| {
        points.iter().zip(values).map(|((time, _), own)| own - mean_at(*time)).collect()
    };
    rollouts.iter().zip(values).map(of).collect()
}

/// Returns the least-squares factors of `values` by `by`, with a small ridge.
fn fit(values: &[Vec<f64>], by: &[Vec<Vec<f64>>; STATE]) -> [f64; STATE] {
    let product = |a: &[Vec<f64>], b: &[Vec<f64>]| {
        let pairs = a.iter().flatten().zip(b.iter().flatten());
        pairs.map(|(a, b)| a * b).sum::<f64>()
    };
    // Normal equations, solved by elimination; the ridge makes them positive definite.
    let mut rows: [[f64; STATE + 1]; STATE] = [[0.0; STATE + 1]; STATE];
    for row in 0..STATE {
        for column in 0..STATE {
            rows[row][column] = product(&by[row], &by[column]);
        }
        rows[row][row] = rows[row][row] * 1.01 + 1e-9;
        rows[row][STATE] = product(&by[row], values);
    }
    for pivot in 0..STATE {
        for row in 0..STATE {
            if row != pivot {
                let factor = rows[row][pivot] / rows[pivot][pivot];
                let from = rows[pivot];
                rows[row].iter_mut().zip(from).for_each(|(value, from)| *value -= factor * from);
            }
        }
    }
    std::array::from_fn(|of| rows[of][STATE] / rows[of][of])
}

/// Returns the sum of rewards from each point to the end. A reward is minus the number of jobs above `mean_jobs`, times
/// the duration.
fn to_go(points: &[(f64, f64)], mean_jobs: f64, discount: f64) -> Vec<f64> {
    let mut returns = vec![0.0; points.len()];
    for at in (0..points.len().saturating_sub(1)).rev() {
        let ((from, before), (to, after)) = (points[at], points[at + 1]);
        let time = to - from;
        let keeps = (-discount * time).exp();
        // Integral of the discount over the interval, in which the number of jobs is taken as constant.
        let seconds = if discount * time > 1e-9 { (1.0 - keeps) / discount } else { time };
        let jobs = if time > 0.0 { (after - before) / time } else { 0.0 };
        returns[at] = -(jobs - mean_jobs) * seconds + keeps * returns[at + 1];
    }
    returns
}

/// Returns the return at an instant, linearly interpolated between two points; 0 after the end.
fn at(points: &[(f64, f64)], returns: &[f64], time: f64) -> f64 {
    let after = points.partition_point(|(known, _)| *known < time);
    match (after.checked_sub(1), points.get(after)) {
        (_, None) => 0.0,
        (None, Some(_)) => returns[0],
        (Some(before), Some((next, _))) => {
            let from = points[before].0;
            let part = if *next > from { (time - from) / (next - from) } else { 0.0 };
            returns[before] + (returns[after] - returns[before]) * part
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_baseline_is_the_mean_at_the_same_instant() {
        // Two jobs for 10 s, against two for 4 s and then one for 6 s.
        let slow = [(0.0, 0.0), (10.0, 20.0)];
        let fast = [(0.0, 0.0), (4.0, 8.0), (10.0, 14.0)];
        let none: [&[State]; 2] = [&[[0.0; 3]; 2], &[[0.0; 3]; 3]];
        let all = advantages(&[&slow, &fast], &none, 0.0, 0.0);
        assert_eq!(all[0], [-3.0, 0.0]);
        // At 4 s the slow rollout has 12 job-seconds to go.
        assert_eq!(all[1], [3.0, 3.0, 0.0]);
        // The usual number of jobs does not matter as long as all rollouts end at the same time.
        let mean_jobs = advantages(&[&slow, &fast], &none, 5.0, 0.0);
        assert!(all.iter().flatten().zip(mean_jobs.iter().flatten()).all(|(a, b)| (a - b).abs() < 1e-9));
        let later = advantages(&[&slow, &fast], &none, 0.0, 0.1);
        assert!(later[1][0] > 0.0 && later[1][0] < 3.0);
    }

    #[test]
    fn what_the_state_explains_is_no_merit_of_a_choice() {
        // Two rollouts that differ only by the work that is left at 1 s.
        let (more, less) = ([(0.0, 0.0), (1.0, 2.0), (11.0, 22.0)], [(0.0, 0.0), (1.0, 2.0), (11.0, 12.0)]);
        let states: [&[State]; 2] =
            [&[[15.0, 0.0, 0.0], [20.0, 0.0, 0.0], [0.0; 3]], &[[15.0, 0.0, 0.0], [10.0, 0.0, 0.0], [0.0; 3]]];
        let all = advantages(&[&more, &less], &states, 0.0, 0.0);
        assert!(all[0][1].abs() < 0.1 && all[1][1].abs() < 0.1 && all[1][0] > 4.0, "{all:?}");
    }

    #[test]
    fn a_state_is_what_is_to_come() {
        let job = |tasks| {
            let stages = vec![dag::order::Stage { tasks, duration: 1000, ..dag::order::Stage::default() }];
            Job { id: u64::from(tasks), arrival: 0, class: 0, weight: 1000, deadline: None, held: 0, stages }
        };
        let observation = Observation { executors: 2, jobs: vec![job(20), job(10)], ..Observation::default() };
        assert_eq!(state(&observation, 100.0, 0.0), [5.0 + 15.0, 10.0 + 15.0, 200.0]);
    }
}
