//! Settings of the scheduler: where tasks are placed, which stage is next, what a job may drop, and how tasks sprint.

use std::time::Duration;

use jobs::place::Policy;

use crate::job::Class;
use crate::learned::Order;
use crate::order::Heuristic;

/// Settings of a scheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Policy that selects one of the offers that fit a task.
    pub placement: Policy,
    /// Order of stages: which stage is next, and how many tasks a job may run at once.
    pub order: Order,
    /// Directory for outputs of jobs that name none; without one, outputs stay in the sandboxes.
    pub shared: Option<String>,
    /// Path on the agents of the program that runs tasks with inputs and outputs: this one.
    pub runner: String,
    /// Address at which runners reach the framework's API, as `http://host:port`.
    pub api: String,
    /// Filter duration for offers that waiting tasks cannot use.
    pub refuse: Duration,
    /// Filter duration for offers that arrive while no task waits.
    pub refuse_idle: Duration,
    /// Shortest interval between revives.
    pub revive_every: Duration,
    /// Fraction of tasks that a job of low priority drops where its stages allow it; they may allow less.
    pub drop: f64,
    /// Whether tasks are dropped only while other jobs wait.
    pub drop_under_load: bool,
    /// Whether the fraction is learned from earlier jobs: the smallest that meets the targets, up to `drop`.
    pub drop_auto: bool,
    /// Target of the mean response time of each class.
    pub targets: Targets,
    /// Settings of sprints of jobs of high priority.
    pub sprint: Sprinting,
}

/// Settings of sprints: tasks of jobs of high priority are launched with a limit of cores above their request (DiAS).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sprinting {
    /// Additional cores as a fraction of the request, such as 0.5; 0 disables sprints.
    pub boost: f64,
    /// Core-seconds above requests that can be used at once.
    pub budget: f64,
    /// Core-seconds that are added to the budget in a second.
    pub refill: f64,
    /// Age of a job from which its tasks sprint.
    pub after: After,
}

/// The age of a job of high priority from which its tasks sprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// A fixed age.
    Age(Duration),
    /// The age is learned from earlier jobs: the latest that meets the target, or the one with the shortest responses.
    Auto,
}

/// Targets of the mean response time of jobs, from submission to end, for each class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Targets([Option<Duration>; 3]);

impl Targets {
    /// Returns the target of a class, if it has one.
    pub fn of(&self, class: Class) -> Option<Duration> {
        self.0[class as usize]
    }

    /// Sets the target of a class.
    pub fn set(&mut self, class: Class, target: Duration) {
        self.0[class as usize] = Some(target);
    }

    /// Returns whether no class has a target.
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
