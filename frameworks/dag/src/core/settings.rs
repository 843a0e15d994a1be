//! How the scheduler behaves: where tasks go, which stage is next, what a job may leave out, how tasks sprint.

use std::time::Duration;

use jobs::place::Policy;

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
    /// For how long what waiting tasks have no use for is refused.
    pub refuse: Duration,
    /// For how long resources are refused that come while nothing waits.
    pub refuse_idle: Duration,
    /// Shortest interval between revives.
    pub revive_every: Duration,
    /// The share of tasks that a job of low priority drops where its stages allow it; they may allow less.
    pub drop: f64,
    /// Whether tasks are dropped only while other jobs wait.
    pub drop_under_load: bool,
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
}

impl Default for Sprinting {
    fn default() -> Sprinting {
        Sprinting { boost: 0.0, budget: 600.0, refill: 1.0 }
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
            sprint: Sprinting::default(),
        }
    }
}
