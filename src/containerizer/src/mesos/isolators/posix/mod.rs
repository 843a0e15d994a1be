//! Isolators `posix/...`, which need neither control groups nor namespaces.

pub(crate) mod rlimits;
