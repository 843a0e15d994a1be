//! A run that can stop at any time to be examined, and whose master can be given other policies; for learners.
//! Otherwise it equals a run by [`run`](super::run).

use std::path::Path;
use std::time::Duration;

use allocator::policies::Policies;

use super::faults::FaultSchedule;
use super::{OutcomeHeader, STRIPS, Timeline, set_quotas, total_of};
use crate::measure::{Outcome, Recorder, Series, TaskRecord};
use crate::scenario::{Prepared, Scenario, ScenarioError, prepare};
use crate::seeds::Seed;
use crate::world::{BEGIN, World};

/// A run that is advanced step by step.
pub struct Stepped {
    world: World<Recorder>,
    timeline: Timeline,
    fault_schedule: FaultSchedule,
    name: String,
    seed: u64,
    end: Duration,
    over: bool,
}

impl Stepped {
    /// Creates a run with this seed, at its beginning. `directory` has the traces and other files that the scenario
    /// names.
    ///
    /// # Errors
    /// Returns an error if a trace is invalid.
    pub fn new(scenario: &Scenario, seed: u64, directory: &Path) -> Result<Stepped, ScenarioError> {
        let root = Seed::root(seed);
        let Prepared { setup, frameworks } = prepare(scenario, root, directory)?;
        let total = total_of(&setup);
        let recorder = Recorder::new(frameworks.len(), STRIPS, total.clone());
        let timeline = Timeline::new(scenario, frameworks, total);
        let mut world = World::new(setup, root.child("world"), recorder);
        set_quotas(scenario, &mut world);
        let fault_schedule = FaultSchedule::new(scenario, root.child("faults"));
        let (name, end) = (scenario.name.clone(), scenario.duration.0);
        Ok(Stepped { world, timeline, fault_schedule, name, seed, end, over: false })
    }

    /// Handles the external events up to this time, and returns at the last of them. `progress` is as for
    /// [`run`](super::run).
    pub(super) fn advance(&mut self, until: Duration, progress: &mut dyn FnMut(f64) -> bool) {
        while let Some(at) = self.timeline.next_at().filter(|at| !self.over && *at <= until) {
            self.inject(at);
            self.world.run_until(BEGIN + at);
            let step = self.timeline.step(at, self.world.observer());
            step.submitted.into_iter().for_each(|framework| self.world.wake_scheduler(framework));
            let stopped = step.sampled && !progress(at.as_secs_f64() / self.end.as_secs_f64());
            self.over = self.timeline.is_over() || stopped;
        }
        self.over |= self.timeline.next_at().is_none();
    }

    /// Injects the faults up to this time.
    fn inject(&mut self, until: Duration) {
        while let Some(fault) = self.fault_schedule.next_at().filter(|fault| *fault <= until) {
            self.world.run_until(BEGIN + fault);
            self.fault_schedule.inject(fault, &mut self.world);
        }
    }

    /// Runs until this time, but not beyond the end of the run.
    pub fn run_until(&mut self, until: Duration) {
        let until = until.min(self.end);
        self.advance(until, &mut |_| true);
        if !self.over {
            self.inject(until);
            self.world.run_until(BEGIN + until);
        }
    }

    /// Returns whether the run has ended: its time has passed, or all jobs are done and the scenario ends with them.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Sets the master's policies, as an operator does. Invalid ones change nothing.
    pub fn set_policies(&mut self, policies: Policies) {
        self.world.set_policies(policies);
    }

    /// Returns the samples so far.
    pub fn series(&self) -> &Series {
        self.timeline.series()
    }

    /// Returns the records of a framework's tasks.
    pub fn tasks(&mut self, framework: usize) -> &[TaskRecord] {
        self.world.observer().tasks(framework)
    }

    /// Ends the run and returns its outcome.
    pub fn finish(self) -> Outcome {
        let (digest, events) = (self.world.digest(), self.world.events());
        let head = OutcomeHeader {
            scenario: self.name,
            seed: self.seed,
            digest: format!("{digest:016x}"),
            events,
            seconds: self.world.now().since(BEGIN).as_secs_f64(),
            done: self.timeline.is_done(),
            live: None,
        };
        self.timeline.outcome(head, &self.world.into_observer())
    }
}
