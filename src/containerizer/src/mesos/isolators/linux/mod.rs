//! `linux/...`: rights of processes, files of devices, and what resctrl divides.

pub(crate) mod capabilities;
pub(crate) mod devices;
pub(crate) mod nnp;
pub(crate) mod resctrl;
pub mod seccomp;
