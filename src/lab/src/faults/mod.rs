//! Fault campaigns: random small clusters with many faults, and rules that hold nevertheless.
//!
//! A seed determines a [`Plan`]: a cluster, its work, and a list of faults with their times. [`run_plan`] runs it and
//! returns the first rule that was broken; [`fn@shrink`] finds a smaller plan that breaks the same rule.
//! [`fn@campaign`] runs many seeds on several threads, as the campaign of `masters` does. `docs/lab-guide.md` lists the
//! faults and rules.

mod campaign;
mod checker;
mod convergence;
mod fault;
mod finding;
mod invariants;
pub(crate) mod log;
mod operate;
mod operator_checks;
mod plan;
mod refusals;
pub(crate) mod rng;
mod run;
mod seeds;
pub(crate) mod shrink;
mod volume_slots;
mod volumes;
mod worker;

pub use campaign::{Summary, campaign, examine};
pub use checker::Violation;
pub use fault::{Fault, Kind};
pub use finding::Finding;
pub(crate) use finding::examine_plan;
pub use log::LEGEND;
pub use operate::Action;
pub use plan::{AgentPlan, FrameworkPlan, Plan};
pub use run::{RunResult, run_plan};
pub use seeds::Settings;
pub(crate) use seeds::{Tally, run_seeds};
pub use shrink::shrink;

pub use crate::world::Defect;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod uuids;
