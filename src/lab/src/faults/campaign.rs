//! Runs many seeds of a fault campaign, and examines single ones.

use super::finding::{Finding, examine_plan};
use super::plan::Plan;
use super::run::run_plan;
use super::seeds::{Settings, Tally, run_seeds};
use super::shrink::shrink_by;
use crate::world::Defect;

/// Totals of a fault campaign.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Summary {
    /// Number of seeds that were run.
    pub seeds: u64,
    /// Number of those seeds in which a disk refuses writes.
    pub refusing: u64,
    /// Number of events in all runs.
    pub events: u64,
    /// Number of tasks that were started.
    pub tasks: u64,
    /// Number of status updates that schedulers received.
    pub updates: u64,
    /// Number of faults that were injected.
    pub faults: u64,
    /// Virtual time of all runs, in seconds.
    pub seconds: u64,
    /// Seeds that broke a rule, each with the rule; at most [`Settings::most`].
    pub broken: Vec<(u64, String)>,
}

impl Tally for Summary {
    fn add(&mut self, other: Summary) {
        self.seeds += other.seeds;
        self.refusing += other.refusing;
        self.events += other.events;
        self.tasks += other.tasks;
        self.updates += other.updates;
        self.faults += other.faults;
        self.seconds += other.seconds;
    }
}

/// Runs a fault campaign. `progress` is called after each seed, on any thread; returning `false` ends the campaign.
pub fn campaign(settings: &Settings<Defect>, progress: &(dyn Fn() -> bool + Sync)) -> Summary {
    let (summary, broken) = run_seeds(settings, progress, &|seed| {
        let plan = Plan::draw(seed).with_defect(settings.defect);
        let played = run_plan(&plan, false);
        let seen = Summary {
            seeds: 1,
            refusing: u64::from(plan.refuses_writes()),
            events: played.events,
            tasks: played.tasks,
            updates: played.updates,
            faults: plan.faults.len() as u64,
            seconds: played.time.as_secs(),
            broken: Vec::new(),
        };
        (seen, played.broken)
    });
    Summary { broken, ..summary }
}

/// Examines a seed; returns `None` if it breaks no rule.
pub fn examine(seed: u64, defect: Option<Defect>) -> Option<Finding<Plan>> {
    let plan = Plan::draw(seed).with_defect(defect);
    let played = |plan: &Plan, log| {
        let played = run_plan(plan, log);
        (played.broken, played.log)
    };
    examine_plan(&plan, plan.faults.len(), &played, &shrink_by)
}
