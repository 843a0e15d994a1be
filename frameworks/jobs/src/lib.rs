//! The common parts of the frameworks that run jobs (`binpack`, `dag`).
//!
//! - [`mod@file`] parses job files: TOML or JSON, with the line and rule of every fault.
//! - [`Need`], [`constraint`] and [`place`] have the needs of tasks, their placement constraints and their placement.
//! - [`offers`] holds the current offers, [`offer_state`] suppresses and revives them, [`known_agents`] records what
//!   agents have offered so far, [`unreachable_tasks`] the tasks on unreachable agents.
//! - [`launch`] builds the messages of a launch, [`ends`] classifies the end of a task.
//! - [`request_handler`] answers requests of other threads.
//! - `service` (feature `service`) runs a framework on a cluster, `follow` distributes events, `http` has the common
//!   parts of the HTTP APIs.
//! - `testing` (feature `testing`) is a cluster without I/O for the tests of schedulers.
//!
//! Each framework defines its jobs and decides about them.
#![forbid(unsafe_code)]

pub mod constraint;
mod containerizer;
pub mod ends;
pub mod file;
#[cfg(feature = "service")]
pub mod follow;
#[cfg(feature = "service")]
pub mod http;
pub mod known_agents;
pub mod launch;
pub mod need;
pub mod offer_state;
pub mod offers;
pub mod place;
pub mod request_handler;
mod run;
#[cfg(feature = "service")]
pub mod service;
pub mod stamp;
#[cfg(feature = "testing")]
pub mod testing;
pub mod unreachable_tasks;

pub use containerizer::Containerizer;
pub use need::{NAMES, Need};
pub use run::{Place, Restart, Run, Uri};
