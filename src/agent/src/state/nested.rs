//! Containers that are not executors': nested ones, sessions and standalone ones.

use cores::RequestId;
use protos::mesos as pb;

/// A container that is not an executor's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nested {
    /// Its sandbox, absolute; empty for a session, which has its parent's.
    pub(crate) sandbox: String,
    /// Its variables: a session in it has them too.
    pub(crate) environment: Vec<(String, String)>,
    /// Those of its variables whose values are to be resolved.
    pub(crate) secrets: Vec<(String, pb::Secret)>,
    /// What it may do, as it was asked for: a session in it may do the same.
    pub(crate) rights: Option<pb::LinuxInfo>,
    /// Whether it is a session.
    pub(crate) session: bool,
    /// The launch that waits for its start.
    pub(crate) launching: Option<RequestId>,
    /// Requests that wait for its end.
    pub(crate) waiting: Vec<(RequestId, Wait)>,
    /// Set when it has ended: the status of its first process, if that is known.
    pub(crate) ended: Option<Option<i32>>,
    /// Why it was ended, if it used too much.
    pub(crate) limited: Option<Limited>,
}

/// Why a container was ended: the reason, in words, and what it used.
pub(crate) type Limited = (pb::task_status::Reason, String, Vec<pb::Resource>);

/// The response type that reports the end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    Container,
    NestedContainer,
}
