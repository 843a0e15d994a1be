//! A run: a scenario with one seed, from the first event to the outcome.

mod faults;
mod sampler;
mod source;
mod timeline;

use std::path::Path;
use std::time::Duration;

use protos::mesos::master::{Call, call};
use resources::Quantities;

use crate::measure::{Outcome, Recorder};
use crate::scenario::{Prepared, Scenario, ScenarioError, prepare, quotas};
use crate::seeds::Seed;
use crate::world::{BEGIN, Setup, World};
use faults::Troubles;
pub(crate) use sampler::Head;
pub(crate) use timeline::Timeline;

/// Strips of a Gantt chart that a run keeps.
pub(crate) const STRIPS: usize = 20_000;

/// Runs a scenario with a seed. `progress` is called from time to time with the part of the virtual time that has
/// passed, and may stop the run by returning `false`.
///
/// # Errors
/// A trace that cannot be used.
pub fn run(
    scenario: &Scenario,
    seed: u64,
    directory: &Path,
    progress: &mut dyn FnMut(f64) -> bool,
) -> Result<Outcome, ScenarioError> {
    let root = Seed::root(seed);
    let Prepared { setup, frameworks } = prepare(scenario, root, directory)?;
    let total = total_of(&setup);
    let recorder = Recorder::new(frameworks.len(), STRIPS, total.clone());
    let mut timeline = Timeline::new(scenario, frameworks, total);
    let mut world = World::new(setup, root.child("world"), recorder);
    set_quotas(scenario, &mut world);
    let end = scenario.duration.0;
    let mut troubles = Troubles::new(scenario, root.child("faults"));
    while let Some(at) = timeline.next_at() {
        while let Some(fault) = troubles.next_at().filter(|fault| *fault <= at) {
            world.run_until(BEGIN + fault);
            troubles.strike(fault, &mut world);
        }
        world.run_until(BEGIN + at);
        let step = timeline.step(at, world.observer());
        step.submitted.into_iter().for_each(|who| world.nudge(who));
        if timeline.is_over() || step.looked && !progress(at.as_secs_f64() / end.as_secs_f64()) {
            break;
        }
    }
    let (digest, events) = (world.digest(), world.events());
    let head = Head {
        scenario: scenario.name.clone(),
        seed,
        digest: format!("{digest:016x}"),
        events,
        seconds: world.now().since(BEGIN).as_secs_f64(),
        done: timeline.is_done(),
        live: None,
    };
    Ok(timeline.outcome(head, &world.into_observer()))
}

/// Total resources of a world's agents.
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
