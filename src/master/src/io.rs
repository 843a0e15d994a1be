//! Inputs and outputs of the core.
//!
//! [`crate::Master::handle`] takes inputs and fills an [`Outbox`].

use std::collections::BTreeSet;
use std::sync::Arc;

use allocator::policies::Policies;
use base::{FrameworkId, Pid, TaskId};
use cores::{CallError, RequestId, StreamId};
use protos::mesos::{KillPolicy, master, scheduler};

use crate::message::{Message, Outgoing};
use crate::registry::RegistryOp;
use crate::snapshot::Snapshot;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// A libprocess message for a process of the master's.
    Message {
        /// The sender, as it names itself.
        from: Pid,
        /// The message.
        message: Message,
    },
    /// A peer begins to authenticate; the conversation is led by an [`crate::Authenticator`].
    Authenticating {
        /// The process that is to be authenticated.
        pid: Pid,
        /// The number of the conversation.
        attempt: u64,
    },
    /// A conversation is over.
    Authenticated {
        /// The process that it was about.
        pid: Pid,
        /// The number of the conversation.
        attempt: u64,
        /// The principal of the process; none: it has not proved one.
        principal: Option<Arc<str>>,
    },
    /// A linked process's connection is broken; the link is gone.
    Exited {
        /// The process that was linked.
        pid: Pid,
    },
    /// A SUBSCRIBE call by HTTP that passed the checks of docs/mesos/scheduler-api.md up to row 13 and 5.2.
    /// It is answered by [`Output::OpenStream`], and all else goes through that stream.
    Subscribe {
        /// The request to answer.
        request: RequestId,
        /// What the answer's body is to be called.
        stream: StreamId,
        /// The text of the `Mesos-Stream-Id` header that the shell made up: a UUID, lower case.
        stream_text: Arc<str>,
        /// The call, with `subscribe`.
        call: Box<scheduler::Call>,
        /// The authenticated principal, if there is one.
        principal: Option<Arc<str>>,
    },
    /// Any other scheduler call by HTTP that passed the checks of docs/mesos/scheduler-api.md up to row 12 and 5.2.
    /// It is answered by [`Output::Respond`] or [`Output::Refuse`].
    SchedulerCall {
        /// The request to answer.
        request: RequestId,
        /// The `Mesos-Stream-Id` header, if there is one.
        stream_id: Option<Arc<str>>,
        /// The call.
        call: Box<scheduler::Call>,
        /// The authenticated principal, if there is one.
        principal: Option<Arc<str>>,
    },
    /// The client of a stream, or its connection, is gone.
    StreamClosed {
        /// The stream.
        stream: StreamId,
    },
    /// An operator call that changes state (the shell answers the others from a snapshot), or a legacy endpoint that
    /// does the same. It is answered by [`Output::Respond`].
    OperatorCall {
        /// The request to answer.
        request: RequestId,
        /// The call, valid by docs/mesos/operator-api.md.
        call: Box<master::Call>,
        /// The authenticated principal, if there is one.
        principal: Option<Arc<str>>,
    },
    /// An operator replaces the policies of holding and refusal. It is answered by [`Output::Respond`].
    UpdatePolicies {
        /// The request to answer.
        request: RequestId,
        /// All policies; what is not named in them is as by default.
        policies: Box<Policies>,
    },
    /// An operator ends one task of a framework. It is answered by [`Output::Respond`].
    KillTask {
        /// The request to answer.
        request: RequestId,
        /// Which task, and how.
        kill: Box<KillTask>,
        /// The authenticated principal, if there is one.
        principal: Option<Arc<str>>,
    },
    /// A SUBSCRIBE call of the operator API. It is answered by [`Output::OpenStream`].
    OperatorSubscribe {
        /// The request to answer.
        request: RequestId,
        /// What the answer's body is to be called.
        stream: StreamId,
        /// The authenticated principal, if there is one.
        principal: Option<Arc<str>>,
    },
    /// The list of `--whitelist` has changed.
    Whitelist {
        /// The only hosts whose agents may be offered; none: all may.
        hostnames: Option<BTreeSet<String>>,
    },
    /// The time of [`crate::Master::next_wake`] has come.
    Wake,
}

/// The operator's call to end a task.
#[derive(Clone, Debug, PartialEq)]
pub struct KillTask {
    /// The framework of the task.
    pub framework: FrameworkId,
    /// The task.
    pub task: TaskId,
    /// Replaces the kill policy of the task.
    pub kill_policy: Option<KillPolicy>,
}

/// Which of the master's processes sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// `master`.
    Master,
    /// `slave-observer(n)`, which pings one agent.
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

/// The result of a request that the master does not reject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// It is carried out.
    Complete,
    /// It is accepted; its effects follow.
    Accepted,
}

/// The answer to a request.
pub type Answer = Result<Done, CallError>;

/// Something to be done by the shell, in order.
#[derive(Clone, Debug)]
pub enum Output {
    /// Send a libprocess message.
    Send {
        /// The receiver.
        to: Pid,
        /// From which of the master's processes.
        from: Sender,
        /// The message.
        message: Outgoing,
    },
    /// Keep a connection to this process's address and say [`Input::Exited`] when it breaks or cannot be made.
    Link {
        /// The process.
        pid: Pid,
    },
    /// That process does not matter any more.
    Unlink {
        /// The process.
        pid: Pid,
    },
    /// Answer the request, and keep the body of the answer open as this stream.
    OpenStream {
        /// The request.
        request: RequestId,
        /// Its stream.
        stream: StreamId,
    },
    /// Write one record to a scheduler's stream.
    SchedulerEvent {
        /// The stream.
        stream: StreamId,
        /// The event, as v0 type.
        event: Arc<scheduler::Event>,
    },
    /// Write SUBSCRIBED, made from the snapshot, to an operator's stream; 15 s is the heartbeat interval.
    OperatorSubscribed {
        /// The stream.
        stream: StreamId,
        /// The state to report.
        snapshot: Arc<Snapshot>,
        /// The principal of the receiver, which limits what it may view.
        principal: Option<Arc<str>>,
    },
    /// Write one record to an operator's stream.
    OperatorEvent {
        /// The stream.
        stream: StreamId,
        /// The event, as v0 type.
        event: Arc<master::Event>,
    },
    /// End a stream with its end marker, after what was written to it. No [`Input::StreamClosed`] follows.
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
    /// Answer a scheduler's call that has not been carried out.
    Refuse {
        /// The request.
        request: RequestId,
        /// The error.
        error: CallError,
        /// The call, as it came.
        call: Box<scheduler::Call>,
    },
    /// End the process: going on would do harm.
    Exit {
        /// The reason.
        reason: String,
    },
}

impl Output {
    /// A message of the process `master`.
    pub(crate) fn send(to: &Pid, message: impl Into<Outgoing>) -> Output {
        Output::Send { to: to.clone(), from: Sender::Master, message: message.into() }
    }

    pub(crate) fn respond(request: RequestId, answer: Answer) -> Output {
        Output::Respond { request, answer }
    }
}

/// What a batch of inputs has led to: registry operations, and what is to be done.
pub type Outbox = cores::Outbox<RegistryOp, Output>;
