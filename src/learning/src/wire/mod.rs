//! The frames between a learner and `tepui lab serve`: lengths, kinds and bodies, all numbers little-endian. It does
//! nothing with them.
//!
//! A frame is the length of what follows (`u32`), a kind (`u8`) and a body. A client sends a request and reads one
//! answer; the first request is a hello.
//!
//! | request | body | answer |
//! |---|---|---|
//! | 1 hello | `TEPUI-LAB` and the version (`u16`) | 1: the version |
//! | 2 open | JSON: `name`, `settings`, `count`, `threads`, `autoreset` | 2: handle (`u32`), JSON: the spaces |
//! | 3 reset | handle, for each environment a way (`u8`: 0 keep, 1 seed, 2 next) and a seed (`u64`) | 3: results |
//! | 4 step | handle, for each environment its action: `i32` or `f32` | 3: results |
//! | 5 baseline | handle, JSON: `policy`, `seeds` | 5: for each seed the return and the measurements (`f64`) |
//! | 6 close | handle | 6 |
//!
//! Results are rewards (`f64`), seeds (`u64`) and measurements (`f64`, all of the first environment first); then the
//! observations, field by field, each with all environments; then ends and cuts (`u8`). Fields with larger numbers come
//! first, so that all arrays are aligned if the body is. The answer 255 is an error: text that
//! names the item and the rule. After an error in a request the connection goes on.

mod frame;
mod request;

#[cfg(test)]
mod tests;

pub use frame::{MOST_FRAME, read_frame, write_frame};
pub use request::{Baseline, Open, Request};

/// Version of the protocol.
pub const VERSION: u16 = 1;

/// First bytes of the body of a hello.
pub const GREETING: &[u8] = b"TEPUI-LAB";

/// The kinds of answer frames.
pub mod answer {
    /// Answer to a hello.
    pub const HELLO: u8 = 1;
    /// Answer to an open.
    pub const OPENED: u8 = 2;
    /// Answer to a reset or a step.
    pub const RESULTS: u8 = 3;
    /// Answer to a baseline.
    pub const ROLLOUTS: u8 = 5;
    /// Answer to a close.
    pub const CLOSED: u8 = 6;
    /// Answer to a request that failed.
    pub const ERROR: u8 = 255;
}
