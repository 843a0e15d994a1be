//! A run on a real cluster, without the cluster: frameworks, arriving jobs, records and the outcome.
//!
//! The caller connects the schedulers to the cluster and provides the clock.

use std::cell::{Cell, Ref, RefCell};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use base::Time;
use resources::Quantities;
use sdk::v1::FrameworkInfo;

use super::Pace;
use super::translate::Translator;
use super::watch::{Control, RecordedScheduler};
use crate::measure::{Live, Outcome, Recorder};
use crate::run::{OutcomeHeader, STRIPS, Timeline};
use crate::scenario::{Prepared, Scenario, ScenarioError, prepare};
use crate::seeds::Seed;
use crate::work::FailureRates;
use crate::world::{BEGIN, FrameworkSpec};

/// Failover timeout in seconds: the time for which a master keeps a framework whose scheduler was killed.
const FAILOVER: f64 = 10.0;

/// The parameters of a run on a real cluster.
pub struct SessionOptions<'a> {
    /// The scenario that is run.
    pub scenario: &'a Scenario,
    /// Seed of arrivals, sizes and durations.
    pub seed: u64,
    /// Directory of the traces.
    pub directory: &'a Path,
    /// Total resources of the cluster's agents.
    pub total: Quantities,
    /// Speed of the scenario's time.
    pub pace: Pace,
    /// Operating system user of the tasks.
    pub user: String,
    /// Returns how much of the scenario's time has passed.
    pub clock: Rc<dyn Fn() -> Duration>,
}

/// A framework that a driver connects to the cluster.
#[derive(Debug)]
pub struct LiveFramework {
    /// Time at which the framework subscribes, in the scenario's time.
    pub start: Duration,
    /// The framework's `FrameworkInfo`.
    pub info: FrameworkInfo,
    /// The framework's scheduler.
    pub scheduler: RecordedScheduler,
    /// State that the scheduler shares with its driver, and requests to it.
    pub control: Rc<Control>,
}

/// A run on a real cluster, except for its connections: arriving jobs, records and the outcome.
pub struct Session {
    scenario: String,
    seed: u64,
    timeline: Timeline,
    recorder: Rc<RefCell<Recorder>>,
}

impl Session {
    /// Creates a session and the frameworks that the caller must connect.
    ///
    /// # Errors
    /// Returns an error if a trace is invalid.
    pub fn new(setting: SessionOptions<'_>) -> Result<(Session, Vec<LiveFramework>), ScenarioError> {
        let root = Seed::root(setting.seed);
        let Prepared { setup, frameworks } = prepare(setting.scenario, root, setting.directory)?;
        let recorder = Rc::new(RefCell::new(Recorder::new(frameworks.len(), STRIPS, setting.total.clone())));
        let model = &setup.model;
        let failure_rates =
            FailureRates { failures: model.failures, stragglers: model.stragglers, straggling: model.straggling };
        let clock = Rc::clone(&setting.clock);
        let clock: Rc<dyn Fn() -> Time> = Rc::new(monotonic(move || BEGIN + clock()));
        let live_framework = |(framework, mut spec): (usize, FrameworkSpec)| {
            let control = Rc::new(Control::default());
            let seed = root.child("tasks").child(&frameworks[framework].name);
            let scheduler = RecordedScheduler {
                framework,
                inner: (spec.scheduler)(),
                recorder: Rc::clone(&recorder),
                clock: Rc::clone(&clock),
                translator: Translator { pace: setting.pace, failure_rates, seed },
                control: Rc::clone(&control),
            };
            let info =
                FrameworkInfo { user: setting.user.clone(), failover_timeout: Some(FAILOVER), ..spec.info.clone() };
            LiveFramework { start: spec.start, info, scheduler, control }
        };
        let live_frameworks = setup.frameworks.into_iter().enumerate().map(live_framework).collect();
        let timeline = Timeline::new(setting.scenario, frameworks, setting.total);
        Ok((
            Session { scenario: setting.scenario.name.clone(), seed: setting.seed, timeline, recorder },
            live_frameworks,
        ))
    }

    /// Returns when the next event is due, in the scenario's time; `None` at the end of the scenario.
    pub fn next_at(&self) -> Option<Duration> {
        self.timeline.next_at()
    }

    /// Handles the events that are due by `now`. Returns the numbers of the frameworks that have new work and must be
    /// woken.
    pub fn step(&mut self, now: Duration) -> Vec<usize> {
        self.timeline.step(now, &mut self.recorder.borrow_mut()).submitted
    }

    /// Returns whether all jobs are done and the scenario has no further events.
    pub fn is_over(&self) -> bool {
        self.timeline.is_over()
    }

    /// Returns the records of the run so far.
    pub fn recorder(&self) -> Ref<'_, Recorder> {
        self.recorder.borrow()
    }

    /// Ends the session and returns the results until `now`.
    pub fn outcome(self, now: Duration, live: Live) -> Outcome {
        let recorder = self.recorder.borrow();
        let head = OutcomeHeader {
            scenario: self.scenario,
            seed: self.seed,
            digest: digest(&recorder),
            events: 0,
            seconds: now.as_secs_f64(),
            done: self.timeline.is_done(),
            live: Some(live),
        };
        self.timeline.outcome(head, &recorder)
    }
}

/// Returns a clock whose time does not go back.
fn monotonic(clock: impl Fn() -> Time) -> impl Fn() -> Time {
    let last = Cell::new(BEGIN);
    move || {
        last.set(last.get().max(clock()));
        last.get()
    }
}

/// Returns a hash of the times of all tasks. No two real runs have the same.
fn digest(recorder: &Recorder) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let tasks = (0..recorder.frameworks()).flat_map(|framework| recorder.tasks(framework));
    for time in tasks.flat_map(|task| [task.launched, task.running, task.ended]) {
        hash = (hash ^ time.to_bits()).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{hash:016x}")
}
