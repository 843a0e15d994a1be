//! Estimates how long each job would take with equal shares, and finds jobs that have waited for many times that. It
//! allocates nothing.

use std::collections::BTreeMap;

use crate::order::{Job, Observation, paths};

/// Least fair time in milliseconds; shorter ones count as this. So a job of a second is not starved after four.
const LEAST: u64 = 10_000;

#[derive(Clone, Copy, Debug)]
struct Known {
    /// Executor-milliseconds that equal shares would have given the job.
    entitled: f64,
    /// Age of the job, in milliseconds, at which that amount reached its work and the age its longest path; `None`
    /// before, and if the work turned out to be more.
    fair: Option<u64>,
}

/// The fair times of the present jobs.
#[derive(Debug, Default)]
pub(super) struct FairTimes {
    jobs: BTreeMap<u64, Known>,
    at: u64,
}

fn is_open(job: &Job) -> bool {
    job.stages.iter().any(|stage| !stage.is_done())
}

impl FairTimes {
    /// Advances the time to this observation.
    pub(super) fn observe(&mut self, observation: &Observation) {
        let time = observation.now.saturating_sub(self.at) as f64;
        self.at = observation.now;
        let count = observation.jobs.iter().filter(|job| is_open(job)).count();
        let share = f64::from(observation.executors) * time / count.max(1) as f64;
        let mut jobs = BTreeMap::new();
        for job in observation.jobs.iter().filter(|job| is_open(job)) {
            // A new job counts from the next observation on. So it receives a little less than it would have had since
            // it arrived.
            let mut known = match self.jobs.get(&job.id) {
                Some(known) => Known { entitled: known.entitled + share, ..*known },
                None => Known { entitled: 0.0, fair: None },
            };
            let age = observation.now.saturating_sub(job.arrival);
            // Numbers and durations of tasks that have not run are estimates, so the work and the path may grow.
            let longest = || paths(job).length.into_iter().max().unwrap_or(0);
            known.fair = match known.fair {
                _ if known.entitled < job.work() as f64 => None,
                Some(fair) => Some(fair.max(longest())),
                None => (age >= longest()).then_some(age),
            };
            jobs.insert(job.id, known);
        }
        self.jobs = jobs;
    }

    /// Returns the indices of jobs that are older than `times` times their fair time, the oldest first.
    pub(super) fn overdue(&self, observation: &Observation, times: f64) -> Vec<usize> {
        let is_overdue = |place: &usize| {
            let job = &observation.jobs[*place];
            let fair = self.jobs.get(&job.id).and_then(|known| known.fair);
            let age = observation.now.saturating_sub(job.arrival) as f64;
            fair.is_some_and(|fair| age > times * fair.max(LEAST) as f64)
        };
        (0..observation.jobs.len()).filter(is_overdue).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Stage;

    #[test]
    fn a_job_that_turns_out_longer_is_not_overdue() {
        let job = |duration| {
            let stages = vec![Stage { tasks: 40, duration, ..Stage::default() }];
            Job { id: 1, arrival: 0, class: 0, weight: 1000, deadline: None, held: 0, stages }
        };
        let mut times = FairTimes::default();
        // The first estimate of 1 s for a task gives a fair time of 2 s. The tasks take 100 s, so it is 200 s.
        for now in (0..=700_000).step_by(1000) {
            let duration = if now < 10_000 { 1_000 } else { 100_000 };
            let jobs = vec![job(duration)];
            let observation = Observation { now, executors: 20, jobs, ..Observation::default() };
            times.observe(&observation);
            assert!(times.overdue(&observation, 4.0).is_empty(), "at {now}");
        }
    }

    #[test]
    fn a_job_is_overdue_after_so_many_fair_times() {
        let job = |id| {
            let stages = vec![Stage { tasks: 40, duration: 10_000, ..Stage::default() }];
            Job { id, arrival: 0, class: 0, weight: 1000, deadline: None, held: 0, stages }
        };
        let mut times = FairTimes::default();
        // 400 s of work for each of two jobs on 20 executors: 40 s.
        let mut overdue = Vec::new();
        for now in (0..300_000).step_by(1000) {
            let observation = Observation { now, executors: 20, jobs: vec![job(1), job(2)], ..Observation::default() };
            times.observe(&observation);
            if !times.overdue(&observation, 4.0).is_empty() {
                overdue.push(now);
            }
        }
        assert_eq!(overdue.first(), Some(&161_000));
    }
}
