//! The task that sends calls, one after the other in their order, over a connection of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use wire::client::Client;

use super::inbox::{Inbox, News, Stream};
use super::reader::{PATH, STREAM_ID, chain};
use super::{Caller, Encoding};
use crate::v1::scheduler::Call;

/// While more calls than this wait to be sent, the scheduler gets no events that would make it call more.
const WAITING_MAX: usize = 1024;

/// The queue to the task. Dropping it ends the task at once; see [`finish`](Sender::finish).
pub(super) struct Sender {
    queue: Option<mpsc::UnboundedSender<Call>>,
    load: Arc<Load>,
    task: JoinHandle<()>,
}

/// How many calls wait, and when that has changed.
#[derive(Default)]
struct Load {
    waiting: AtomicUsize,
    progress: Notify,
}

impl Sender {
    /// Starts the task for the calls of this subscription.
    pub(super) fn start(stream: Stream, caller: &Caller, inbox: Inbox) -> Sender {
        let (queue, waiting) = mpsc::unbounded_channel();
        let client = caller.client(stream.master);
        let load = Arc::new(Load::default());
        let task = tokio::spawn(work(client, caller.encoding, stream.id, waiting, load.clone(), inbox));
        Sender { queue: Some(queue), load, task }
    }

    /// Queues a call. It is dropped if the task has ended: the loss of the connection is told by then.
    pub(super) fn send(&self, call: Call) {
        if self.queue.as_ref().is_some_and(|queue| queue.send(call).is_ok()) {
            self.load.waiting.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether too many calls wait.
    pub(super) fn is_full(sender: Option<&Sender>) -> bool {
        sender.is_some_and(|s| s.load.waiting.load(Ordering::Relaxed) > WAITING_MAX && !s.task.is_finished())
    }

    /// Returns when a full queue has shrunk.
    pub(super) async fn progress(sender: Option<&Sender>) {
        match sender.filter(|_| Sender::is_full(sender)) {
            Some(sender) => sender.load.progress.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Lets the calls that wait be sent, for this long at most.
    pub(super) async fn finish(mut self, within: Duration) {
        self.queue = None;
        let _ = tokio::time::timeout(within, &mut self.task).await;
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn work(
    mut client: Client,
    encoding: Encoding,
    stream_id: String,
    mut calls: mpsc::UnboundedReceiver<Call>,
    load: Arc<Load>,
    inbox: Inbox,
) {
    while let Some(call) = calls.recv().await {
        let (media, body) = (encoding.media_type(), encoding.encode(&call));
        let answer = client.post(PATH, media, media, &[(STREAM_ID, &stream_id)], body).await;
        load.waiting.fetch_sub(1, Ordering::Relaxed);
        load.progress.notify_one();
        match answer {
            Ok(reply) if reply.status.is_success() => {}
            Ok(reply) => {
                let why = format!("{}: {}", reply.status, reply.text());
                inbox.tell(News::Refused(Box::new(call), why)).await;
            }
            Err(error) => {
                inbox.tell(News::Lost(chain(&error))).await;
                return;
            }
        }
    }
}
