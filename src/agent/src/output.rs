//! What an agent asks its shell to do, and what it persists.
//!
//! How that is done is up to the shell; in which order, to [`cores::Outbox`].

use std::sync::Arc;

use base::{Pid, Time};
use cores::{CallError, RequestId, StreamId};
use protos::mesos::{self as pb, agent, executor};

use crate::message::Outgoing;
use crate::state::{ContainerName, ContainerSpec, Limits, VolumeLink};

/// What a batch of inputs has led to: checkpoints, and what is to be done.
pub type Outbox = cores::Outbox<Persist, Output>;

/// One change below the meta directory (`<work_dir>/meta`).
pub type Persist = cores::Change;

/// The result of a request that the agent does not reject.
#[derive(Clone, Debug, PartialEq)]
pub enum Done {
    /// It is carried out.
    Complete,
    /// It is accepted; its effects follow.
    Accepted,
    /// The event stream of this SUBSCRIBE is open.
    Stream,
    /// This is the response.
    Response(Box<agent::Response>),
}

/// The answer to a request.
pub type Answer = Result<Done, CallError>;

/// A persistent volume that is destroyed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoneVolume {
    /// Its directory, absolute.
    pub path: String,
    /// Whether the directory is a disk of its own (a mount point), which stays, empty.
    pub is_mount: bool,
}

/// An action that an agent requests of the shell.
#[derive(Clone, Debug)]
pub enum Output {
    /// Send a libprocess message.
    Send {
        /// The receiver.
        to: Pid,
        /// The message.
        message: Arc<Outgoing>,
    },
    /// Send a libprocess message as `crammd5-authenticatee(attempt)`.
    SendAs {
        /// The number of the attempt to authenticate.
        attempt: u64,
        /// The receiver.
        to: Pid,
        /// The message.
        message: Arc<Outgoing>,
    },
    /// Keep a connection to this process, and report with `Exited` when it breaks.
    Link {
        /// The process.
        to: Pid,
    },
    /// Write an event to an executor's stream.
    ExecutorEvent {
        /// The stream.
        stream: StreamId,
        /// The event.
        event: Arc<executor::Event>,
    },
    /// End an executor's stream, after what was written to it.
    CloseStream {
        /// The stream.
        stream: StreamId,
    },
    /// Answer a request.
    Respond {
        /// The request.
        request: RequestId,
        /// The answer.
        answer: Answer,
    },
    /// Make the sandbox and start the container; report `ContainerStarted` or `ContainerStartFailed`, and later
    /// `ContainerExited`.
    Launch {
        /// Its name.
        container: ContainerName,
        /// What it is.
        spec: Box<ContainerSpec>,
    },
    /// Watch a container that an earlier agent started; report `ContainerStarted` if it lives, else
    /// `ContainerExited`.
    Reattach {
        /// Its name.
        container: ContainerName,
        /// Its first process.
        pid: u32,
        /// When that pid was written down: a process that started later is another one. None if it is not known.
        recorded: Option<Time>,
        /// Its sandbox, absolute; none for a container inside another one.
        sandbox: Option<String>,
    },
    /// Send a signal to the container's first process.
    Signal {
        /// Which container.
        container: ContainerName,
        /// The signal's number.
        signal: i32,
    },
    /// End all of the container's processes, and of the containers inside it; report `ContainerExited`.
    Destroy {
        /// Which container.
        container: ContainerName,
    },
    /// Delete these directories or files (absolute paths) in the background.
    Delete {
        /// What goes.
        paths: Vec<String>,
    },
    /// Delete a directory with its content; then answer the request with OK.
    DeleteSandbox {
        /// The directory, absolute.
        path: String,
        /// The request.
        request: RequestId,
    },
    /// Note how a container inside another one has ended; it happens before any later output.
    NoteEnd {
        /// Which container.
        container: ContainerName,
        /// The exit status and the reason.
        termination: Box<pb::slave::ContainerTermination>,
    },
    /// No request will name this ended container or those inside it: forget what is recorded of them.
    Forget {
        /// Which container.
        container: ContainerName,
    },
    /// Persistent volumes come and go: first what `gone` names is no longer seen at its place, then what `new` names
    /// is there, both before any later output. Report `VolumesChanged` then; if it cannot be done, end the process:
    /// the agent would lie about what it has. Doing it again changes nothing.
    ChangeVolumes {
        /// Which change it is, for the report.
        change: u64,
        /// Volumes whose data goes.
        gone: Vec<GoneVolume>,
        /// Directories, absolute, that are made with their parents unless they are there.
        new: Vec<String>,
    },
    /// A running container sees other volumes from now on; it happens before any later output. Report
    /// `ContainerUpdateFailed` if it cannot be done.
    LinkVolumes {
        /// Which container.
        container: ContainerName,
        /// Its sandbox, absolute.
        sandbox: String,
        /// The user that owns the volumes; `None`: the agent's own user.
        user: Option<String>,
        /// What is seen in the sandbox.
        appear: Vec<VolumeLink>,
        /// What is not seen any more.
        vanish: Vec<VolumeLink>,
    },
    /// Apply new resources to a running container. What cannot be set is only logged: less than is in use cannot be
    /// taken away.
    Resize {
        /// Which container.
        container: ContainerName,
        /// What it holds.
        resources: Vec<pb::Resource>,
        /// How much more it may use.
        limits: Limits,
    },
    /// Look at what containers use and how busy the machine is; report `Measured`.
    Measure,
    /// Detect the leader again; the answer is `Detected`, also for the same leader.
    RedetectMaster,
    /// End the process, after everything before it was done.
    Exit {
        /// The exit code.
        code: i32,
        /// Message for the operator.
        message: String,
    },
}
