//! Whole lives of executors, as processes, against a fake agent.

mod command;
mod pods;
mod support;
