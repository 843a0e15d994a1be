//! Machine learning that trains by the quality it gains: a framework after SLAQ (SoCC'17).
//!
//! - [`learn`]: algorithms that train over parts of their data, and the models that come out.
//! - [`job`], [`input`]: what a user wants trained, and from what data.
//! - [`predict`]: what a job will gain, from the losses that it reports.
//! - [`allocate`]: who gets how many cores.
//! - [`replay`]: policies over losses that are known already, in virtual time.
//! - [`scheduler`]: jobs in, worker tasks out.
//! - [`modelled`]: the scheduler with drivers and workers that are modelled, for laboratories.
//! - [`frame`]: what a job's driver and its workers tell each other.
//! - `service` (feature `service`): all of it live, with drivers, workers, files and an HTTP API.
//!
//! Without that feature nothing here does I/O, reads a clock or draws an unseeded number.
#![forbid(unsafe_code)]

pub mod allocate;
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
