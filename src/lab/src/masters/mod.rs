//! Fault campaigns of the masters' own group (`peers`): election, replicated log, leases and changes of the members.
//!
//! A seed determines a [`Plan`]: a group, its clients, and a list of faults with their times. [`run_plan`] runs it and
//! returns the first rule that was broken; [`examine`] finds a smaller plan that breaks the same rule, and
//! [`fn@campaign`] runs many seeds. `docs/lab-guide.md` lists the faults and the rules. What masters do for agents and
//! frameworks is not covered here, but by `faults`.

mod campaign;
mod fault;
pub mod history;
mod plan;
mod run;
mod world;

pub use campaign::{Summary, campaign, examine};
pub use fault::{Fault, Kind, Target};
pub use plan::Plan;
pub use run::{RunResult, run_plan};
pub use world::{Defect, LEASE, OperatorAction, Setup, World};

/// Explanation of the lines of a log.
pub const LEGEND: &str = "\
seconds since the start, then the process:
  FAULT  start of a fault                    master N  its process        operator  changes of the members
  client N > request of a client             client <  the answer
  writes have numbers (#N), which are also the values that they write";

#[cfg(test)]
mod tests;
