//! Inputs of the agent: everything that can happen to it.
//!
//! All inputs are already decoded; nothing has been checked yet.

use base::Pid;
use cores::{RequestId, StreamId};
use protos::mesos::{self as pb, agent, executor};

use crate::message::{AuthMessage, Incoming};
use crate::oversubscription::Measurement;
use crate::state::{ContainerName, Proof};

/// An event that the agent's core handles.
#[derive(Clone, Debug)]
pub enum Input {
    /// Leader detection has found this leading master, again or for the first time, or none.
    Detected {
        /// Pid of the leading master; `None` if there is none.
        master: Option<Pid>,
    },
    /// A libprocess message has arrived.
    Message {
        /// Pid of the sender.
        from: Pid,
        /// The decoded message.
        message: Box<Incoming>,
    },
    /// A message for `crammd5-authenticatee(attempt)` has arrived.
    Authentication {
        /// Number of the attempt to authenticate.
        attempt: u64,
        /// Pid of the sender.
        from: Pid,
        /// The decoded message.
        message: AuthMessage,
    },
    /// The link to a process is broken.
    Exited {
        /// Pid of the process at the other end.
        pid: Pid,
    },
    /// An executor has sent a SUBSCRIBE call.
    ExecutorSubscribe {
        /// Event stream that the executor uses if the call is accepted.
        stream: StreamId,
        /// Request to answer.
        request: RequestId,
        /// The decoded call.
        call: Box<executor::Call>,
        /// Evidence that the call is the executor's.
        proof: Proof,
    },
    /// An executor has sent any other call.
    ExecutorCall {
        /// Request to answer.
        request: RequestId,
        /// The decoded call.
        call: Box<executor::Call>,
        /// Evidence that the call is the executor's.
        proof: Proof,
    },
    /// An executor's event stream was closed, by either side.
    ExecutorStreamClosed {
        /// Stream that was closed.
        stream: StreamId,
    },
    /// An operator has sent a call about containers. Other operator calls do not need the core.
    OperatorCall {
        /// Request to answer.
        request: RequestId,
        /// The decoded call.
        call: Box<agent::Call>,
    },
    /// A container that is about to start, or runs, has joined container networks. The statuses of its tasks report
    /// them.
    ContainerNetworks {
        /// Name of the container.
        container: ContainerName,
        /// Networks, with the container's addresses on them.
        networks: Vec<pb::NetworkInfo>,
    },
    /// The packets of a container that is about to start, or runs, are marked with a traffic class.
    ContainerClass {
        /// Name of the container.
        container: ContainerName,
        /// Traffic class (`net_cls.classid`).
        class: u32,
    },
    /// A container runs: after `Launch`, or after `Reattach` when its process still exists.
    ContainerStarted {
        /// Name of the container.
        container: ContainerName,
        /// Pid of the container's first process.
        pid: u32,
    },
    /// A container could not be started; none of its processes is left.
    ContainerStartFailed {
        /// Name of the container.
        container: ContainerName,
        /// Why the container could not be started.
        why: String,
    },
    /// A container has ended, with all its processes.
    ContainerExited {
        /// Name of the container.
        container: ContainerName,
        /// Status of the first process as wait(2) returns it; `None` if it cannot be known.
        status: Option<i32>,
    },
    /// A container has exceeded a limit, and the shell is destroying it.
    ContainerLimited {
        /// Name of the container.
        container: ContainerName,
        /// Limit that was exceeded.
        reason: pb::task_status::Reason,
        /// Description of the use, for the status update.
        message: String,
        /// Resources whose limit was exceeded.
        resources: Vec<pb::Resource>,
    },
    /// The directories of a `ChangeVolumes` output were created and deleted.
    VolumesChanged {
        /// Number of the change.
        change: u64,
    },
    /// `LinkVolumes` has failed for a running container.
    ContainerUpdateFailed {
        /// Name of the container.
        container: ContainerName,
        /// Why the update failed.
        why: String,
    },
    /// A requested measurement (`Measure`) is done.
    Measured {
        /// Result of the measurement.
        measurement: Box<Measurement>,
    },
    /// The use of the file system of the work directory was measured.
    DiskUsage {
        /// Used part of the file system, between 0 and 1.
        fraction: f64,
    },
    /// Checkpoints cannot be written to the meta directory. Until `CheckpointsWork` the shell keeps them elsewhere, or
    /// withholds the outputs that depend on them.
    CheckpointsFailing {
        /// Error message of the system.
        why: String,
        /// Whether the disk has too little space.
        lacks_space: bool,
    },
    /// Checkpoints can be written again.
    CheckpointsWork,
    /// The agent process has been asked to end.
    Shutdown {
        /// Whether the agent leaves the cluster for good (SIGUSR1), or only stops (SIGTERM).
        unregister: bool,
    },
    /// The time of `next_wake` has been reached.
    Wake,
}
