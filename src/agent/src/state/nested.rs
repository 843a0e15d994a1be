//! State of containers that are not executors': nested ones, sessions and standalone ones.

use cores::RequestId;
use protos::mesos as pb;

/// A container that is not an executor's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nested {
    /// Absolute path of the sandbox; empty for a session, which uses its parent's.
    pub(crate) sandbox: String,
    /// Environment variables of the container, which a session in it inherits.
    pub(crate) environment: Vec<(String, String)>,
    /// Variables whose values are secrets that are still to be resolved.
    pub(crate) secrets: Vec<(String, pb::Secret)>,
    /// Capabilities and seccomp settings of the container as requested, which a session in it inherits.
    pub(crate) rights: Option<pb::LinuxInfo>,
    /// Whether the container is a session.
    pub(crate) session: bool,
    /// Launch request that is answered when the container has started.
    pub(crate) launching: Option<RequestId>,
    /// Requests that wait for the end of the container.
    pub(crate) waiting: Vec<(RequestId, Wait)>,
    /// Wait status of the first process, once the container has ended; the inner `None` if the status is unknown.
    pub(crate) ended: Option<Option<i32>>,
    /// Limit that the container has exceeded, if it was destroyed for that.
    pub(crate) limited: Option<Limited>,
}

/// An exceeded limit: reason, message, and the resources in use.
pub(crate) type Limited = (pb::task_status::Reason, String, Vec<pb::Resource>);

/// Type of the call that waits for a container, and so of the response.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    Container,
    NestedContainer,
}
