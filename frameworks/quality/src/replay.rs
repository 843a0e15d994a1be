//! Applies policies to trainings with recorded losses, in virtual time: epochs, whole iterations, and cores of equal
//! speed. The placement does not influence losses, so the recorded ones are valid under every policy; only the times of
//! iterations are modelled.
//!
//! [`decide`] makes the decisions, from what the [`Forecaster`]s have seen so far. Nothing is trained.

use crate::allocate::{Bid, Policy, decide};
use crate::predict::{Forecast, Forecaster};

/// The recorded losses of a job, first to last, with its costs. Not empty.
#[derive(Clone, Debug)]
pub struct RecordedJob {
    /// Loss after each iteration.
    pub losses: Vec<f64>,
    /// Time of submission, in seconds after the beginning.
    pub after: f64,
    /// Factor of the job's gain; 1 for ordinary jobs.
    pub priority: f64,
    /// Number of parts in which the work can be done in parallel; the worker with the most parts determines the
    /// duration of a round.
    pub shards: u32,
    /// Maximum number of cores that the job can use.
    pub ceiling: u32,
    /// Seconds that one core computes in a round.
    pub work: f64,
    /// Seconds of overhead of a round, on any number of cores.
    pub overhead: f64,
    /// Number of rounds of an iteration.
    pub rounds: f64,
}

impl RecordedJob {
    /// Returns the lowest loss that the job reaches.
    pub fn end(&self) -> f64 {
        self.losses.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Returns the share of the loss reduction that is left after this many iterations.
    pub fn left(&self, iterations: usize) -> f64 {
        let at = self.losses[iterations.min(self.losses.len() - 1)];
        (at - self.end()) / (self.losses[0] - self.end())
    }

    /// Returns the seconds that an iteration takes on this many cores.
    pub fn seconds(&self, cores: u32) -> f64 {
        let most = f64::from(self.shards.div_ceil(cores)) / f64::from(self.shards);
        self.rounds * (self.work * most + self.overhead)
    }

    /// Returns the core-seconds that an iteration computes.
    pub fn busy(&self) -> f64 {
        self.rounds * self.work
    }
}

/// An error in recorded losses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {rule}")]
pub struct RecordingError {
    /// Number of the line, from 1.
    pub line: usize,
    /// Rule that the line breaks.
    pub rule: String,
}

/// Parses recorded losses, as the example `curves` writes them: `job,algorithm,losses`, a line for each training, with
/// its losses from first to last.
///
/// # Errors
/// Returns the first line without such losses: two at least, finite, and the first of them not the lowest.
pub fn read_losses(text: &str) -> Result<Vec<Vec<f64>>, RecordingError> {
    let mut all = Vec::new();
    for (n, line) in text.lines().enumerate().skip(1).filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |rule: &str| RecordingError { line: n + 1, rule: rule.to_owned() };
        let cell = line.split(',').nth(2).ok_or_else(|| wrong("must be job,algorithm,losses"))?;
        let losses: Result<Vec<f64>, _> = cell.split_whitespace().map(str::parse).collect();
        let losses = losses.map_err(|_| wrong("a loss is not a number"))?;
        let lowest = losses.iter().copied().fold(f64::INFINITY, f64::min);
        if losses.iter().any(|loss| !loss.is_finite()) || losses.first().is_none_or(|first| *first <= lowest) {
            return Err(wrong("needs two losses at least, finite, and the first of them not the lowest"));
        }
        all.push(losses);
    }
    match all.is_empty() {
        true => Err(RecordingError { line: 1, rule: "has no losses: job,algorithm,losses".to_owned() }),
        false => Ok(all),
    }
}

/// The cores that are shared, and the times of decisions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pool {
    /// Number of cores.
    pub cores: u32,
    /// Interval of decisions, in seconds.
    pub epoch: f64,
    /// Whether cores that are moved work for their new job at once. Otherwise an iteration ends with the cores with
    /// which it began, which is nearly exact while iterations are shorter than epochs.
    pub at_once: bool,
}

/// The result of a policy.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// For each job, the seconds from its submission to the end of each iteration.
    pub ends: Vec<Vec<f64>>,
    /// Time at which the last job ended, in seconds.
    pub makespan: f64,
    /// At the beginning of each epoch: its time, and for each running job its cores and the share that it has left to
    /// learn.
    pub epochs: Vec<(f64, Vec<(u32, f64)>)>,
}

impl Outcome {
    /// Returns the share that is left to learn, as a mean over all jobs and over the time from a job's submission to
    /// `until`; a job that has ended counts with what it left.
    pub fn mean_left(&self, curves: &[RecordedJob], until: f64) -> f64 {
        let mut sums = (0.0, 0.0);
        for (curve, ends) in curves.iter().zip(&self.ends) {
            let span = until - curve.after;
            let mut last = 0.0;
            for (iteration, end) in ends.iter().enumerate() {
                sums.0 += curve.left(iteration) * (end.min(span) - last);
                last = end.min(span);
            }
            sums.0 += curve.left(ends.len()) * (span - last);
            sums.1 += span;
        }
        sums.0 / sums.1
    }

    /// Returns, at moments `step` seconds apart, the share that is left to learn, as a mean over the jobs that run
    /// then. SLAQ's paper plots this.
    pub fn left_of_running(&self, curves: &[RecordedJob], step: f64) -> Vec<(f64, f64)> {
        let mut course = Vec::new();
        let mut now = 0.0;
        while now < self.makespan {
            let mut running = Vec::new();
            for (curve, ends) in curves.iter().zip(&self.ends) {
                let age = now - curve.after;
                if age >= 0.0 && ends.last().is_some_and(|end| age < *end) {
                    running.push(curve.left(ends.partition_point(|end| *end <= age)));
                }
            }
            if !running.is_empty() {
                course.push((now, running.iter().sum::<f64>() / running.len() as f64));
            }
            now += step;
        }
        course
    }

    /// Returns the mean of [`Outcome::left_of_running`] over time.
    pub fn mean_left_of_running(&self, curves: &[RecordedJob]) -> f64 {
        let course = self.left_of_running(curves, 0.25);
        course.iter().map(|(_, left)| left).sum::<f64>() / course.len().max(1) as f64
    }

    /// Returns the seconds from submission to the last iteration, as a mean over all jobs.
    pub fn mean_completion(&self) -> f64 {
        self.ends.iter().filter_map(|ends| ends.last()).sum::<f64>() / self.ends.len() as f64
    }

    /// Returns the seconds until only this share is left to learn, as a mean over all jobs.
    pub fn mean_time_to(&self, curves: &[RecordedJob], share: f64) -> f64 {
        let time = |(curve, ends): (&RecordedJob, &Vec<f64>)| {
            let done = (0..ends.len()).find(|i| curve.left(*i + 1) <= share).unwrap_or(ends.len() - 1);
            ends[done]
        };
        curves.iter().zip(&self.ends).map(time).sum::<f64>() / curves.len() as f64
    }
}

/// The current iteration of a job.
#[derive(Clone, Copy)]
struct CurrentIteration {
    cores: u32,
    /// Share of the iteration that is still to be done.
    left: f64,
    seconds: f64,
    core_seconds: f64,
}

struct Running {
    forecaster: Forecaster,
    cores: u32,
    current_iteration: Option<CurrentIteration>,
    received: f64,
    waited: u32,
    served: u32,
    done: u32,
}

/// Runs a policy over the jobs until all have ended their last iteration.
pub fn replay(curves: &[RecordedJob], policy: Policy, pool: Pool) -> Outcome {
    let mut ends: Vec<Vec<f64>> = vec![Vec::new(); curves.len()];
    let fresh = |_| Running {
        forecaster: Forecaster::new(None),
        cores: 0,
        current_iteration: None,
        received: 0.0,
        waited: 0,
        served: 0,
        done: 0,
    };
    let mut jobs: Vec<Running> = (0..curves.len()).map(fresh).collect();
    let (mut now, mut epochs) = (0.0, Vec::new());
    while ends.iter().zip(curves).any(|(e, c)| e.len() < c.losses.len()) {
        let active: Vec<usize> =
            (0..curves.len()).filter(|j| curves[*j].after <= now && ends[*j].len() < curves[*j].losses.len()).collect();
        let bids: Vec<Bid> = active.iter().map(|j| bid(&curves[*j], &jobs[*j], &ends[*j])).collect();
        for (job, cores) in active.iter().zip(decide(policy, &bids, pool.cores, pool.epoch)) {
            jobs[*job].cores = cores;
            jobs[*job].served = if cores == 0 { 0 } else { jobs[*job].served + 1 };
            jobs[*job].waited = if cores == 0 { jobs[*job].waited + 1 } else { 0 };
            jobs[*job].done = if cores == 0 { 0 } else { jobs[*job].done };
            jobs[*job].received += f64::from(cores) * pool.epoch;
        }
        epochs.push((now, active.iter().map(|j| (jobs[*j].cores, curves[*j].left(ends[*j].len()))).collect()));
        // The next decision comes after an epoch, or when a job arrives.
        let next = curves.iter().map(|c| c.after).filter(|a| *a > now).fold(now + pool.epoch, f64::min);
        for job in active {
            run(&curves[job], &mut jobs[job], &mut ends[job], (now, next), pool.at_once);
        }
        now = next;
    }
    let makespan = curves.iter().zip(&ends).map(|(c, e)| c.after + e[e.len() - 1]).fold(0.0, f64::max);
    Outcome { ends, makespan, epochs }
}

fn bid(curve: &RecordedJob, job: &Running, ends: &[f64]) -> Bid {
    let forecast = job.forecaster.forecast();
    let remaining = match forecast {
        Forecast::TooEarly { .. } => None,
        _ => Some((curve.losses.len() - ends.len()) as f64 * curve.busy()),
    };
    Bid {
        priority: curve.priority,
        floor: 1,
        ceiling: curve.ceiling,
        held: job.cores,
        forecast,
        reached: false,
        waited: job.waited,
        served: job.served,
        done: job.done,
        received: job.received,
        remaining,
    }
}

/// Advances a job from one instant to another.
fn run(curve: &RecordedJob, job: &mut Running, ends: &mut Vec<f64>, (from, until): (f64, f64), at_once: bool) {
    let mut now = from;
    while ends.len() < curve.losses.len() {
        let fresh = CurrentIteration { cores: job.cores, left: 1.0, seconds: 0.0, core_seconds: 0.0 };
        let mut it = job.current_iteration.take().unwrap_or(fresh);
        if at_once {
            it.cores = job.cores;
        }
        if it.cores == 0 {
            job.current_iteration = (it.left < 1.0).then_some(it);
            return;
        }
        let whole = curve.seconds(it.cores);
        let works = (it.left * whole).min(until - now);
        it.seconds += works;
        it.core_seconds += works * f64::from(it.cores);
        if now + it.left * whole > until {
            it.left -= works / whole;
            job.current_iteration = Some(it);
            return;
        }
        now += works;
        let cores = (it.core_seconds / it.seconds).round().max(1.0) as u32;
        job.forecaster.observe(curve.losses[ends.len()]);
        job.forecaster.observe_time(it.seconds, cores, curve.busy());
        ends.push(now - curve.after);
        job.done = job.done.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(after: f64, iterations: usize) -> RecordedJob {
        let losses = (0..iterations).map(|n| 1.0 / (n as f64 + 1.0)).collect();
        RecordedJob { losses, after, priority: 1.0, shards: 8, ceiling: 8, work: 4.0, overhead: 0.1, rounds: 1.0 }
    }

    #[test]
    fn recorded_losses_are_read_or_refused() {
        let read = |text: &str| read_losses(&format!("job,algorithm,losses\n{text}"));
        assert_eq!(read("a,svm,3 2 1e0\n\nb,svm,5 4\n"), Ok(vec![vec![3.0, 2.0, 1.0], vec![5.0, 4.0]]));
        for (text, line) in
            [("a,svm,3 2\nb", 3), ("a,b,x", 2), ("a,b,1 1", 2), ("a,b,", 2), ("a,b,2 nan 1", 2), ("", 1)]
        {
            assert_eq!(read(text).unwrap_err().line, line, "{text}");
        }
    }

    #[test]
    fn a_job_alone_gets_all_cores_and_a_second_one_its_part() {
        let pool = Pool { cores: 8, epoch: 1.0, at_once: false };
        let alone = replay(&[curve(0.0, 20)], Policy::Fair, pool);
        assert!((alone.makespan - 20.0 * 0.6).abs() < 1e-9, "{}", alone.makespan);
        let two = replay(&[curve(0.0, 20), curve(0.0, 20)], Policy::Fair, pool);
        assert!((two.makespan - 20.0 * 1.1).abs() < 2.0, "{}", two.makespan);
    }

    #[test]
    fn slaq_prefers_the_job_that_learns_most() {
        let pool = Pool { cores: 8, epoch: 1.0, at_once: true };
        let curves: Vec<RecordedJob> = (0..6).map(|n| curve(f64::from(n) * 8.0, 60)).collect();
        let [slaq, fair] = [Policy::Slaq, Policy::Fair].map(|policy| replay(&curves, policy, pool));
        let time = |outcome: &Outcome| outcome.mean_time_to(&curves, 0.1);
        assert!(time(&slaq) < time(&fair), "{} {}", time(&slaq), time(&fair));
        let given = slaq.epochs.iter().map(|(_, jobs)| jobs.iter().map(|(cores, _)| cores).sum::<u32>());
        assert!(given.into_iter().all(|cores| cores <= 8));
    }
}
