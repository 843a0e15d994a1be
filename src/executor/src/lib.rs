//! The command executor and the default (pod) executor, without an async runtime.
#![forbid(unsafe_code)]
