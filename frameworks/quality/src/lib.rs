//! A framework that schedules machine learning by quality, after SLAQ (SoCC'17).
//!
//! - [`learn`]: data-parallel algorithms and their models.
//! - [`job`], [`input`]: training jobs and their data.
//! - [`evaluate`]: predictions against known labels.
//! - [`predict`]: forecasts of a job's progress, from the losses that it reports.
//! - [`allocate`]: policies that share the cores.
//! - [`replay`]: policies over recorded losses, in virtual time.
//! - [`scheduler`]: the scheduler, from jobs to worker tasks.
//! - [`modelled`]: the scheduler with modelled drivers and workers, for the laboratory.
//! - [`frame`]: the protocol of a job's driver and its workers.
//! - [`trainer`]: the protocol of a user's training program.
//! - `service` (feature `service`): all of it live, with drivers, workers, files and an HTTP API.
//!
//! Without that feature this crate does no I/O, reads no clock and draws no unseeded number.
#![forbid(unsafe_code)]

pub mod allocate;
pub mod evaluate;
pub mod frame;
pub mod input;
pub mod job;
pub mod learn;
pub mod modelled;
pub mod predict;
pub mod replay;
pub mod scheduler;
#[cfg(feature = "service")]
pub mod service;
pub mod trainer;
