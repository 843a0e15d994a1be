//! The parts of a task's messages that describe its Docker container, generated like those of `crate::messages`.

include!(concat!(env!("OUT_DIR"), "/docker_messages.rs"));
