//! The master's core: frameworks, agents, offers, tasks, operations, validation.
#![forbid(unsafe_code)]
