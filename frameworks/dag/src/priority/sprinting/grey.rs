//! The grey-box model: a forest predicts an effective rate, from which the simulator computes response times. The
//! caller supplies the observations.

use super::queue::{Arrivals, Outcome, simulate};
use super::{Forest, ForestSettings, Sample, SprintPolicy};

/// A policy that was tried, with its observed response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProfiledPolicy {
    /// Policy that was tried.
    pub policy: SprintPolicy,
    /// Fraction of the time in which servers would be busy without sprints.
    pub load: f64,
    /// Marginal rate: speed of a job that sprints alone from its start to its end, relative to one without sprints.
    pub marginal: f64,
    /// Observed mean response, in seconds.
    pub response: f64,
}

/// Largest effective gain that is considered, as a multiple of the marginal one.
const MOST: f64 = 1.6;
/// Number of steps of the search for a rate.
const STEPS: u32 = 14;

/// A trained grey-box model.
#[derive(Clone, Debug)]
pub struct GreyBoxModel {
    forest: Option<Forest>,
    /// Mean service time in seconds: the unit of times in the forest.
    unit: f64,
}

impl GreyBoxModel {
    /// Finds the effective rate of each profiled policy and trains the forest.
    ///
    /// `respond` simulates the policy at this index with an effective rate, and returns the mean response; `unit` is
    /// the mean service time in seconds. Without profiled policies the model uses the marginal rate alone.
    pub fn train(
        profiled: &[ProfiledPolicy],
        respond: impl Fn(usize, f64) -> f64,
        unit: f64,
        seed: u64,
    ) -> GreyBoxModel {
        let sample = |(place, one): (usize, &ProfiledPolicy)| {
            let (value, weight) = effective(one, |rate| respond(place, rate))?;
            Some(Sample { features: features(one, unit), value, weight })
        };
        let samples: Vec<Sample> = profiled.iter().enumerate().filter_map(sample).collect();
        GreyBoxModel { forest: Forest::grow(&samples, ForestSettings::default(), seed), unit }
    }

    /// Returns the effective rate of a policy; the field `response` of `asked` is ignored.
    pub fn effective(&self, asked: &ProfiledPolicy) -> f64 {
        let share = self.forest.as_ref().map_or(1.0, |forest| forest.predict(&features(asked, self.unit)));
        1.0 + share * (asked.marginal - 1.0)
    }

    /// Predicts the response times of a policy with these arrivals.
    pub fn predict(&self, asked: &ProfiledPolicy, arrivals: &Arrivals<'_>) -> Outcome {
        simulate(arrivals, &asked.policy, self.effective(asked))
    }
}

/// Trains a forest that predicts the response itself, in units of the mean service time: the model without the
/// simulator. `None` without policies.
pub fn direct(profiled: &[ProfiledPolicy], unit: f64, seed: u64) -> Option<impl Fn(&ProfiledPolicy) -> f64> {
    let sample =
        |one: &ProfiledPolicy| Sample { features: features(one, unit), value: one.response / unit, weight: 1.0 };
    let samples: Vec<Sample> = profiled.iter().map(sample).collect();
    let forest = Forest::grow(&samples, ForestSettings::default(), seed)?;
    Some(move |asked: &ProfiledPolicy| forest.predict(&features(asked, unit)) * unit)
}

fn features(one: &ProfiledPolicy, unit: f64) -> Vec<f64> {
    let SprintPolicy { timeout, budget, refill, rate } = one.policy;
    let unit = unit.max(1e-9);
    vec![timeout / unit, (budget / unit).ln_1p(), refill, rate, one.load, one.marginal]
}

/// Returns the fraction of the marginal gain with which the simulated response is closest to the observed one, and the
/// weight of this sample: how strongly responses depend on the gain. `None` where sprints change nothing.
fn effective(one: &ProfiledPolicy, respond: impl Fn(f64) -> f64) -> Option<(f64, f64)> {
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
    // Responses decrease as the rate increases.
    let (mut low, mut high) = (0.0, MOST);
    for _ in 0..STEPS {
        let middle = (low + high) / 2.0;
        if at(middle) > one.response { low = middle } else { high = middle }
    }
    Some(((low + high) / 2.0, sensitivity * sensitivity))
}
