//! `linux/...`: rights of processes, and what resctrl divides.

pub(crate) mod capabilities;
pub(crate) mod nnp;
pub(crate) mod resctrl;
pub mod seccomp;
