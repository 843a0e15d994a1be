//! Models how long a job runs: waves of tasks as a phase-type distribution. It knows no queues.

use serde::{Deserialize, Serialize};

/// Maximum number of phases of an Erlang distribution: more are as good as no variation.
const PHASES: u32 = 400;

/// A mixture of Erlang distributions: each has a probability, a number of phases, and a rate. It is of phase type, and
/// approximates any distribution of positive times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phases {
    /// Probability, number of phases, and rate of a phase per second, of each Erlang distribution.
    parts: Vec<(f64, u32, f64)>,
}

impl Phases {
    /// Returns the distribution for jobs with these numbers of tasks and their probabilities: `setup` seconds, and then
    /// waves of tasks on `slots` slots. A wave takes `wave` seconds in the mean, and its variance is `variation` times
    /// the square of that.
    pub fn of_waves(tasks: &[(u32, f64)], slots: u32, setup: f64, wave: f64, variation: f64) -> Phases {
        let total: f64 = tasks.iter().map(|(_, chance)| chance).sum();
        let part = |(tasks, chance): &(u32, f64)| {
            let waves = f64::from(tasks.div_ceil(slots.max(1)));
            let mean = (setup + waves * wave).max(1e-9);
            let variance = waves * variation * wave * wave;
            let phases = if variance > 0.0 {
                (mean * mean / variance).round().clamp(1.0, f64::from(PHASES))
            } else {
                f64::from(PHASES)
            };
            (chance / total, phases as u32, phases / mean)
        };
        Phases { parts: tasks.iter().filter(|(_, chance)| *chance > 0.0).map(part).collect() }
    }

    /// Returns the mixture with another distribution, which has the probability `chance`.
    pub fn mixed(&self, other: &Phases, chance: f64) -> Phases {
        let chance = chance.clamp(0.0, 1.0);
        let mine = self.parts.iter().map(|(p, phases, rate)| (p * (1.0 - chance), *phases, *rate));
        let theirs = other.parts.iter().map(|(p, phases, rate)| (p * chance, *phases, *rate));
        Phases { parts: mine.chain(theirs).filter(|part| part.0 > 0.0).collect() }
    }

    /// Returns the mean, in seconds.
    pub fn mean(&self) -> f64 {
        self.parts.iter().map(|(p, phases, rate)| p * f64::from(*phases) / rate).sum()
    }

    /// Returns the mean of squares, in square seconds.
    pub fn square(&self) -> f64 {
        let square =
            |(p, phases, rate): &(f64, u32, f64)| p * f64::from(*phases) * (f64::from(*phases) + 1.0) / rate / rate;
        self.parts.iter().map(square).sum()
    }

    /// Returns the probability of more than this many seconds.
    pub fn beyond(&self, seconds: f64) -> f64 {
        self.parts.iter().map(|(p, phases, rate)| p * erlang_beyond(*phases, rate * seconds.max(0.0))).sum()
    }

    /// Returns the mean, the mean of squares, and the mean seconds of sprinting, if a job that runs longer than
    /// `timeout` seconds runs `speed` times as fast from then on.
    pub fn sprinted(&self, timeout: f64, speed: f64) -> (f64, f64, f64) {
        let (timeout, speed) = (timeout.max(0.0), speed.max(1.0));
        let end = self.mean() + 12.0 * (self.square() - self.mean() * self.mean()).max(0.0).sqrt() + 1e-9;
        // Both integrals of the tail, by Simpson's rule: up to the timeout, and from there in the job's own time.
        let (first, first_weighted) = self.tail(0.0, timeout.min(end), |t| t);
        let (rest, rest_weighted) = self.tail(timeout.min(end), end, |t| timeout + (t - timeout) / speed);
        let sprinting = rest / speed;
        (first + sprinting, 2.0 * (first_weighted + rest_weighted / speed), sprinting)
    }

    /// Returns the integral of the tail, and that of the tail times a factor.
    fn tail(&self, from: f64, to: f64, factor: impl Fn(f64) -> f64) -> (f64, f64) {
        const STEPS: usize = 400;
        let step = (to - from) / STEPS as f64;
        if step <= 0.0 {
            return (0.0, 0.0);
        }
        (0..=STEPS).fold((0.0, 0.0), |(sum, weighted), n| {
            let weight = if n == 0 || n == STEPS { 1.0 } else { 2.0 + 2.0 * (n % 2) as f64 } * step / 3.0;
            let at = from + n as f64 * step;
            let beyond = self.beyond(at) * weight;
            (sum + beyond, weighted + beyond * factor(at))
        })
    }
}

/// Returns the probability that fewer than `phases` events of rate 1 happen in this time.
fn erlang_beyond(phases: u32, time: f64) -> f64 {
    if time <= 0.0 {
        return 1.0;
    }
    let (mut log, mut sum) = (-time, (-time).exp());
    for n in 1..phases {
        log += time.ln() - f64::from(n).ln();
        sum += log.exp();
    }
    sum.min(1.0)
}
