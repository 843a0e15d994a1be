//! A framework that runs jobs as graphs of stages: a stage is many tasks of one program.
//!
//! - [`job`] is the model of a job, and reads job files.
//! - [`split`] divides the input of a stage into parts.
//! - [`core`] is the scheduler: a pure `sdk::Scheduler`, for a cluster as well as for a laboratory.
//! - [`task`] describes the input and output of a task, and contains (feature `service`) the runner, which fetches
//!   inputs and publishes outputs.
//! - [`sizing`] chooses how much of a stage's input each task gets (Libra).
//! - [`order`] chooses the stage that runs next, and how many tasks a job may run at once (the heuristics of Decima).
//! - [`learned`] is an order that was trained instead of written (Decima), with a guard around it.
//! - [`priority`] drops tasks of jobs of low priority, and lets those of high priority sprint (DiAS).
//! - [`study`] runs the orders in virtual time, for measurements.
//! - `service` (feature `service`) runs the scheduler on a cluster, and serves its HTTP API.
//!
//! Without that feature it opens no socket, reads no clock and draws no random number that is not seeded.
#![forbid(unsafe_code)]

pub mod core;
pub mod job;
pub mod learned;
pub mod order;
pub mod priority;
#[cfg(feature = "service")]
pub mod service;
pub mod sizing;
pub mod split;
pub mod study;
pub mod task;
