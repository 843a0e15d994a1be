//! Isolators `linux/...`: rights of processes, device files, and resources of resctrl.

pub(crate) mod capabilities;
pub(crate) mod devices;
pub(crate) mod nnp;
pub(crate) mod resctrl;
pub mod seccomp;
