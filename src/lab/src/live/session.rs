//! A run on a real cluster, without the cluster: frameworks, arriving jobs, records and the outcome.

use std::cell::{Cell, Ref, RefCell};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use base::Time;
use resources::Quantities;
use sdk::v1::FrameworkInfo;

use super::Pace;
use super::translate::Translator;
use super::watch::{Control, Watched};
use crate::measure::{Live, Outcome, Recorder};
use crate::run::{Head, STRIPS, Timeline};
use crate::scenario::{Prepared, Scenario, ScenarioError, prepare};
use crate::seeds::Seed;
use crate::work::Mishaps;
use crate::world::{BEGIN, FrameworkSpec};

/// For how long a master keeps a framework whose scheduler was killed.
const FAILOVER: f64 = 10.0;

/// What is played, and where.
pub struct Setting<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The seed of arrivals, sizes and times.
    pub seed: u64,
    /// Where traces are.
    pub directory: &'a Path,
    /// All that the cluster's agents have.
    pub total: Quantities,
    /// At which pace.
    pub pace: Pace,
    /// The user of the tasks.
    pub user: String,
    /// How much of the scenario's time has passed.
    pub clock: Rc<dyn Fn() -> Duration>,
}

/// A framework for a driver to run.
#[derive(Debug)]
pub struct Player {
    /// When it subscribes, in the scenario's time.
    pub start: Duration,
    /// Its `FrameworkInfo`.
    pub info: FrameworkInfo,
    /// How it behaves.
    pub scheduler: Watched,
    /// Commands for it.
    pub control: Rc<Control>,
}

/// See the module's text.
pub struct Session {
    scenario: String,
    seed: u64,
    timeline: Timeline,
    books: Rc<RefCell<Recorder>>,
}

impl Session {
    /// The session and its frameworks.
    ///
    /// # Errors
    /// A trace that cannot be used.
    pub fn new(setting: Setting<'_>) -> Result<(Session, Vec<Player>), ScenarioError> {
        let root = Seed::root(setting.seed);
        let Prepared { setup, frameworks } = prepare(setting.scenario, root, setting.directory)?;
        let books = Rc::new(RefCell::new(Recorder::new(frameworks.len(), STRIPS, setting.total.clone())));
        let model = &setup.model;
        let mishaps = Mishaps { failures: model.failures, stragglers: model.stragglers, straggling: model.straggling };
        let clock = Rc::clone(&setting.clock);
        let clock: Rc<dyn Fn() -> Time> = Rc::new(monotonic(move || BEGIN + clock()));
        let player = |(who, mut spec): (usize, FrameworkSpec)| {
            let control = Rc::new(Control::default());
            let seed = root.child("tasks").child(&frameworks[who].name);
            let scheduler = Watched {
                who,
                inner: (spec.scheduler)(),
                books: Rc::clone(&books),
                clock: Rc::clone(&clock),
                translator: Translator { pace: setting.pace, mishaps, seed },
                control: Rc::clone(&control),
            };
            let info =
                FrameworkInfo { user: setting.user.clone(), failover_timeout: Some(FAILOVER), ..spec.info.clone() };
            Player { start: spec.start, info, scheduler, control }
        };
        let players = setup.frameworks.into_iter().enumerate().map(player).collect();
        let timeline = Timeline::new(setting.scenario, frameworks, setting.total);
        Ok((Session { scenario: setting.scenario.name.clone(), seed: setting.seed, timeline, books }, players))
    }

    /// When the next thing is due, in the scenario's time; none when that is over.
    pub fn next_at(&self) -> Option<Duration> {
        self.timeline.next_at()
    }

    /// Does what is due by now. The frameworks, by number, to be nudged because there is new work for them.
    pub fn step(&mut self, now: Duration) -> Vec<usize> {
        self.timeline.step(now, &mut self.books.borrow_mut()).submitted
    }

    /// All is done, and the scenario waits for nothing else.
    pub fn is_over(&self) -> bool {
        self.timeline.is_over()
    }

    /// The current records.
    pub fn books(&self) -> Ref<'_, Recorder> {
        self.books.borrow()
    }

    /// Sums up what there was until `now`.
    pub fn outcome(self, now: Duration, live: Live) -> Outcome {
        let books = self.books.borrow();
        let head = Head {
            scenario: self.scenario,
            seed: self.seed,
            digest: digest(&books),
            events: 0,
            seconds: now.as_secs_f64(),
            done: self.timeline.is_done(),
            live: Some(live),
        };
        self.timeline.outcome(head, &books)
    }
}

/// A clock whose time does not go back.
fn monotonic(clock: impl Fn() -> Time) -> impl Fn() -> Time {
    let last = Cell::new(BEGIN);
    move || {
        last.set(last.get().max(clock()));
        last.get()
    }
}

/// A hash over what became of all tasks: no two real runs have the same.
fn digest(books: &Recorder) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let tasks = (0..books.frameworks()).flat_map(|who| books.tasks(who));
    for time in tasks.flat_map(|task| [task.launched, task.running, task.ended]) {
        hash = (hash ^ time.to_bits()).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{hash:016x}")
}
