//! What can happen to an agent.
//!
//! Everything here is already decoded; nothing is checked yet.

use base::Pid;
use cores::{RequestId, StreamId};
use protos::mesos::{self as pb, agent, executor};

use crate::message::{AuthMessage, Incoming};
use crate::oversubscription::Measurement;
use crate::state::{ContainerName, Proof};

/// What can happen to an agent.
#[derive(Clone, Debug)]
pub enum Input {
    /// Leader detection has (again) found this leading master, or none.
    Detected {
        /// The leader's pid.
        master: Option<Pid>,
    },
    /// A libprocess message has arrived.
    Message {
        /// Its sender.
        from: Pid,
        /// The message.
        message: Box<Incoming>,
    },
    /// A message for `crammd5-authenticatee(attempt)` has arrived.
    Authentication {
        /// The number of the attempt.
        attempt: u64,
        /// Its sender.
        from: Pid,
        /// The message.
        message: AuthMessage,
    },
    /// The link to this process is broken.
    Exited {
        /// The process at the other end.
        pid: Pid,
    },
    /// An executor's SUBSCRIBE call, with the stream that it will use if it is accepted.
    ExecutorSubscribe {
        /// The stream to be.
        stream: StreamId,
        /// The request to answer.
        request: RequestId,
        /// The call.
        call: Box<executor::Call>,
        /// What proves that it is the executor's.
        proof: Proof,
    },
    /// Any other call of an executor.
    ExecutorCall {
        /// The request to answer.
        request: RequestId,
        /// The call.
        call: Box<executor::Call>,
        /// What proves that it is the executor's.
        proof: Proof,
    },
    /// An executor's event stream is closed, from either side.
    ExecutorStreamClosed {
        /// The stream.
        stream: StreamId,
    },
    /// An operator's call to the agent that needs the core: containers.
    OperatorCall {
        /// The request to answer.
        request: RequestId,
        /// The call.
        call: Box<agent::Call>,
    },
    /// A container that is about to start, or runs, is on networks of its own; they are those that its tasks' statuses
    /// name.
    ContainerNetworks {
        /// The container.
        container: ContainerName,
        /// The networks, with its addresses there.
        networks: Vec<pb::NetworkInfo>,
    },
    /// A container that is about to start, or runs, has its packets marked with a class of its own.
    ContainerClass {
        /// The container.
        container: ContainerName,
        /// The class.
        class: u32,
    },
    /// A container runs: after `Launch`, or after `Reattach` when its process is still there.
    ContainerStarted {
        /// The container.
        container: ContainerName,
        /// Its first process.
        pid: u32,
    },
    /// A container could not be started; nothing of it is left running.
    ContainerStartFailed {
        /// The container.
        container: ContainerName,
        /// Why not.
        why: String,
    },
    /// A container has ended, with all its processes.
    ContainerExited {
        /// The container.
        container: ContainerName,
        /// The first process's status as wait(2) gives it; none if it cannot be known.
        status: Option<i32>,
    },
    /// A container has used more than it may, and is being ended by the shell.
    ContainerLimited {
        /// The container.
        container: ContainerName,
        /// Which limit.
        reason: pb::task_status::Reason,
        /// What was used, in words.
        message: String,
        /// What was exceeded.
        resources: Vec<pb::Resource>,
    },
    /// The request of `ChangeVolumes` is done.
    VolumesChanged {
        /// Which change.
        change: u64,
    },
    /// `LinkVolumes` has failed for a running container.
    ContainerUpdateFailed {
        /// The container.
        container: ContainerName,
        /// Why not.
        why: String,
    },
    /// The result of `Measure`.
    Measured {
        /// What was seen.
        measurement: Box<Measurement>,
    },
    /// Use of the file system of the work directory, between 0 and 1.
    DiskUsage {
        /// The part in use.
        fraction: f64,
    },
    /// Checkpoints cannot be written where they belong. Until `CheckpointsWork` the shell keeps them elsewhere, or
    /// holds back what depends on them.
    CheckpointsFailing {
        /// The system's error.
        why: String,
        /// Whether there is too little room on the disk.
        needs_room: bool,
    },
    /// Checkpoints can be written again.
    CheckpointsWork,
    /// The process has been asked to end.
    Shutdown {
        /// Whether the agent leaves the cluster for good (SIGUSR1), or only stops (SIGTERM).
        unregister: bool,
    },
    /// The time of `next_wake` has come.
    Wake,
}
