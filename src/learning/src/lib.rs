//! Environments for learners: schedulers in virtual time, one decision at a time, in the form of Gymnasium.
//!
//! - [`Environment`] is an episode of decisions with observations and rewards; [`space`] has their form.
//! - [`dag`], [`offers`], [`sizing`], [`bitrate`] and [`balance`] are the environments, over the models of `dag`, `lab`
//!   and `video`. [`kinds`] makes them by name and settings.
//! - [`Batch`] steps many at once, on threads, and restarts ended episodes.
//! - [`wire`] has the frames of `tepui lab serve`, and [`serve`] answers them.
//!
//! The same seed and the same actions lead to the same episode, whatever the number of threads is. It opens no files,
//! with one exception: a scenario reads the traces beside it, as in `lab`. It learns nothing.
#![forbid(unsafe_code)]

pub mod balance;
mod batch;
pub mod bitrate;
pub mod dag;
mod environment;
mod error;
pub mod files;
pub mod kinds;
pub mod offers;
mod random;
pub mod serve;
pub mod sizing;
pub mod space;
pub mod wire;

pub use batch::{Batch, BatchResults, EpisodeStart, MOST_ENVIRONMENTS};
pub use environment::{Action, Environment, Rollout, Step};
pub use error::LearningError;
