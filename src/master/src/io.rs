//! Inputs and outputs of the core.
//!
//! [`crate::Master`] takes inputs and fills an [`Outbox`].

use std::collections::BTreeSet;
use std::sync::Arc;

use allocator::policies::Policies;
use base::{FrameworkId, Pid, TaskId};
use cores::{CallError, RequestId, StreamId};
use protos::mesos::{KillPolicy, master, scheduler};

use crate::message::{Message, Outgoing};
use crate::registry::RegistryOp;
use crate::snapshot::Snapshot;

/// An event that the master's core handles.
#[derive(Clone, Debug)]
pub enum Input {
    /// A libprocess message for one of the master's processes.
    Message {
        /// Sender of the message, as it names itself.
        from: Pid,
        /// Contents of the message.
        message: Message,
    },
    /// A peer starts to authenticate; the conversation is led by an [`crate::Authenticator`].
    Authenticating {
        /// Process that is to be authenticated.
        pid: Pid,
        /// Number of the conversation.
        attempt: u64,
    },
    /// A conversation has ended.
    Authenticated {
        /// Process that was to be authenticated.
        pid: Pid,
        /// Number of the conversation.
        attempt: u64,
        /// Principal of the process, or `None` if it is not authenticated.
        principal: Option<Arc<str>>,
    },
    /// The connection of a linked process is broken; the link is removed.
    Exited {
        /// Process that was linked.
        pid: Pid,
    },
    /// A SUBSCRIBE call by HTTP that passed the checks of docs/mesos/scheduler-api.md up to row 13 and 5.2. It is
    /// answered by [`Output::OpenStream`], and everything else is written to that stream.
    Subscribe {
        /// Request to answer.
        request: RequestId,
        /// Number under which the body of the answer is opened as a stream.
        stream: StreamId,
        /// Text of the `Mesos-Stream-Id` header that the shell generated: a UUID in lower case.
        stream_text: Arc<str>,
        /// The call, with `subscribe`.
        call: Box<scheduler::Call>,
        /// Authenticated principal, if there is one.
        principal: Option<Arc<str>>,
    },
    /// Any other scheduler call by HTTP that passed the checks of docs/mesos/scheduler-api.md up to row 12 and 5.2. It
    /// is answered by [`Output::Respond`] or [`Output::Refuse`].
    SchedulerCall {
        /// Request to answer.
        request: RequestId,
        /// Value of the `Mesos-Stream-Id` header, if there is one.
        stream_id: Option<Arc<str>>,
        /// The call to carry out.
        call: Box<scheduler::Call>,
        /// Authenticated principal, if there is one.
        principal: Option<Arc<str>>,
    },
    /// The client of a stream has disconnected.
    StreamClosed {
        /// Stream that was closed.
        stream: StreamId,
    },
    /// An operator call that changes state (the shell answers the others from a snapshot), or a legacy endpoint that
    /// does the same. It is answered by [`Output::Respond`].
    OperatorCall {
        /// Request to answer.
        request: RequestId,
        /// The call, valid by docs/mesos/operator-api.md.
        call: Box<master::Call>,
        /// Authenticated principal, if there is one.
        principal: Option<Arc<str>>,
    },
    /// An operator replaces the policies of offers and refusals. It is answered by [`Output::Respond`].
    UpdatePolicies {
        /// Request to answer.
        request: RequestId,
        /// All policies; settings that are not given in them have their defaults.
        policies: Box<Policies>,
    },
    /// An operator kills one task of a framework. It is answered by [`Output::Respond`].
    KillTask {
        /// Request to answer.
        request: RequestId,
        /// Task to kill, with an optional kill policy.
        kill: Box<KillTask>,
        /// Authenticated principal, if there is one.
        principal: Option<Arc<str>>,
    },
    /// A SUBSCRIBE call of the operator API. It is answered by [`Output::OpenStream`].
    OperatorSubscribe {
        /// Request to answer.
        request: RequestId,
        /// Number under which the body of the answer is opened as a stream.
        stream: StreamId,
        /// Authenticated principal, if there is one.
        principal: Option<Arc<str>>,
    },
    /// The list of `--whitelist` has changed.
    Whitelist {
        /// Hostnames whose agents may be offered; `None` allows all.
        hostnames: Option<BTreeSet<String>>,
    },
    /// The time of [`next_wake`](cores::Core::next_wake) has passed.
    Wake,
}

/// Call of an operator to kill a task.
#[derive(Clone, Debug, PartialEq)]
pub struct KillTask {
    /// Framework of the task.
    pub framework: FrameworkId,
    /// Id of the task.
    pub task: TaskId,
    /// Kill policy that replaces the task's own; `None` keeps that.
    pub kill_policy: Option<KillPolicy>,
}

/// Process of the master that sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// Process `master`.
    Master,
    /// Process `slave-observer(n)`, which pings one agent.
    Observer(u64),
}

impl std::fmt::Display for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Sender::Master => f.write_str("master"),
            Sender::Observer(n) => write!(f, "slave-observer({n})"),
        }
    }
}

/// Result of a request that the master does not reject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// The request was carried out.
    Complete,
    /// The request was accepted; its effects follow.
    Accepted,
}

/// Answer to a request.
pub type Answer = Result<Done, CallError>;

/// An action for the shell. The outputs of an outbox are carried out in order.
#[derive(Clone, Debug)]
pub enum Output {
    /// Send a libprocess message.
    Send {
        /// Process that receives the message.
        to: Pid,
        /// Process of the master that sends the message.
        from: Sender,
        /// Message to send.
        message: Outgoing,
    },
    /// Keep a connection to this process's address, and report [`Input::Exited`] when it breaks or cannot be
    /// established.
    Link {
        /// Process to link.
        pid: Pid,
    },
    /// Remove the link to a process.
    Unlink {
        /// Process to unlink.
        pid: Pid,
    },
    /// Answer the request, and keep the body of the answer open as this stream.
    OpenStream {
        /// Request to answer.
        request: RequestId,
        /// Number of the stream.
        stream: StreamId,
    },
    /// Write one record to a scheduler's stream.
    SchedulerEvent {
        /// Stream to write to.
        stream: StreamId,
        /// The event, as v0 type.
        event: Arc<scheduler::Event>,
    },
    /// Write SUBSCRIBED, made from the snapshot, to an operator's stream. It states a heartbeat interval of 15 s.
    OperatorSubscribed {
        /// Stream to write to.
        stream: StreamId,
        /// State to report.
        snapshot: Arc<Snapshot>,
        /// Principal of the receiver, which limits what it may view.
        principal: Option<Arc<str>>,
    },
    /// Write one record to an operator's stream.
    OperatorEvent {
        /// Stream to write to.
        stream: StreamId,
        /// The event, as v0 type.
        event: Arc<master::Event>,
    },
    /// End a stream with its end marker, after everything that was written to it. No [`Input::StreamClosed`] follows.
    CloseStream {
        /// Stream to close.
        stream: StreamId,
    },
    /// Answer a request.
    Respond {
        /// Request to answer.
        request: RequestId,
        /// Result of the request.
        answer: Answer,
    },
    /// Answer a scheduler's call that was not carried out.
    Refuse {
        /// Request to answer.
        request: RequestId,
        /// Error to report.
        error: CallError,
        /// The call, as it was received.
        call: Box<scheduler::Call>,
    },
    /// Exit the process, because continuing would do harm.
    Exit {
        /// Reason for the exit.
        reason: String,
    },
}

impl Output {
    /// Returns the output that sends a message from the process `master`.
    pub(crate) fn send(to: &Pid, message: impl Into<Outgoing>) -> Output {
        Output::Send { to: to.clone(), from: Sender::Master, message: message.into() }
    }

    pub(crate) fn respond(request: RequestId, answer: Answer) -> Output {
        Output::Respond { request, answer }
    }
}

/// Results of a batch of inputs: registry operations to persist, then outputs.
pub type Outbox = cores::Outbox<RegistryOp, Output>;
