//! Core of the agent: executors, tasks, status update streams and recovery decisions.
//!
//! [`Agent`] is a state machine without I/O (see [`cores::Core`]). It handles an [`Input`], and the consequences are in
//! the [`Outbox`]. It has no clock, socket, file or process; equal inputs and an equal seed lead to equal outputs.
//!
//! A message, a call or a report of the shell is handled in the file of its name. The state is in `state/`: no file
//! takes a plain value from a file that handles something.
#![forbid(unsafe_code)]

mod acknowledge;
mod agent;
mod apply_operation;
mod authenticate;
mod check_proof;
mod checkpoint_failure;
mod command_executor_info;
mod completed;
mod config;
mod deferred_registration;
mod detected;
mod disk;
mod drain;
mod environment;
mod executor_call;
mod executor_events;
mod executor_exited;
mod gc;
mod heartbeats;
mod input;
mod kill_task;
mod launch;
mod message;
mod nested;
mod nested_call;
mod nested_launch;
mod old_resources;
mod output;
pub mod oversubscription;
mod ping;
mod random;
mod reconfiguration;
mod recover_executor;
mod recovery;
mod register_executor;
mod registered;
mod run_task;
mod shut_down;
mod shutdown_executor;
mod shutdown_framework;
mod snapshot;
mod state;
mod status_update;
mod subscribe_executor;
mod texts;
mod timers;
mod update_container;
mod update_framework;
mod visible;
mod volumes;
mod waiting;

pub use agent::{Agent, AgentState, StartError};
pub use checkpoint_failure::UNHEALTHY;
pub use config::{Config, Credential, Limitable, Reconfiguration, RecoverMode};
pub use cores::{CallError, ErrorKind, RequestId, StreamId};
pub use disk::{
    Recovered, RecoveredAgent, RecoveredExecutor, RecoveredFramework, RecoveredNested, RecoveredRun, RecoveredTask,
    RecoveryError, Skipped, Tree,
};
pub use environment::{PATH, TOKEN, is_agents_own};
pub use input::Input;
pub use message::{AuthMessage, Incoming, MessageError, Outgoing};
pub use nested_call::container_of;
pub use output::{Answer, Done, Outbox, Output, Persist, RemovedVolume};
pub use reconfiguration::Incompatible;
pub use snapshot::{Counters, Snapshot};
pub use state::{
    Claims, ContainerName, ContainerSpec, Executor, ExecutorKey, ExecutorLink, ExecutorState, Framework,
    FrameworkState, Limits, Prepare, Proof, Queued, Session, VolumeLink, is_terminal,
};
