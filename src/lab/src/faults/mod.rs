//! Fault campaigns: random small clusters in which much goes wrong, and rules that must hold all the same.
//!
//! A seed stands for a [`Plan`]: a cluster, its work, and a list of faults, each at its time. [`play`] plays it and says
//! which rule was broken first, if any; [`shrink`] makes a plan smaller that breaks one. [`campaign`] does so for many
//! seeds on several threads. The docs (`docs/lab-guide.md`) list what goes wrong and what is checked.

mod campaign;
mod checker;
mod convergence;
mod fault;
mod invariants;
mod log;
mod operate;
mod operator_checks;
mod plan;
mod refusals;
mod rng;
mod run;
mod shrink;
mod volume_slots;
mod volumes;
mod worker;

pub use campaign::{Finding, Summary, campaign, examine};
pub use checker::Broken;
pub use fault::{Fault, Kind};
pub use log::LEGEND;
pub use operate::Action;
pub use plan::{AgentPlan, FrameworkPlan, Plan};
pub use run::{Played, play};
pub use shrink::shrink;

#[cfg(test)]
mod tests;
