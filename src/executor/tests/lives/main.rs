//! Tests whole lives of executors, as processes, against a fake agent.
#![allow(clippy::disallowed_methods)] // limits of real waiting need the real clock

mod checks;
mod command;
mod nursery;
mod pods;
mod support;
mod template;
