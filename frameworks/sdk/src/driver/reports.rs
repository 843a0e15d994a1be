//! Carries reports from the driver's asynchronous tasks to the driver. Reports of tasks that have been closed are
//! dropped.

use std::convert::Infallible;

use tokio::sync::mpsc;
use wire::client::{Address, ClientError};
use wire::http::StatusCode;

use super::pipeline::PipelineError;
use crate::v1::scheduler::{self, Call};

/// A report of one of the driver's asynchronous tasks.
#[derive(Debug)]
pub(super) enum Report {
    /// The master answered SUBSCRIBE with a stream.
    Opened(Stream),
    /// An event arrived on the stream.
    Event(Box<scheduler::Event>),
    /// There is no stream, or no longer one. A further attempt may succeed.
    Lost(ConnectionError),
    /// The master refused SUBSCRIBE for good; the text is its reason.
    Rejected(String),
    /// The master refused a call; the text is its reason.
    Refused(Box<Call>, String),
}

/// Reason why there is no event stream.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectionError {
    /// No leader was found, and the reason is not known yet.
    #[error("no leading master is known yet")]
    NoMaster,
    /// No leader was found; the text is the detector's reason.
    #[error("{0}")]
    Detection(String),
    /// The connection of the event stream failed.
    #[error(transparent)]
    Stream(#[from] ClientError),
    /// The connection on which calls are sent failed.
    #[error(transparent)]
    Calls(#[from] PipelineError),
    /// The masters redirected the subscription too often.
    #[error("{0} and others name each other as the leader")]
    Redirects(Address),
    /// The master answered SUBSCRIBE with a transient error.
    #[error("{address} answered SUBSCRIBE with {status}: {text}")]
    Answer {
        /// Address of the master.
        address: Address,
        /// Status of the response.
        status: StatusCode,
        /// Body of the response.
        text: String,
    },
    /// The master ended the stream.
    #[error("the master ended the stream")]
    Ended,
    /// The driver has ended and receives no more reports.
    #[error("the driver has ended")]
    DriverEnded,
}

/// An open event stream: its master, and the stream id that the calls of the subscription must have.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) master: Address,
    pub(super) id: String,
}

/// The sending end of a [`ReportReceiver`], for the tasks of one subscription.
#[derive(Clone, Debug)]
pub(super) struct ReportSender {
    generation: u64,
    sender: mpsc::Sender<(u64, Report)>,
}

/// The receiving end, at the driver.
#[derive(Debug)]
pub(super) struct ReportReceiver {
    generation: u64,
    sender: mpsc::Sender<(u64, Report)>,
    receiver: mpsc::Receiver<(u64, Report)>,
}

impl ReportSender {
    /// Sends a report to the driver. Returns `None` if the driver is gone.
    pub(super) async fn send(&self, report: Report) -> Option<()> {
        self.sender.send((self.generation, report)).await.ok()
    }
}

impl ReportReceiver {
    /// Creates a queue that holds this many reports; senders wait while it is full.
    pub(super) fn new(waiting_max: usize) -> ReportReceiver {
        let (sender, receiver) = mpsc::channel(waiting_max);
        ReportReceiver { generation: 0, sender, receiver }
    }

    /// Returns a sending end for a task of the current generation.
    pub(super) fn sender(&self) -> ReportSender {
        ReportSender { generation: self.generation, sender: self.sender.clone() }
    }

    /// Closes the queue: senders no longer wait.
    pub(super) fn close(&mut self) {
        self.receiver.close();
    }

    /// Waits for the next report of the current generation and returns it. Cancelling the future loses no report.
    pub(super) async fn next(&mut self) -> Report {
        loop {
            match self.receiver.recv().await {
                Some((generation, report)) if generation == self.generation => return report,
                Some(_) => {}
                // This happens only after `close`, since the queue holds a sender itself.
                None => match std::future::pending::<Infallible>().await {},
            }
        }
    }

    /// Returns the next report of the current generation if one is queued.
    pub(super) fn try_next(&mut self) -> Option<Report> {
        loop {
            let (generation, report) = self.receiver.try_recv().ok()?;
            if generation == self.generation {
                return Some(report);
            }
        }
    }

    /// Starts a new generation; reports of older generations are dropped.
    pub(super) fn renew(&mut self) {
        self.generation += 1;
    }
}
