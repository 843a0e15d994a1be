//! The laboratory: runs the real cores under a virtual clock, with modelled networks, machines and users.
//!
//! [`world::World`] runs the cores of a cluster, and [`masters`] the core of a group of masters. Nothing here makes the
//! decisions of a master, an agent or a scheduler.
#![forbid(unsafe_code)]

pub mod bundled;
pub mod campaign;
pub mod dist;
pub mod failures;
pub mod faults;
mod inputs;
pub mod live;
pub mod masters;
pub mod measure;
pub mod replay;
pub mod report;
pub mod run;
pub mod scenario;
pub mod seeds;
pub mod span;
pub mod users;
pub mod work;
pub mod world;
