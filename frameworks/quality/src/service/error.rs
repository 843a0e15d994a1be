//! Errors of the service and of workers.

use std::io;

use crate::evaluate::EvaluateError;
use crate::frame::FrameError;
use crate::input::InputError;
use crate::job::SourceError;

/// An error of the service or of a worker.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or a socket failed.
    #[error("{what}")]
    Io {
        /// Operation that failed.
        what: String,
        /// Error of the system.
        source: io::Error,
    },
    /// A job is not accepted; the text is the reason.
    #[error("{0}")]
    Refused(String),
    /// No job has this name.
    #[error("there is no job '{0}'")]
    NoJob(String),
    /// No job of this name runs.
    #[error("there is no job '{0}' that runs")]
    NotRunning(String),
    /// A job's data is not available.
    #[error("job '{job}'")]
    Data {
        /// Name of the job.
        job: String,
        /// Cause of the error.
        source: SourceError,
    },
    /// A data file does not fit its model.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A model cannot be evaluated.
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    /// The scheduler has ended.
    #[error("the scheduler does not answer")]
    Scheduler(#[from] sdk::AskError),
    /// The scheduler ended unexpectedly; the text is the reason.
    #[error("{0}")]
    Ended(String),
    /// The system provides no random numbers.
    #[error("a token cannot be created")]
    Token(#[source] getrandom::Error),
    /// The bytes from a connection are not a frame.
    #[error("a message between the driver and this worker is invalid")]
    Frame(#[from] FrameError),
}

impl Error {
    pub(super) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let what = what.into();
        move |source| Error::Io { what, source }
    }
}
