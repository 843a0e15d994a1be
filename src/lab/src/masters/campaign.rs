//! Runs many seeds of the campaign of masters, and examines single ones.

use std::time::Duration;

use super::plan::Plan;
use super::run::run_plan;
use super::world::Defect;
use crate::faults::{Finding, Settings, Tally, examine_plan, run_seeds};

/// Totals of a campaign of masters.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Summary {
    /// Number of seeds that were run.
    pub seeds: u64,
    /// Number of events in all runs.
    pub events: u64,
    /// Number of reads and writes of clients.
    pub operations: u64,
    /// Number of times that a master has begun to lead.
    pub leaders: u64,
    /// Number of faults that were injected.
    pub faults: u64,
    /// Virtual time of all runs, in seconds.
    pub seconds: u64,
    /// The longest time from the end of all faults to a leader, in milliseconds.
    pub longest_election: u64,
    /// The longest change of the members without faults, in milliseconds.
    pub longest_change: u64,
    /// Seeds that broke a rule, each with the rule; at most [`Settings::most`].
    pub broken: Vec<(u64, String)>,
}

impl Tally for Summary {
    fn add(&mut self, other: Summary) {
        self.seeds += other.seeds;
        self.events += other.events;
        self.operations += other.operations;
        self.leaders += other.leaders;
        self.faults += other.faults;
        self.seconds += other.seconds;
        self.longest_election = self.longest_election.max(other.longest_election);
        self.longest_change = self.longest_change.max(other.longest_change);
    }
}

/// Runs a campaign of masters. `progress` is called after each seed, on any thread; returning `false` ends the
/// campaign.
pub fn campaign(settings: &Settings<Defect>, progress: &(dyn Fn() -> bool + Sync)) -> Summary {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let (summary, broken) = run_seeds(settings, progress, &|seed| {
        let plan = Plan::draw(seed).with_defect(settings.defect);
        let played = run_plan(&plan, false);
        let seen = Summary {
            seeds: 1,
            events: played.events,
            operations: played.operations,
            leaders: played.leaders,
            faults: plan.faults.len() as u64,
            seconds: played.time.as_secs(),
            longest_election: millis(played.election),
            longest_change: millis(played.change),
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
    examine_plan(&plan, plan.faults.len(), &played, &Plan::shrink)
}
