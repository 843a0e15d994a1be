//! The master's core: frameworks, agents, offers, tasks, operations, validation, registry operations.
//!
//! [`Master`] is a state machine: [`Core::handle`](cores::Core::handle) handles an [`Input`], and its results are in
//! the [`Outbox`]. It has no clock, no sockets, no files, and no randomness except a seed. A message or call is handled
//! in the file of its name, in `messages/`, `calls/` or `operator/`; their effects are in `agents/`, `frameworks/`,
//! `offers/` and `tasks/`. `Agents`, `AbsentAgents`, `Frameworks`, `Offers` and `Operations` are tables with private
//! fields: they update their indices, timers and sums, and record that a snapshot has changed (`tracked.rs`).
//!
//! This crate does not depend on HTTP, JSON, the transport of messages, or the storage of the registry.
#![forbid(unsafe_code)]

mod agents;
mod allocation;
mod authentication;
mod authenticator;
mod authorization;
mod calls;
mod config;
mod counters;
mod events;
mod explain;
mod frameworks;
pub mod invariants;
mod io;
mod master;
mod message;
mod messages;
mod offer_lookup;
mod offers;
mod operations;
mod operator;
mod peers;
pub mod record;
mod refusals;
mod registry;
mod snapshot;
mod state;
mod table;
mod tasks;
#[cfg(test)]
pub mod testing;
mod throttle;
mod timers;
mod tracked;
mod validate;
pub mod views;

pub use authenticator::{AuthInput, AuthMessage, AuthOutput, Authenticator, ClientInvalid, client_of};
pub use calls::{InvalidCall, validate_call, validate_principal};
pub use config::Config;
pub use cores::{CallError, ErrorKind, RequestId, StreamId};
pub use counters::{Counter, Counters};
pub use explain::{ExcludedAgents, ExplainError};
pub use io::{Answer, Done, Input, KillTask, Outbox, Output, Sender};
pub use master::Master;
pub use message::{DecodeError, Message, Outgoing};
pub use registry::RegistryOp;
pub use snapshot::Snapshot;
pub use state::{
    Agent, AgentCapabilities, AgentKey, Connection, Executor, Framework, FrameworkCapabilities, FrameworkCounts,
    FrameworkKey, InverseOffer, Machine, MachineKey, Maintenance, Offer, OfferKey, ResourceProvider, Task, TaskKey,
};
pub use table::{Chunk, Table};
pub use throttle::{RateLimit, RateLimits};
pub use validate::{CommandInvalid, ContainerInvalid, SecretInvalid, VolumeInvalid};
pub use validate::{command as validate_command, container as validate_container};

/// Interval of heartbeats on a stream, also stated in SUBSCRIBED.
pub const HEARTBEAT_INTERVAL: std::time::Duration = std::time::Duration::from_secs(15);
