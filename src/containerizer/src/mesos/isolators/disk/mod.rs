//! `disk/...`: what containers use of the disk.

pub(crate) mod du;
