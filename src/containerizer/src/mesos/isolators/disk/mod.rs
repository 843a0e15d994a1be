//! Isolators `disk/...`: the disk use of containers.

pub(crate) mod du;
