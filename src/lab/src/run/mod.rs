//! A run: a scenario with one seed, from the first event to the outcome.

mod sampler;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::Peekable;
use std::path::Path;
use std::time::Duration;

use protos::mesos::master::{Call, call};

use crate::measure::{Outcome, Recorder};
use crate::scenario::{Arrivals, Prepared, Scenario, ScenarioError, prepare, quotas};
use crate::seeds::Seed;
use crate::users::{Inbox, Job};
use crate::world::{BEGIN, World};
use sampler::Sampler;

/// Strips of a Gantt chart that a run keeps.
const STRIPS: usize = 20_000;

/// Where a framework's work comes from.
struct Source {
    inbox: Inbox,
    kinds: Vec<Peekable<Arrivals>>,
}

impl Source {
    /// When the next job arrives, after the beginning.
    fn next_at(&mut self) -> Option<Duration> {
        self.kinds.iter_mut().filter_map(|kind| kind.peek().map(|arrival| arrival.at)).min()
    }
}

/// Runs a scenario with a seed. `progress` hears now and then what part of the virtual time has passed, and may stop the
/// run by answering false.
///
/// # Errors
/// A trace that cannot be used.
pub fn run(
    scenario: &Scenario,
    seed: u64,
    folder: &Path,
    progress: &mut dyn FnMut(f64) -> bool,
) -> Result<Outcome, ScenarioError> {
    let root = Seed::root(seed);
    let Prepared { setup, frameworks } = prepare(scenario, root, folder)?;
    let mut sampler = Sampler::new(scenario, &setup, &frameworks);
    let recorder = Recorder::new(frameworks.len(), STRIPS);
    let mut world = World::new(setup, root.child("world"), recorder);
    let mut sources: Vec<Source> = frameworks
        .into_iter()
        .map(|framework| Source {
            inbox: framework.inbox,
            kinds: framework.arrivals.into_iter().map(Iterator::peekable).collect(),
        })
        .collect();
    set_quotas(scenario, &mut world);
    let (end, sample) = (scenario.duration.0, scenario.sample.0);
    let mut next_sample = Duration::ZERO;
    // When each framework's next job arrives.
    let first = sources.iter_mut().enumerate().filter_map(|(who, source)| Some(Reverse((source.next_at()?, who))));
    let mut jobs: BinaryHeap<Reverse<(Duration, usize)>> = first.collect();
    let mut done = false;
    loop {
        let job_at = jobs.peek().map_or(Duration::MAX, |Reverse((at, _))| *at);
        let at = job_at.min(next_sample);
        if at > end {
            break;
        }
        world.run_until(BEGIN + at);
        if job_at == at
            && let Some(Reverse((at, who))) = jobs.pop()
        {
            submit(&mut world, &mut sources[who], who, at);
            jobs.extend(sources[who].next_at().map(|at| Reverse((at, who))));
            continue;
        }
        sampler.sample(at, world.observer());
        next_sample = at + sample;
        done = jobs.is_empty() && world.observer().all_done();
        if (scenario.until_done && done) || !progress(at.as_secs_f64() / end.as_secs_f64()) {
            break;
        }
    }
    let (digest, events) = (world.digest(), world.events());
    let seconds = world.now().since(BEGIN).as_secs_f64();
    let head = sampler::Head { scenario: scenario.name.clone(), seed, digest, events, seconds, done };
    Ok(sampler.outcome(head, &world.into_observer()))
}

/// All jobs of a framework that arrive now.
fn submit(world: &mut World<Recorder>, source: &mut Source, who: usize, at: Duration) {
    let now = world.now();
    for kind in &mut source.kinds {
        while let Some(arrival) = kind.next_if(|arrival| arrival.at <= at) {
            let tasks = arrival.spans.len() as u32;
            let first = world.observer().submit(who, &arrival.needs, tasks, arrival.retries, now);
            source.inbox.borrow_mut().push_back(Job {
                first,
                needs: arrival.needs,
                spans: arrival.spans,
                gang: arrival.gang,
                retries: arrival.retries,
            });
        }
    }
    world.nudge(who);
}

fn set_quotas(scenario: &Scenario, world: &mut World<Recorder>) {
    let configs = quotas(scenario);
    if configs.is_empty() {
        return;
    }
    // Once the master leads; nobody has subscribed by then.
    world.run_until(BEGIN + Duration::from_millis(5));
    let update = call::UpdateQuota { force: Some(true), quota_configs: configs };
    world.operate(Call { r#type: Some(call::Type::UpdateQuota as i32), update_quota: Some(update), ..Call::default() });
}

#[cfg(test)]
mod tests;
