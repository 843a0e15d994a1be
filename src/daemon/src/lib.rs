//! The live shells of master and agent: sockets, clocks and processes around the cores.
//!
//! They decide nothing that a core can decide.
#![forbid(unsafe_code)]

mod acls;
mod address;
pub mod agent;
mod audit;
mod clock;
mod codec;
mod common;
mod connections;
mod credentials;
mod driver;
mod etcd;
mod fault;
mod files;
mod firewall;
pub mod flags;
mod host;
mod lists;
pub mod local;
mod log_limit;
mod logging;
mod logins;
pub mod master;
mod metrics;
mod origin;
mod parts;
mod pending_requests;
pub mod process;
mod prometheus;
pub mod random;
mod realms;
mod rejection;
mod secrets;
mod senders;
mod streams;
mod tls;
mod webui;
mod window;
mod zookeeper;
