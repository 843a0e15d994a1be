//! The parts of a task that make a Docker container of it, generated as those of `crate::messages` are.

include!(concat!(env!("OUT_DIR"), "/docker_messages.rs"));
