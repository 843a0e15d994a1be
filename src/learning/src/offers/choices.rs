//! The policies that an action chooses, one number for each: 0 keeps the policy of the scenario. Nothing is set here.

use std::time::Duration;

use allocator::policies::Policies;
use resources::{Name, Quantities};

use crate::Action;

/// Choices for the longest time that an offer may be held, in seconds.
pub const HOLDING: [u64; 7] = [1, 2, 5, 10, 30, 60, 300];

/// Choices for the duration of every offer filter, in seconds.
pub const REFUSAL: [u64; 6] = [1, 5, 15, 30, 60, 300];

/// Choices for the number of parts of the largest agent in which resources are offered.
pub const GRANULARITY: [u32; 3] = [2, 4, 8];

/// Choices for the fraction of the cluster that a framework may hold as offers.
pub const SHARE: [f64; 4] = [0.5, 0.25, 0.1, 0.05];

/// Duration of the filter on an offer that was not answered in time, if neither the action nor the scenario has one.
/// Otherwise the framework that held it would be offered the same resources again at once.
const TIMED_OUT: Duration = Duration::from_secs(5);

/// Returns the number of choices of each number of an action.
pub fn counts() -> Vec<u32> {
    [HOLDING.len(), REFUSAL.len(), GRANULARITY.len(), SHARE.len()].map(|choices| choices as u32 + 1).into()
}

/// Returns the policies of the scenario, replaced by those that the action chooses.
pub fn policies(of_scenario: &Policies, action: Action<'_>, largest: &Quantities) -> Policies {
    let mut policies = of_scenario.clone();
    let chosen = |at: usize| action.choice(at).checked_sub(1);
    let refusal = chosen(1).and_then(|at| REFUSAL.get(at)).map(|seconds| Duration::from_secs(*seconds));
    if let Some(length) = refusal {
        let all = &mut policies.refusal;
        (all.default, all.min, all.max) = (Some(length), Some(length), Some(length));
        all.backoff = None;
    }
    if let Some(seconds) = chosen(0).and_then(|at| HOLDING.get(at)) {
        policies.offer_timeout = Some(Duration::from_secs(*seconds));
        policies.refusal.timed_out = policies.refusal.timed_out.or(refusal).or(Some(TIMED_OUT));
    }
    if let Some(parts) = chosen(2).and_then(|at| GRANULARITY.get(at)) {
        let mut slice = Quantities::new();
        for name in [Name::from("cpus"), Name::from("mem")] {
            let amount = largest.get(&name).scaled(1.0 / f64::from(*parts));
            if amount.to_f64() > 0.0 {
                slice.add(&name, amount);
            }
        }
        policies.offer_granularity = Some(slice).filter(|slice| !slice.is_empty());
    }
    if let Some(share) = chosen(3).and_then(|at| SHARE.get(at)) {
        policies.max_offered_share = Some(*share);
    }
    policies
}
