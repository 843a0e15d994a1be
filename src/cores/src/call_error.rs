//! Why a core rejects a request. Cores do not know HTTP: the shell maps each kind to a status.

/// Why a request is rejected. `Display` is the text for the client, in Mesos's words where Mesos has a text; empty if
/// the kind says everything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{text}", .attempt.map(|attempt| format!("{attempt}: ")).unwrap_or_default())]
pub struct CallError {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// What failed, such as `Failed to remove quota`, where Mesos's words differ by endpoint; precedes the text.
    pub attempt: Option<&'static str>,
    /// The reason, for the client.
    pub text: String,
    /// The rule of the access control lists that forbids it, for the audit log; clients do not see it.
    pub rule: Option<String>,
}

/// Kinds of errors of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request breaks a rule, or names a framework, an executor or an agent that does not exist.
    Invalid,
    /// The sender may not make it.
    Forbidden,
    /// Its object does not exist.
    NotFound,
    /// The present state does not permit it.
    Conflict,
    /// It cannot be carried out.
    Failed,
    /// The daemon does not implement it.
    Unimplemented,
    /// The daemon cannot carry it out yet, or not at present; the client may try again.
    Unavailable,
}

impl CallError {
    /// An error of `kind`, with the text for the client.
    pub fn new(kind: ErrorKind, text: impl Into<String>) -> CallError {
        CallError { kind, attempt: None, text: text.into(), rule: None }
    }

    /// The access control lists forbid the request by `rule`.
    pub fn forbidden(rule: impl Into<String>) -> CallError {
        CallError { rule: Some(rule.into()), ..CallError::new(ErrorKind::Forbidden, "") }
    }

    /// The request is invalid.
    pub fn invalid(text: impl Into<String>) -> CallError {
        CallError::new(ErrorKind::Invalid, text)
    }
}
