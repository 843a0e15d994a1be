//! The live shells of master and agent: sockets, clocks and processes around the cores.
//!
//! It decides nothing that a core can decide.
#![forbid(unsafe_code)]

mod address;
mod answers;
mod clock;
mod codec;
mod common;
mod driver;
mod files;
pub mod flags;
mod host;
mod lists;
pub mod master;
mod metrics;
mod random;
mod streams;
mod sync;
