//! The agent's core: executors, tasks, status streams, recovery decisions.
//!
//! A state machine without input or output of its own: [`Agent::handle`] takes one [`Input`] and the time, and
//! puts what must happen into an [`Outbox`]. The shell around it makes the outbox's `persist` entries durable
//! before it carries out the `outputs`, so what the core has said is never lost. The core knows no clock, no
//! socket, no file and no process; equal inputs and an equal seed give equal outputs.
#![forbid(unsafe_code)]

mod acknowledge;
mod agent;
mod apply_operation;
mod authenticate;
mod completed;
mod config;
mod container;
mod detected;
mod disk;
mod drain;
mod early;
mod environment;
mod executor;
mod executor_call;
mod executor_exited;
mod framework;
mod gc;
mod heartbeats;
mod input;
mod kill_task;
mod launch;
mod limits;
mod made_up_executor;
mod message;
mod nested;
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
mod status;
mod status_update;
mod streams;
mod subscribe_executor;
mod texts;
mod timers;
mod trouble;
mod update_framework;
mod visible;
mod volumes;
mod waiting;

pub use agent::{Agent, AgentState, StartError};
pub use authenticate::{AuthMessage, Credential};
pub use config::{Config, Limitable, Reconfiguration, RecoverMode};
pub use container::{ContainerName, ContainerSpec, Ours, Prepare, Session, VolumeLink};
pub use cores::{RequestId, StreamId};
pub use disk::{
    Recovered, RecoveredAgent, RecoveredExecutor, RecoveredFramework, RecoveredNested, RecoveredRun, RecoveredTask,
    RecoveryError, Skipped, Tree,
};
pub use environment::{PATH, is_agents_own};
pub use executor::{Executor, ExecutorLink, ExecutorState, Queued};
pub use framework::{Framework, FrameworkState};
pub use input::Input;
pub use limits::Limits;
pub use message::{Incoming, MessageError, Outgoing};
pub use output::{Answer, GoneVolume, Outbox, Output, Persist};
pub use snapshot::{Counters, Snapshot};
pub use status::is_terminal;
pub use trouble::UNHEALTHY;
