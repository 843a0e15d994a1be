//! The containerizer of the agent: launches, isolates, watches and destroys containers.
//!
//! The agent's core requests launches and terminations, and receives reports. This crate does not depend on task
//! states, frameworks, HTTP, or flags: it takes a [`Config`].
#![forbid(unsafe_code)]

mod composing;
pub mod config;
mod container_config;
mod container_logger;
mod containerizer;
mod credential_helpers;
mod default_dns;
mod deleter;
mod docker;
mod external_program;
mod fetcher;
mod host;
mod io_switchboard;
mod launcher;
mod mesos;
mod reaper;
mod runtime_dir;
mod sandbox;
mod secrets;
mod spares;
mod systemd;
pub mod volumes;

use std::path::Path;

pub use crate::fetcher::Fetcher;
pub use composing::{
    ComposingContainerizer, Connect, ContainerResources, ContainerUsage, ListContainerResources, Report,
};
pub use config::{Config, ConfigError};
pub use container_logger::{RotationError, rules as rotation_rules};
pub use deleter::Deleter;
pub use host::{AgentConnections, Host};
pub use io_switchboard::{Client, ContainerIo, TakenInput};
pub use mesos::isolators::gpu::nvidia::Gpus;
pub use mesos::isolators::is_perf_event;
pub use mesos::isolators::linux::capabilities::bits as capability_bits;
pub use mesos::isolators::linux::seccomp::{Filters, compile as seccomp_filters};
pub use mesos::isolators::list::isolators;
pub use mesos::isolators::network::cni::config::{
    addresses as cni_addresses, configurations as cni_configurations, resolver as cni_resolver,
};
pub use mesos::isolators::{DiskUse, GroupUse};
pub use mesos::provisioner::Provisioner;

/// Deletes a directory or a file. A failure is logged.
pub fn delete(path: &Path) {
    if let Err(error) = containers::remove(path)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!("cannot delete '{}': {error}", path.display());
    }
}
