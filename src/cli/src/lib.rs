//! The operator's and the developer's commands.
#![forbid(unsafe_code)]
