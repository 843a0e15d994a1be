//! Scripted runs of the scheduler.
