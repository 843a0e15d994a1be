//! The model: an effective rate that a forest predicts, and response times that the simulator makes of it. Observing is
//! the caller's.

use super::queue::{Arrivals, Outcome, simulate};
use super::{Forest, ForestSettings, Sample, SprintPolicy};

/// A policy that was tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profiled {
    /// The policy.
    pub policy: SprintPolicy,
    /// The part of the time in which servers would be busy without sprints.
    pub load: f64,
    /// How many times as fast a job is that sprints alone from its beginning to its end.
    pub marginal: f64,
    /// The mean response that was observed, in seconds.
    pub response: f64,
}

/// Effective gains are looked for up to this many times the marginal one.
const MOST: f64 = 1.6;
/// Steps of the search for a rate.
const STEPS: u32 = 14;

/// A trained model.
#[derive(Clone, Debug)]
pub struct Grey {
    forest: Option<Forest>,
    /// Seconds that a job takes in the mean: times in the forest are in this unit.
    unit: f64,
}

impl Grey {
    /// Finds the effective rate of each profiled policy and trains the forest. `respond` simulates the policy at this
    /// place with an effective rate, and returns the mean response; `unit` is the mean service in seconds. Without
    /// profiled policies it is the model with the marginal rate alone.
    pub fn train(profiled: &[Profiled], respond: impl Fn(usize, f64) -> f64, unit: f64, seed: u64) -> Grey {
        let sample = |(place, one): (usize, &Profiled)| {
            let (value, weight) = effective(one, |rate| respond(place, rate))?;
            Some(Sample { features: features(one, unit), value, weight })
        };
        let samples: Vec<Sample> = profiled.iter().enumerate().filter_map(sample).collect();
        Grey { forest: Forest::grow(&samples, ForestSettings::default(), seed), unit }
    }

    /// The effective rate of a policy; `response` of what is asked for counts for nothing.
    pub fn effective(&self, asked: &Profiled) -> f64 {
        let share = self.forest.as_ref().map_or(1.0, |forest| forest.predict(&features(asked, self.unit)));
        1.0 + share * (asked.marginal - 1.0)
    }

    /// The response times of a policy with these arrivals.
    pub fn predict(&self, asked: &Profiled, arrivals: &Arrivals<'_>) -> Outcome {
        simulate(arrivals, &asked.policy, self.effective(asked))
    }
}

/// A forest that predicts the response itself, in units of the mean service: what is left of the model without the
/// simulator. None without policies.
pub fn direct(profiled: &[Profiled], unit: f64, seed: u64) -> Option<impl Fn(&Profiled) -> f64> {
    let sample = |one: &Profiled| Sample { features: features(one, unit), value: one.response / unit, weight: 1.0 };
    let samples: Vec<Sample> = profiled.iter().map(sample).collect();
    let forest = Forest::grow(&samples, ForestSettings::default(), seed)?;
    Some(move |asked: &Profiled| forest.predict(&features(asked, unit)) * unit)
}

fn features(one: &Profiled, unit: f64) -> Vec<f64> {
    let SprintPolicy { timeout, budget, refill, rate } = one.policy;
    let unit = unit.max(1e-9);
    vec![timeout / unit, (budget / unit).ln_1p(), refill, rate, one.load, one.marginal]
}

/// The share of the marginal gain with which the simulated response comes nearest to the observed one, and how much
/// that says: by how much responses depend on it. Nothing where sprints change nothing.
fn effective(one: &Profiled, respond: impl Fn(f64) -> f64) -> Option<(f64, f64)> {
    let gain = one.marginal - 1.0;
    if gain <= 0.0 {
        return None;
    }
    let at = |share: f64| respond(1.0 + share * gain);
    let (without, with) = (at(0.0), at(1.0));
    let sensitivity = (without - with) / one.response.max(1e-9);
    if sensitivity < 1e-3 {
        return None;
    }
    // Responses fall as the rate grows.
    let (mut low, mut high) = (0.0, MOST);
    for _ in 0..STEPS {
        let middle = (low + high) / 2.0;
        if at(middle) > one.response { low = middle } else { high = middle }
    }
    Some(((low + high) / 2.0, sensitivity * sensitivity))
}
