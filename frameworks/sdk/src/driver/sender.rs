//! The task that sends calls in order, on a connection of its own.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use wire::client::Address;

use super::pipeline::{Answer, Pipeline, PipelineError};
use super::reports::{Report, ReportSender, Stream};
use super::{Caller, Encoding};
use crate::v1::scheduler::Call;

/// Number of queued calls above which the scheduler receives no events, which would make it call more.
const WAITING_MAX: usize = 1024;
/// Maximum number of calls that are sent and not answered.
const SENT_MAX: usize = 256;
/// Maximum time for which a master may be silent while calls are unanswered.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// Queue of calls for the sending task. Dropping it ends the task at once; see [`finish`](Sender::finish).
pub(super) struct Sender {
    queue: Option<mpsc::UnboundedSender<Call>>,
    load: Arc<Load>,
    task: JoinHandle<()>,
}

/// Number of queued calls, and a notification of its changes.
#[derive(Default)]
struct Load {
    waiting: AtomicUsize,
    progress: Notify,
}

impl Sender {
    /// Starts the sending task for the calls of this subscription.
    pub(super) fn start(stream: Stream, caller: &Caller, reports: ReportSender) -> Sender {
        let (queue, waiting) = mpsc::unbounded_channel();
        let load = Arc::new(Load::default());
        let connection = CallConnection {
            head: caller.head(&stream),
            address: stream.master,
            encoding: caller.encoding,
            pipeline: None,
            sent: VecDeque::new(),
            load: load.clone(),
            reports,
        };
        let task = tokio::spawn(work(connection, waiting));
        Sender { queue: Some(queue), load, task }
    }

    /// Queues a call. It is dropped if the task has ended; the loss of the connection has been reported by then.
    pub(super) fn send(&self, call: Call) {
        // Counted first, since the response may arrive at once.
        self.load.waiting.fetch_add(1, Ordering::Relaxed);
        if self.queue.as_ref().is_none_or(|queue| queue.send(call).is_err()) {
            self.load.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Returns whether too many calls are queued.
    pub(super) fn is_full(sender: Option<&Sender>) -> bool {
        sender.is_some_and(|s| s.load.waiting.load(Ordering::Relaxed) > WAITING_MAX && !s.task.is_finished())
    }

    /// Waits until a full queue has become shorter.
    pub(super) async fn progress(sender: Option<&Sender>) {
        match sender.filter(|_| Sender::is_full(sender)) {
            Some(sender) => sender.load.progress.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Sends the calls that are queued, for `within` at most.
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

/// The connection of the sending task, and the calls on it that are not answered yet.
struct CallConnection {
    address: Address,
    /// Head of every request, up to the length of its body.
    head: String,
    encoding: Encoding,
    pipeline: Option<Pipeline>,
    sent: VecDeque<Call>,
    load: Arc<Load>,
    reports: ReportSender,
}

async fn work(mut connection: CallConnection, calls: mpsc::UnboundedReceiver<Call>) {
    if let Err(error) = connection.run(calls).await {
        connection.reports.send(Report::Lost(error.into())).await;
    }
}

impl CallConnection {
    /// Sends calls as they arrive, until there are no more and all are answered.
    async fn run(&mut self, mut calls: mpsc::UnboundedReceiver<Call>) -> Result<(), PipelineError> {
        let mut more = true;
        while more || !self.sent.is_empty() {
            tokio::select! {
                biased;
                answer = next_answer(self.pipeline.as_mut()) => match answer {
                    Ok(answer) if !self.sent.is_empty() => self.answered(&answer).await,
                    Err(error) if !self.sent.is_empty() => return Err(error),
                    // The master closed an idle connection: the next call opens another.
                    _ => self.pipeline = None,
                },
                call = calls.recv(), if more && self.sent.len() < SENT_MAX => match call {
                    Some(call) => self.send(call, &mut calls).await?,
                    None => more = false,
                },
                () = tokio::time::sleep(ANSWER_WITHIN), if !self.sent.is_empty() => {
                    return Err(PipelineError::Late(ANSWER_WITHIN));
                }
            }
        }
        Ok(())
    }

    /// Sends a call together with those that are queued already.
    async fn send(&mut self, call: Call, calls: &mut mpsc::UnboundedReceiver<Call>) -> Result<(), PipelineError> {
        if self.pipeline.is_none() {
            self.pipeline = Some(Pipeline::open(&self.address).await?);
        }
        let Some(pipeline) = &mut self.pipeline else { return Ok(()) };
        let mut next = Some(call);
        while let Some(call) = next {
            pipeline.put(&self.head, &self.encoding.encode(&call));
            self.sent.push_back(call);
            next = if self.sent.len() < SENT_MAX { calls.try_recv().ok() } else { None };
        }
        pipeline.flush().await
    }

    async fn answered(&mut self, answer: &Answer) {
        let Some(call) = self.sent.pop_front() else { return };
        self.load.waiting.fetch_sub(1, Ordering::Relaxed);
        self.load.progress.notify_one();
        if !answer.status.is_success() {
            let why = format!("{}: {}", answer.status, answer.text);
            self.reports.send(Report::Refused(Box::new(call), why)).await;
        }
    }
}

/// Waits for the next response on a connection; without a connection it waits forever.
async fn next_answer(pipeline: Option<&mut Pipeline>) -> Result<Answer, PipelineError> {
    match pipeline {
        Some(pipeline) => pipeline.answer().await,
        None => std::future::pending().await,
    }
}
