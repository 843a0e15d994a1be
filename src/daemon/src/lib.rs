//! The live shells of master and agent: sockets, clocks and processes around the cores.
//!
//! It decides nothing that a core can decide.
#![forbid(unsafe_code)]

mod clock;
mod driver;
mod files;
pub mod flags;
mod host;
