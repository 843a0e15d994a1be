//! What a framework developer depends on: schedulers and executors without I/O, and their drivers.
#![forbid(unsafe_code)]
