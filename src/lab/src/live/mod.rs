//! A scenario on a real cluster: the same frameworks, arrivals and books as in a world, at the pace of a real clock.
//!
//! What starts a cluster, connects the schedulers to it and waits is elsewhere: here is no clock and no socket. The clock that
//! is given tells the scenario's time, which runs `speed` times as fast as the real one.

mod check;
mod pace;
mod session;
mod translate;
mod watch;

pub use check::{MOST_AGENTS, MOST_FRAMEWORKS, MOST_TASKS, check};
pub use pace::{Pace, sped};
pub use session::{Player, Session, Setting};
pub use watch::{Control, Watched};
