//! What the frameworks that run jobs share (`binpack`, `dag`).
//!
//! - [`file`] reads job files: TOML or JSON, every fault with its line and its rule.
//! - [`Need`], [`constraint`] and [`place`] say what a task needs, where it may run and where it goes.
//! - [`offers`] holds the offers at hand, [`attention`] says whether any are wanted, [`seen`] what agents have offered
//!   so far, [`silent`] the tasks whose agents do not answer.
//! - [`launch`] makes the messages of a launch, [`ends`] says what the end of a task means.
//! - [`served`] answers requests of other threads.
//! - `service` (feature `service`) runs a framework on a cluster, `follow` distributes events, `http` is what their
//!   HTTP APIs share.
//! - `testing` (feature `testing`) is a cluster without I/O for the tests of schedulers.
//!
//! What a job is, and what happens to it, is decided by each framework.
#![forbid(unsafe_code)]

pub mod attention;
pub mod constraint;
mod containerizer;
pub mod ends;
pub mod file;
#[cfg(feature = "service")]
pub mod follow;
#[cfg(feature = "service")]
pub mod http;
pub mod launch;
pub mod need;
pub mod offers;
pub mod place;
mod run;
pub mod seen;
pub mod served;
#[cfg(feature = "service")]
pub mod service;
pub mod silent;
pub mod stamp;
#[cfg(feature = "testing")]
pub mod testing;

pub use containerizer::Containerizer;
pub use need::{NAMES, Need};
pub use run::{Place, Restart, Run, Uri};
