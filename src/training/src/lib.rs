//! Trains the learned order of stages (`dag::learned`) as Decima was (SIGCOMM 2019): rollouts on generated jobs in
//! virtual time, and policy gradients with an input-dependent baseline.
//!
//! - [`episode`] draws jobs and the length of an episode.
//! - [`rollout`] runs an episode under the policy, or under a heuristic that the policy imitates.
//! - [`returns`] computes how much better a choice was than the other rollouts of the same jobs.
//! - [`learn`] turns that into gradients, and [`adam`] into new weights.
//! - [`trainer`] repeats all of it on several threads; a training can be saved and resumed.
//! - [`measure`] compares the network with the best heuristic on other jobs.
//! - [`curve`] draws the progress.
//!
//! It reads no clock and opens no file. The same seed and settings give the same weights with any number of threads.
#![forbid(unsafe_code)]

pub mod adam;
pub mod curve;
pub mod episode;
pub mod learn;
pub mod measure;
pub mod returns;
pub mod rollout;
pub mod settings;
pub mod trainer;

#[cfg(test)]
mod tests;
