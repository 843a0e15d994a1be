//! The commands that change a cluster by calls of the operator API.
//!
//! Commands that only list what a master knows are in `read`.

pub mod agents;
mod confirm;
mod find;
pub mod frameworks;
pub mod log_level;
pub mod maintenance;
pub mod masters;
pub mod policies;
pub mod quota;
pub mod reserve;
mod reserved;
pub mod volumes;
pub mod weights;
