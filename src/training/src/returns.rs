//! How much better a choice was than the mean of all rollouts of the same jobs at the same instant: Decima's
//! input-dependent baseline. It knows instants and sums of waiting only.

/// For each point of each rollout its advantage, in job-seconds. `points` are seconds and job-seconds waited until
/// then, the last one is the end. `usual` is the mean number of jobs over earlier iterations (the differential reward),
/// `discount` what a second later counts less.
pub fn advantages(rollouts: &[&[(f64, f64)]], usual: f64, discount: f64) -> Vec<Vec<f64>> {
    let returns: Vec<Vec<f64>> = rollouts.iter().map(|points| to_go(points, usual, discount)).collect();
    let mean_at = |time: f64| {
        let all = rollouts.iter().zip(&returns).map(|(points, returns)| at(points, returns, time));
        all.sum::<f64>() / rollouts.len().max(1) as f64
    };
    let of = |(points, returns): (&&[(f64, f64)], &Vec<f64>)| {
        points.iter().zip(returns).map(|((time, _), own)| own - mean_at(*time)).collect()
    };
    rollouts.iter().zip(&returns).map(of).collect()
}

/// The sum of rewards from each point to the end: minus the jobs in the cluster above the usual, by time.
fn to_go(points: &[(f64, f64)], usual: f64, discount: f64) -> Vec<f64> {
    let mut returns = vec![0.0; points.len()];
    for at in (0..points.len().saturating_sub(1)).rev() {
        let ((from, before), (to, after)) = (points[at], points[at + 1]);
        let time = to - from;
        let keeps = (-discount * time).exp();
        // The integral of the discount over the interval, in which the number of jobs counts as constant.
        let seconds = if discount * time > 1e-9 { (1.0 - keeps) / discount } else { time };
        let jobs = if time > 0.0 { (after - before) / time } else { 0.0 };
        returns[at] = -(jobs - usual) * seconds + keeps * returns[at + 1];
    }
    returns
}

/// The returns at an instant, between two points on the line between them; 0 behind the end.
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
        // Two jobs for 10 s, or for 4 s and one for 6 s.
        let slow = [(0.0, 0.0), (10.0, 20.0)];
        let fast = [(0.0, 0.0), (4.0, 8.0), (10.0, 14.0)];
        let all = advantages(&[&slow, &fast], 0.0, 0.0);
        assert_eq!(all[0], [-3.0, 0.0]);
        // At 4 s the slow one has 12 to go.
        assert_eq!(all[1], [3.0, 3.0, 0.0]);
        // What is usual does not matter as long as all end at once.
        let usual = advantages(&[&slow, &fast], 5.0, 0.0);
        assert!(all.iter().flatten().zip(usual.iter().flatten()).all(|(a, b)| (a - b).abs() < 1e-9));
        let later = advantages(&[&slow, &fast], 0.0, 0.1);
        assert!(later[1][0] > 0.0 && later[1][0] < 3.0);
    }
}
