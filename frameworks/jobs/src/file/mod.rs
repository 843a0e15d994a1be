//! Job files: TOML or JSON, read field by field, with every fault by line and rule.

pub mod common;
mod fault;
mod fields;
mod read;
pub mod seconds;
mod tree;

pub use fault::{Collector, Fault, Faults};
pub use fields::Fields;
pub use read::{FILE_BYTES_MAX, JOBS_MAX, Syntax, read};
pub use tree::{Field, Node, Value};
