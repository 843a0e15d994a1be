//! Errors of checks: a check that breaks a rule, and a probe that cannot be started.

use std::io;

use containers::SpawnError;

use crate::process::{NoValue, TaskError};

/// An error of a check that cannot be performed.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidCheck {
    #[error("no {0}")]
    Missing(&'static str),
    #[error("unknown type")]
    UnknownType,
    #[error("the path '{}' has characters that no request can have", .0.escape_debug())]
    Path(String),
    #[error("{0} is not a port")]
    Port(u32),
    #[error(transparent)]
    Malformed(#[from] prost::DecodeError),
    #[error(transparent)]
    Command(#[from] TaskError),
    #[error(transparent)]
    NoValue(#[from] NoValue),
}

/// An error of a probe that could not be started.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    #[error("not HTTP")]
    NotHttp,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Spawn(#[from] SpawnError),
}
