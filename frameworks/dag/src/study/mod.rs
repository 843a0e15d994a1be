//! Studies: the policies of this crate in virtual time, compared with the numbers of the papers that they are from.
//!
//! - [`libra`]: sizes of tasks that are tuned at run time, against fixed ones.
//! - [`stage`]: such a stage, one task after the other.
//! - [`orders`]: the heuristics that Decima was compared with, on TPC-H queries.
//! - [`learned`]: the learned order against the best of them.
//! - [`packing`]: orders of jobs that need several resources.
//! - [`dias`]: dropped tasks and sprints, against evictions.
//! - [`sprinting`]: a model of sprints, on policies that it was not trained on.
//!
//! Equal seeds give equal results. It opens no file: callers pass the bytes of traces.

pub mod alibaba;
pub mod cluster;
pub mod dias;
mod error;
pub mod generated;
pub mod job;
pub mod learned;
pub mod libra;
mod npy;
pub mod orders;
pub mod packing;
mod pickle;
pub mod random;
pub mod report;
pub mod sprinting;
pub mod stage;
pub mod stats;
pub mod tpch;

pub use error::StudyError;
