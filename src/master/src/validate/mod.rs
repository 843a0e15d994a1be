//! Checks of calls and messages, each with the error text of Mesos. They change nothing.

mod agent;
mod checks;
mod command;
mod container;
mod executor;
mod framework_info;
mod group;
mod maintenance;
mod offer_constraints;
mod quota;
pub(crate) mod sizes;
mod task;

pub(crate) use agent::{agent_fits, registration, reregistration, resource_version};
pub use command::{CommandInvalid, SecretInvalid, command};
pub use container::{ContainerInvalid, VolumeInvalid, container};
pub(crate) use framework_info::{failover_timeout, framework_info, roles_of, subscription_update};
pub(crate) use group::{Group, GroupNeeds, group};
pub(crate) use maintenance::{machine_text, machines, schedule};
pub(crate) use offer_constraints::offer_constraints;
pub(crate) use quota::{amounts_text, quota_config, quota_of, quota_request};
pub(crate) use task::{Launch, Needs, task};
