//! The laboratory: the real cores under a virtual clock, with modelled networks, machines and users.
//!
//! [`world::World`] runs the cores, and [`masters`] the core of a group of masters; nothing here decides what a master,
//! an agent or a scheduler decides.
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
