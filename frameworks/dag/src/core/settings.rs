//! How the scheduler behaves: where tasks go, which stage is next, what a job may leave out, how tasks sprint.

use std::time::Duration;

use jobs::place::Policy;

use crate::job::Class;
use crate::learned::Order;
use crate::order::Heuristic;

/// Settings of a scheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where a task goes among the offers that have room for it.
    pub placement: Policy,
    /// Which stage is next, and how many tasks a job may run at once.
    pub order: Order,
    /// The directory for outputs of jobs that name none; without one they stay in the sandboxes.
    pub shared: Option<String>,
    /// The program on the agents that runs tasks with inputs and outputs: this one.
    pub runner: String,
    /// Where runners reach the framework's API, as `http://host:port`.
    pub api: String,
    /// Time for which offers that waiting tasks cannot use are refused.
    pub refuse: Duration,
    /// For how long resources are refused that come while nothing waits.
    pub refuse_idle: Duration,
    /// Shortest interval between revives.
    pub revive_every: Duration,
    /// The share of tasks that a job of low priority drops where its stages allow it; they may allow less.
    pub drop: f64,
    /// Whether tasks are dropped only while other jobs wait.
    pub drop_under_load: bool,
    /// Whether the share is found from earlier jobs: the smallest with which the targets are met, up to `drop`.
    pub drop_auto: bool,
    /// What the mean response of a class should be.
    pub targets: Targets,
    /// How jobs of high priority sprint.
    pub sprint: Sprinting,
}

/// How tasks of jobs of high priority are launched with a limit of cores above their request (DiAS).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sprinting {
    /// By what part more, such as 0.5; 0 turns it off.
    pub boost: f64,
    /// Core-seconds above requests that can be used at once.
    pub budget: f64,
    /// Core-seconds that come back in a second.
    pub refill: f64,
    /// How old a job is when its tasks begin to sprint.
    pub after: After,
}

/// How old a job of high priority is when its tasks begin to sprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// So old.
    Age(Duration),
    /// It is found from earlier jobs: the latest with which the target is met, or what makes responses shortest.
    Auto,
}

/// What the mean response of jobs should be, from submission to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Targets([Option<Duration>; 3]);

impl Targets {
    /// The target of a class, if it has one.
    pub fn of(&self, class: Class) -> Option<Duration> {
        self.0[class as usize]
    }

    /// Sets the target of a class.
    pub fn set(&mut self, class: Class, target: Duration) {
        self.0[class as usize] = Some(target);
    }

    /// Whether no class has one.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }
}

impl Default for Sprinting {
    fn default() -> Sprinting {
        Sprinting { boost: 0.0, budget: 600.0, refill: 1.0, after: After::Age(Duration::ZERO) }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            placement: Policy::BestFit,
            order: Heuristic::ShortestRemaining.into(),
            shared: None,
            runner: "tepui".to_owned(),
            api: String::new(),
            refuse: Duration::from_secs(1),
            refuse_idle: Duration::from_secs(5),
            revive_every: Duration::from_millis(100),
            drop: 0.0,
            drop_under_load: true,
            drop_auto: false,
            targets: Targets::default(),
            sprint: Sprinting::default(),
        }
    }
}
