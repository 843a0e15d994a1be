//! Reports of the driver's tasks to it. Reports of tasks that have been closed are dropped.

use std::convert::Infallible;

use tokio::sync::mpsc;
use wire::client::{Address, ClientError};
use wire::http::StatusCode;

use super::pipeline::Broken;
use crate::v1::scheduler::{self, Call};

/// A report of a task.
#[derive(Debug)]
pub(super) enum News {
    /// The master answered SUBSCRIBE with a stream.
    Opened(Stream),
    /// A record came.
    Event(Box<scheduler::Event>),
    /// There is no stream (any more). Trying again may help.
    Lost(Lost),
    /// The master refused SUBSCRIBE, and will again.
    Rejected(String),
    /// The master refused a call.
    Refused(Box<Call>, String),
}

/// Why there is no stream.
#[derive(Debug, thiserror::Error)]
pub(super) enum Lost {
    /// No leader was found, and the reason is not known yet.
    #[error("no leading master is known yet")]
    NoMaster,
    /// No leader was found; why, in the detector's words.
    #[error("{0}")]
    Detection(String),
    /// The connection of the stream.
    #[error(transparent)]
    Stream(#[from] ClientError),
    /// The connection of the calls.
    #[error(transparent)]
    Calls(#[from] Broken),
    /// Too many redirects.
    #[error("{0} and others name each other as the leader")]
    Redirects(Address),
    /// The master answered SUBSCRIBE with a transient error.
    #[error("{address} answered SUBSCRIBE with {status}: {text}")]
    Answer {
        /// The master.
        address: Address,
        /// Its status.
        status: StatusCode,
        /// The body.
        text: String,
    },
    /// The stream has ended.
    #[error("the master ended the stream")]
    Ended,
    /// The driver receives no more news.
    #[error("the driver has ended")]
    Unheard,
}

/// An open stream: where it comes from, and the id that other calls must name.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) master: Address,
    pub(super) id: String,
}

/// Where the tasks of one subscription put their news.
#[derive(Clone, Debug)]
pub(super) struct Inbox {
    generation: u64,
    sender: mpsc::Sender<(u64, News)>,
}

/// Where the driver reads them.
#[derive(Debug)]
pub(super) struct Mailbox {
    generation: u64,
    sender: mpsc::Sender<(u64, News)>,
    receiver: mpsc::Receiver<(u64, News)>,
}

impl Inbox {
    /// Tells the driver. `None` when the driver is gone.
    pub(super) async fn tell(&self, news: News) -> Option<()> {
        self.sender.send((self.generation, news)).await.ok()
    }
}

impl Mailbox {
    /// A mailbox for that many reports; a sender waits while it is full.
    pub(super) fn new(waiting_max: usize) -> Mailbox {
        let (sender, receiver) = mpsc::channel(waiting_max);
        Mailbox { generation: 0, sender, receiver }
    }

    /// An entrance for a task of this generation.
    pub(super) fn inbox(&self) -> Inbox {
        Inbox { generation: self.generation, sender: self.sender.clone() }
    }

    /// Closes the mailbox; senders do not wait any more.
    pub(super) fn close(&mut self) {
        self.receiver.close();
    }

    /// The next news of the newest generation. May be cancelled without loss.
    pub(super) async fn next(&mut self) -> News {
        loop {
            match self.receiver.recv().await {
                Some((generation, news)) if generation == self.generation => return news,
                Some(_) => {}
                // Only after `close`: the mailbox holds a sender itself.
                None => match std::future::pending::<Infallible>().await {},
            }
        }
    }

    /// The next news of the newest generation, if one is there.
    pub(super) fn try_next(&mut self) -> Option<News> {
        loop {
            let (generation, news) = self.receiver.try_recv().ok()?;
            if generation == self.generation {
                return Some(news);
            }
        }
    }

    /// Begins a new generation; news of older ones are dropped.
    pub(super) fn renew(&mut self) {
        self.generation += 1;
    }
}
