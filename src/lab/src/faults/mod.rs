//! Fault campaigns: random small clusters in which much goes wrong, and rules that must hold all the same.
//!
//! A seed stands for a [`Plan`]: a cluster, its work, and a list of faults, each at its time. [`play`] plays it and says
//! which rule was broken first, if any; [`shrink`] makes a plan smaller that breaks one. [`campaign`] does so for many
//! seeds on several threads. The docs (`docs/lab-guide.md`) list what goes wrong and what is checked.

mod books;
mod campaign;
mod dice;
mod fault;
mod judge;
mod log;
mod operate;
mod plan;
mod play;
mod promises;
mod refusals;
mod rest;
mod shrink;
mod slots;
mod volumes;
mod worker;

pub use campaign::{Finding, Summary, campaign, examine};
pub use fault::{Fault, Kind};
pub use judge::Broken;
pub use log::LEGEND;
pub use operate::Action;
pub use plan::{AgentPlan, FrameworkPlan, Plan};
pub use play::{Played, play};
pub use shrink::shrink;

#[cfg(test)]
mod tests;
