//! Trains the learned order of stages (`dag::learned`), as Decima (SIGCOMM 2019) was: rollouts on made jobs in virtual
//! time, policy gradients with an input-dependent baseline.
//!
//! - [`lesson`] draws jobs, and how long an episode lasts.
//! - [`rollout`] runs an episode under the policy, or under a heuristic that it imitates.
//! - [`returns`] says how much better a choice was than the other rollouts of the same jobs.
//! - [`learn`] turns that into gradients, and [`adam`] into new weights.
//! - [`trainer`] does all of it again and again, on several threads, and can be kept and resumed.
//! - [`measure`] compares it with the best heuristic on other jobs.
//! - [`curve`] draws how it went.
//!
//! It reads no clock and opens no file. The same seed and settings give the same weights with any number of threads.
#![forbid(unsafe_code)]

pub mod adam;
pub mod curve;
pub mod learn;
pub mod lesson;
pub mod measure;
pub mod returns;
pub mod rollout;
pub mod settings;
pub mod trainer;

#[cfg(test)]
mod tests;
