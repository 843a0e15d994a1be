//! Outputs of the agent: actions for its shell, and changes to persist.
//!
//! The shell decides how an action is carried out; [`cores::Outbox`] defines the order.

use std::sync::Arc;

use base::{Pid, Time};
use cores::{CallError, RequestId, StreamId};
use protos::mesos::{self as pb, agent, executor};

use crate::message::Outgoing;
use crate::state::{ContainerName, ContainerSpec, Limits, VolumeLink};

/// Result of a batch of inputs: checkpoints to write, then actions to carry out.
pub type Outbox = cores::Outbox<Persist, Output>;

/// A change of a file below the meta directory (`<work_dir>/meta`).
pub type Persist = cores::Change;

/// Result of a request that the agent does not reject.
#[derive(Clone, Debug, PartialEq)]
pub enum Done {
    /// The request has been carried out.
    Complete,
    /// The request is accepted; its effects follow.
    Accepted,
    /// The event stream of this SUBSCRIBE call is open.
    Stream,
    /// The request is answered with this response.
    Response(Box<agent::Response>),
}

/// Answer to a request: its result, or an error.
pub type Answer = Result<Done, CallError>;

/// A persistent volume that is destroyed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedVolume {
    /// Absolute path of the volume's directory.
    pub path: String,
    /// Whether the directory is a disk of its own (a mount point). Such a directory is emptied but not removed.
    pub is_mount: bool,
}

/// An action that the agent requests of its shell.
#[derive(Clone, Debug)]
pub enum Output {
    /// Sends a libprocess message.
    Send {
        /// Pid of the receiver.
        to: Pid,
        /// Message to send.
        message: Arc<Outgoing>,
    },
    /// Sends a libprocess message as `crammd5-authenticatee(attempt)`.
    SendAs {
        /// Number of the attempt to authenticate.
        attempt: u64,
        /// Pid of the receiver.
        to: Pid,
        /// Message to send.
        message: Arc<Outgoing>,
    },
    /// Keeps a connection to a process, and reports `Exited` when it breaks.
    Link {
        /// Pid of the process.
        to: Pid,
    },
    /// Writes an event to an executor's stream.
    ExecutorEvent {
        /// Stream of the executor.
        stream: StreamId,
        /// Event to write.
        event: Arc<executor::Event>,
    },
    /// Closes an executor's stream, after what was written to it.
    CloseStream {
        /// Stream to close.
        stream: StreamId,
    },
    /// Answers a request.
    Respond {
        /// Request to answer.
        request: RequestId,
        /// Answer to the request.
        answer: Answer,
    },
    /// Creates the sandbox and starts the container; reports `ContainerStarted` or `ContainerStartFailed`, and later
    /// `ContainerExited`.
    Launch {
        /// Name of the container.
        container: ContainerName,
        /// Description of the container.
        spec: Box<ContainerSpec>,
    },
    /// Watches a container that the previous agent process started; reports `ContainerStarted` if it runs, else
    /// `ContainerExited`.
    Reattach {
        /// Name of the container.
        container: ContainerName,
        /// Pid of the container's first process.
        pid: u32,
        /// Time at which the pid was recorded, if it is known. A process with this pid that started later is another
        /// one.
        recorded: Option<Time>,
        /// Absolute path of the sandbox; `None` for a nested or standalone container.
        sandbox: Option<String>,
    },
    /// Sends a signal to the container's first process.
    Signal {
        /// Name of the container.
        container: ContainerName,
        /// Number of the signal.
        signal: i32,
    },
    /// Kills all processes of a container, and of the containers inside it; reports `ContainerExited`.
    Destroy {
        /// Name of the container.
        container: ContainerName,
    },
    /// Deletes directories or files in the background.
    Delete {
        /// Absolute paths to delete.
        paths: Vec<String>,
    },
    /// Deletes a directory with its content, and then answers a request with OK.
    DeleteSandbox {
        /// Absolute path of the directory.
        path: String,
        /// Request to answer.
        request: RequestId,
    },
    /// Records how a nested container has ended. It happens before any later output.
    RecordTermination {
        /// Name of the container.
        container: ContainerName,
        /// Exit status of the container, and the reason.
        termination: Box<pb::slave::ContainerTermination>,
    },
    /// Deletes the records of an ended container and of those inside it, because no request will name them.
    Forget {
        /// Name of the container.
        container: ContainerName,
    },
    /// Deletes and creates persistent volumes. The shell first removes the volumes of `gone` from their paths, then
    /// creates those of `new`, both before any later output.
    ///
    /// It then reports `VolumesChanged`. If a volume cannot be changed it ends the process, because the agent would
    /// report volumes that it does not have. To repeat the output changes nothing.
    ChangeVolumes {
        /// Number of the change, for the report.
        change: u64,
        /// Volumes whose data is deleted.
        gone: Vec<RemovedVolume>,
        /// Absolute paths of directories that are created with their parents, unless they exist.
        new: Vec<String>,
    },
    /// Changes the volumes of a running container. It happens before any later output. The shell reports
    /// `ContainerUpdateFailed` if it cannot be done.
    LinkVolumes {
        /// Name of the container.
        container: ContainerName,
        /// Absolute path of the container's sandbox.
        sandbox: String,
        /// User that owns the volumes; `None`: the agent's own user.
        user: Option<String>,
        /// Volumes that are added to the sandbox.
        added: Vec<VolumeLink>,
        /// Volumes that are removed from the sandbox.
        removed: Vec<VolumeLink>,
    },
    /// Applies new resources to a running container. A limit that cannot be set is only logged: it may be below what is
    /// in use.
    Resize {
        /// Name of the container.
        container: ContainerName,
        /// Resources that the container holds.
        resources: Vec<pb::Resource>,
        /// Limits beyond these resources.
        limits: Limits,
    },
    /// Measures the resource use of containers and the load of the machine; reports `Measured`.
    Measure,
    /// Detects the leading master again; the answer is `Detected`, also for the same leader.
    RedetectMaster,
    /// Ends the process, after everything before it was done.
    Exit {
        /// Exit code of the process.
        code: i32,
        /// Message for the operator.
        message: String,
    },
}
