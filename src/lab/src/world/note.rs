//! Events of a world for its observer, beside the messages between schedulers and the master.

use std::collections::BTreeSet;

use master::{CallError, InvalidCall};
use protos::mesos::TaskState;
use sdk::Ending;
use sdk::v1::scheduler::Call;

/// The reason why the master rejects a scheduler's call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallRefusal {
    /// The call does not have the form of its type.
    #[error(transparent)]
    Malformed(#[from] InvalidCall),
    /// The core rejects the call.
    #[error("{:?}: {}", .0.kind, .0)]
    Rejected(CallError),
}

/// An event that no single process of the cluster can report.
#[derive(Debug)]
#[expect(missing_docs, reason = "agents, schedulers and places are numbers, the rest is named as everywhere")]
pub enum Note<'a> {
    /// A master begins to lead.
    MasterStarts { generation: u32, place: u8 },
    /// A master is deposed by another one and does not know it.
    MasterDeposed { generation: u32 },
    /// The master's process crashes.
    MasterStops,
    /// The master exits on its own.
    MasterExits { reason: &'a str },
    /// An agent's process starts.
    AgentStarts { agent: u32 },
    /// An agent's process crashes.
    AgentStops { agent: u32 },
    /// An agent exits on its own.
    AgentExits { agent: u32, why: &'a str },
    /// An agent cannot start with the files on its disk.
    AgentCannotStart { agent: u32, why: &'a str },
    /// The disk refuses the reads or writes that an agent needs to start.
    AgentStartRefused { agent: u32, why: &'a str },
    /// The disk refuses a write of an agent, in place and in the journal; the write is repeated later.
    WriteRefused { agent: u32 },
    /// An agent is notified that its disk refuses checkpoints.
    CheckpointsFail { agent: u32, why: &'a str },
    /// An agent is notified that its disk accepts writes again.
    CheckpointsWork { agent: u32 },
    /// A task arrives at an agent that knows that its disk refuses checkpoints.
    TaskForFailingDisk { agent: u32, framework: &'a str, task: &'a str },
    /// The disk refuses a write of the registry, and the master ends.
    RegistryRefused { why: &'a str },
    /// A task arrives at an agent from a master that the agent has left for another one.
    TaskFromFormerMaster { agent: u32, framework: &'a str, task: &'a str },
    /// An agent drops a task with all of its updates because its framework was shut down.
    TaskDropped { agent: u32, framework: &'a str, task: &'a str },
    /// A scheduler's process starts.
    SchedulerStarts { scheduler: u32 },
    /// A scheduler's process crashes.
    SchedulerStops { scheduler: u32 },
    /// A scheduler's session ends.
    SchedulerEnds { scheduler: u32, ending: &'a Ending },
    /// A scheduler's call is rejected.
    CallRefused { scheduler: u32, call: &'a Call, why: &'a CallRefusal },
    /// An executor's process ends with this wait status.
    ExecutorEnds { agent: u32, framework: &'a str, id: &'a str, status: i32 },
    /// An executor creates a status update.
    UpdateCreated { framework: &'a str, task: &'a str, state: TaskState, uuid: &'a [u8] },
    /// An executor's status update is acknowledged.
    UpdateAcknowledged { framework: &'a str, uuid: &'a [u8] },
    /// An operator makes a call.
    OperatorCalls { request: u64, call: &'a protos::mesos::master::Call },
    /// An operator's call is answered.
    OperatorAnswered { request: u64, done: bool },
    /// A persistent volume's directory is created on an agent's disk.
    VolumeCreated { agent: u32, directory: &'a str },
    /// A persistent volume's directory is deleted with its content.
    VolumeDestroyed { agent: u32, directory: &'a str },
    /// A starting task reads a volume of its own. The content names the tasks that have written there; `None` if the
    /// directory is missing.
    VolumeUsed {
        agent: u32,
        framework: &'a str,
        task: &'a str,
        id: &'a str,
        shared: bool,
        data: Option<&'a BTreeSet<String>>,
    },
}
