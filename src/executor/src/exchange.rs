//! One call to the agent on a connection of its own, and its response.
//!
//! For calls that may take as long as a task, and similar ones; `link.rs` sends the executor API's calls.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::event::PollFlags;

use crate::environment::{Endpoint, Settings};
use crate::http::{AnswerReader, HttpError, Part, post};
use crate::socket::Socket;

/// Path of the agent API.
pub(crate) const PATH: &str = "/slave(1)/api/v1";
/// Maximum length of a response in bytes, far more than any of these calls has.
const BODY_LIMIT: usize = 1024 * 1024;

/// Response of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Returns the body of an error response as text.
    pub(crate) fn words(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// An error of a call that will have no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExchangeError {
    #[error("The connection is lost")]
    Lost(#[from] io::Error),
    #[error("The agent has closed the connection before its answer was complete")]
    Closed,
    #[error("The answer cannot be read")]
    Malformed(#[from] HttpError),
    #[error("The answer is longer than {BODY_LIMIT} bytes")]
    TooLong,
}

/// A call in progress.
#[derive(Debug)]
pub(crate) struct Exchange {
    socket: Socket,
    reader: AnswerReader,
    answer: Answer,
    complete: bool,
}

impl Exchange {
    /// Connects and sends the call `body`.
    pub(crate) fn open(settings: &Settings, body: &[u8]) -> io::Result<Exchange> {
        Exchange::send(&settings.endpoint, &post(PATH, &settings.host, settings.token.as_deref(), body))
    }

    /// Connects to `endpoint` and sends `request`.
    pub(crate) fn send(endpoint: &Endpoint, request: &[u8]) -> io::Result<Exchange> {
        let mut socket = Socket::open(endpoint)?;
        socket.send(request)?;
        let answer = Answer { status: 0, body: Vec::new() };
        Ok(Exchange { socket, reader: AnswerReader::new(), answer, complete: false })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.fd()
    }

    pub(crate) fn interest(&self) -> PollFlags {
        self.socket.interest()
    }

    /// Returns the status of the response, as soon as its head has been read.
    pub(crate) fn status(&self) -> Option<u16> {
        (self.answer.status != 0).then_some(self.answer.status)
    }

    /// Handles the result of a wait. Returns the response once it is complete.
    pub(crate) fn on_ready(&mut self, found: PollFlags) -> Result<Option<Answer>, ExchangeError> {
        let mut bytes = Vec::new();
        let open = self.socket.ready(found, &mut |received| bytes.extend_from_slice(received));
        let (answer, complete) = (&mut self.answer, &mut self.complete);
        self.reader.feed(&bytes, &mut |part| match part {
            Part::Head(status) => answer.status = status,
            Part::Data(data) => answer.body.extend_from_slice(data),
            Part::End => *complete = true,
        })?;
        if self.complete {
            return Ok(Some(self.answer.clone()));
        }
        if self.answer.body.len() > BODY_LIMIT {
            return Err(ExchangeError::TooLong);
        }
        if open? { Ok(None) } else { Err(ExchangeError::Closed) }
    }
}
