//! The error when a core rejects a request. Cores do not know HTTP: the shell maps each kind to a status.

/// An error of a request. `Display` is the text for the client, in Mesos's words where Mesos has a text; it is empty if
/// the kind says everything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{text}", .attempt.map(|attempt| format!("{attempt}: ")).unwrap_or_default())]
pub struct CallError {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The operation that failed, such as `Failed to remove quota`, where Mesos's words differ by endpoint; it precedes
    /// the text.
    pub attempt: Option<&'static str>,
    /// The reason of the error, for the client.
    pub text: String,
    /// Rule of the access control lists that denies the request, for the audit log; clients do not see it.
    pub rule: Option<String>,
}

/// Kinds of errors of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request breaks a rule, or names a framework, an executor or an agent that does not exist.
    Invalid,
    /// The sender is not authorized to make the request.
    Forbidden,
    /// The object of the request does not exist.
    NotFound,
    /// The current state does not permit the request.
    Conflict,
    /// The request is valid, and carrying it out failed.
    Failed,
    /// The daemon does not implement the request.
    Unimplemented,
    /// The daemon cannot carry out the request yet, or not at present; the client may try again.
    Unavailable,
}

impl CallError {
    /// Creates an error of `kind`, with the text for the client.
    pub fn new(kind: ErrorKind, text: impl Into<String>) -> CallError {
        CallError { kind, attempt: None, text: text.into(), rule: None }
    }

    /// Creates the error of a request that `rule` of the access control lists denies.
    pub fn forbidden(rule: impl Into<String>) -> CallError {
        CallError { rule: Some(rule.into()), ..CallError::new(ErrorKind::Forbidden, "") }
    }

    /// Creates the error of an invalid request.
    pub fn invalid(text: impl Into<String>) -> CallError {
        CallError::new(ErrorKind::Invalid, text)
    }
}
