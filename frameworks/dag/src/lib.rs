//! The framework of jobs of stages: a job is a graph of stages, a stage is many tasks of one program.
//!
//! - [`sizing`] chooses how much of a stage's input each task gets (Libra).
//! - [`order`] chooses the stage that runs next, and how many tasks a job may run at once (the heuristics of Decima).
//! - [`priority`] lets low priority give way by dropped tasks, and high priority sprint (DiAS).
//!
//! It opens no socket, reads no clock and draws no random number that is not seeded.
#![forbid(unsafe_code)]

pub mod order;
pub mod priority;
pub mod sizing;
pub mod study;
