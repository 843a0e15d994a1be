//! Runs of scenarios: one scenario with one seed, from the first event to the outcome.

mod faults;
mod sampler;
mod source;
mod stepped;
mod timeline;

use std::path::Path;
use std::time::Duration;

use protos::mesos::master::{Call, call};
use resources::Quantities;

use crate::measure::{Outcome, Recorder};
use crate::scenario::{Scenario, ScenarioError, quotas};
use crate::world::{BEGIN, Setup, World};
pub(crate) use sampler::OutcomeHeader;
pub use stepped::Stepped;
pub(crate) use timeline::Timeline;

/// The most tasks in the Gantt chart of a run.
pub(crate) const STRIPS: usize = 20_000;

/// Runs a scenario with a seed. `progress` is called from time to time with the part of the virtual time that has
/// passed, and may stop the run by returning `false`.
///
/// # Errors
/// Returns an error if a trace is invalid.
pub fn run(
    scenario: &Scenario,
    seed: u64,
    directory: &Path,
    progress: &mut dyn FnMut(f64) -> bool,
) -> Result<Outcome, ScenarioError> {
    let mut run = Stepped::new(scenario, seed, directory)?;
    run.advance(scenario.duration.0, progress);
    Ok(run.finish())
}

/// Returns the total resources of a world's agents.
fn total_of(setup: &Setup) -> Quantities {
    let mut total = Quantities::new();
    setup.agents.iter().for_each(|agent| total += &agent.resources.quantities());
    total
}

fn set_quotas(scenario: &Scenario, world: &mut World<Recorder>) {
    let configs = quotas(scenario);
    if configs.is_empty() {
        return;
    }
    // Waits until the master leads; no framework has subscribed by then.
    world.run_until(BEGIN + Duration::from_millis(5));
    let update = call::UpdateQuota { force: Some(true), quota_configs: configs };
    world.operate(Call { r#type: Some(call::Type::UpdateQuota as i32), update_quota: Some(update), ..Call::default() });
}

#[cfg(test)]
mod tests;
