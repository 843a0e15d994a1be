//! `posix/...`: isolators that need neither control groups nor namespaces.

pub(crate) mod rlimits;
