//! Parses job files: TOML or JSON, field by field. Every fault is reported with its line and rule.

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
