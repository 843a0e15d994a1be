//! The agent's core: executors, tasks, status streams, recovery decisions.
#![forbid(unsafe_code)]
