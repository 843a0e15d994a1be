//! Runs a scenario on a real cluster: the same frameworks, arrivals and records as in a world, at the pace of a real
//! clock.
//!
//! The caller starts a cluster, connects the schedulers and waits; this module has no clock and no socket. The caller's
//! clock gives the scenario's time, which passes `speed` times as fast as real time.

mod check;
mod pace;
mod session;
mod translate;
mod watch;

pub use check::{MOST_AGENTS, MOST_FRAMEWORKS, MOST_TASKS, check};
pub use pace::{Pace, scaled};
pub use session::{LiveFramework, Session, SessionOptions};
pub use watch::{Control, RecordedScheduler};
