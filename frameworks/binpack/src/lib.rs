//! The bin-packing framework: batch tasks, arrays, services and gangs, placed by a policy of choice.
//!
//! - [`job`] is the model of a job, and parses job files.
//! - [`place`] places tasks on offers; each policy is a pure function with its source named.
//! - [`Knobs`] are the second-level settings that the fairness paper varies: how long offers are held and refused, how
//!   fast tasks are released, and presets that behave as other frameworks do.
//! - [`core`] is the scheduler: a pure `sdk::Scheduler`, for a cluster as well as for a laboratory.
//!
//! - `service` (feature `service`) runs the scheduler on a cluster, and serves its HTTP API; `marathon` is the part of
//!   Marathon's REST API that its clients need for apps.
//!
//! Without that feature it only computes: it opens no socket, reads no clock and draws no random number.
#![forbid(unsafe_code)]

pub mod core;
pub mod job;
#[cfg(feature = "service")]
pub mod marathon;

mod knobs;
#[cfg(feature = "service")]
pub mod service;

pub use advice::Risk;
pub use jobs::{NAMES, Need, constraint, place};
pub use knobs::{Behaviour, Knobs, Pace};

pub(crate) use jobs::need;
