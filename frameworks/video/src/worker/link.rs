//! The worker's side of the protocol with the scheduler: each request and each answer is a line of JSON.
//!
//! A lost connection is reopened, and unanswered reports are repeated.

use std::io::{BufRead, BufReader, Read, Write};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sdk::driver::link::{self, BlockingStream};
use serde::{Deserialize, Serialize};

use super::show::{PictureSchedule, RungPicture};
use super::{Shared, SharedState, WorkerError, WorkerOptions, clock};
use crate::core::{Orders, Report, Start};
use crate::pipeline::Finding;

/// Interval between reports of a worker, in seconds.
pub const REPORT_EVERY: f64 = 0.4;
/// Time for which a new worker tries to reach its scheduler, in seconds.
const FIRST_PATIENCE: f64 = 30.0;
/// Longest wait for an answer.
const ANSWER: Duration = Duration::from_secs(10);
/// Maximum length of a line in bytes.
pub(crate) const LINE_MAX: u64 = 4 << 20;
/// Maximum number of findings in one line; the rest follows in the next.
const FINDINGS_A_LINE: usize = 5000;

/// A message from a worker to the scheduler.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum WorkerMessage {
    /// Identifies the worker. First message on every connection.
    Hello {
        /// Id of the worker's task.
        task: String,
        /// Token of the scheduler.
        token: String,
        /// Position in the stream in seconds; `None` if the worker has not begun.
        position: Option<f64>,
    },
    /// Reports progress and findings.
    Report {
        /// Progress of the worker.
        report: Report,
        /// Findings since the last report.
        findings: Vec<Finding>,
        /// A PNG file in base64, if a picture was requested.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        picture: Option<String>,
        /// Pictures for live views.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        shown: Vec<ShownPicture>,
    },
}

/// A picture for a live view.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShownPicture {
    /// Rung of the live view.
    pub(crate) rung: usize,
    /// Time of the picture, in seconds of the stream.
    pub(crate) seconds: f64,
    /// A JPEG file in base64.
    pub(crate) jpeg: String,
}

/// An answer of the scheduler.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Reply {
    /// Start, or continue, with this query.
    Start(Box<Start>),
    /// Use this configuration and this number of cores.
    Orders(Orders),
    /// The same, and send a picture.
    Draw(Orders),
    /// The same, with the pictures that are needed.
    Show {
        /// Configuration and cores to use from now on.
        orders: Orders,
        /// Whether a picture is requested.
        draw: bool,
        /// Rungs of the live view that have viewers.
        rungs: Vec<usize>,
    },
    /// The query has ended, or another worker has taken over.
    Over,
    /// The scheduler does not know the task.
    Unknown,
}

/// The connection to the scheduler.
pub(super) struct Link {
    options: WorkerOptions,
    stream: Option<BufReader<BlockingStream>>,
}

impl Link {
    /// Connects to the scheduler and identifies the worker. Returns `None` if there is no work.
    pub(super) fn open(options: &WorkerOptions) -> Result<Option<(Link, Start)>, WorkerError> {
        let mut link = Link { options: options.clone(), stream: None };
        let start = link.hello(None, FIRST_PATIENCE)?;
        Ok(start.map(|start| (link, start)))
    }

    /// Sends `Hello` until there is an answer, for at most this many seconds. Returns `None` if there is no work.
    fn hello(&mut self, position: Option<f64>, patience: f64) -> Result<Option<Start>, WorkerError> {
        let (since, mut pause) = (clock(), 0.1);
        loop {
            let why = match self.try_hello(position) {
                Ok(Reply::Start(start)) => return Ok(Some(*start)),
                Ok(Reply::Over) => return Ok(None),
                Ok(Reply::Unknown) => return Err(WorkerError::Unwanted(self.options.task.clone())),
                Ok(Reply::Orders(_) | Reply::Draw(_) | Reply::Show { .. }) => {
                    "the answer to hello is of another kind".to_owned()
                }
                Err(error) => error.to_string(),
            };
            let seconds = clock() - since;
            if seconds >= patience {
                return Err(WorkerError::NoScheduler { driver: self.options.driver.clone(), seconds, why });
            }
            nap(pause);
            pause = f64::min(pause * 1.5, 1.0);
        }
    }

    fn try_hello(&mut self, position: Option<f64>) -> std::io::Result<Reply> {
        self.stream = None;
        let stream = link::connect(&self.options.driver, ANSWER)?;
        stream.set_read_timeout(Some(ANSWER))?;
        stream.set_write_timeout(Some(ANSWER))?;
        self.stream = Some(BufReader::new(stream));
        let WorkerOptions { task, token, .. } = self.options.clone();
        self.ask(&WorkerMessage::Hello { task, token, position })
    }

    fn ask(&mut self, message: &WorkerMessage) -> std::io::Result<Reply> {
        let stream = self.stream.as_mut().ok_or_else(|| std::io::Error::other("not connected"))?;
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        stream.get_mut().write_all(&line)?;
        line.clear();
        stream.take(LINE_MAX).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_slice(&line)?)
    }

    /// Sends reports until the worker is done, or its query has ended or moved.
    pub(super) fn report_until_done(&mut self, shared: &Shared, start: &Start) -> Result<(), WorkerError> {
        let mut pictures = PictureSchedule::default();
        loop {
            let (report, findings, last) = take(shared);
            let picture = shared.lock().picture.take().map(|bytes| BASE64_STANDARD.encode(bytes));
            let shown = shown(&mut pictures, shared, start);
            let message = WorkerMessage::Report { report, findings, picture, shown };
            let answer = self.ask(&message);
            match answer {
                Ok(Reply::Orders(_) | Reply::Draw(_) | Reply::Show { .. }) => {
                    shared.follow(answer.ok());
                    shared.changed.notify_all();
                    if last {
                        return Ok(());
                    }
                }
                Ok(Reply::Over) => return Ok(()),
                Ok(Reply::Unknown) => return Err(WorkerError::Unwanted(self.options.task.clone())),
                Ok(Reply::Start(_)) | Err(_) => {
                    let WorkerMessage::Report { findings, .. } = message else { continue };
                    let position = {
                        let mut state = shared.lock();
                        state.findings.splice(0..0, findings);
                        state.report.position
                    };
                    let Some(again) = self.hello(Some(position), start.patience)? else { return Ok(()) };
                    shared.lock().orders = again.orders;
                    continue;
                }
            }
            let ended = |e: &SharedState| {
                e.report.done || e.report.failure.is_some() || e.picture.is_some() || e.seen.is_some()
            };
            let until = clock() + REPORT_EVERY;
            while clock() < until && !ended(&shared.lock()) {
                shared.wait(until - clock());
            }
        }
    }
}

/// Draws the last picture for viewers.
fn shown(pictures: &mut PictureSchedule, shared: &Shared, start: &Start) -> Vec<ShownPicture> {
    let (seen, viewers) = {
        let mut state = shared.lock();
        (state.seen.take(), state.viewers)
    };
    let Some(seen) = seen else { return Vec::new() };
    let drawn = pictures.draw(&seen, &viewers, &start.spec.scope, clock());
    let message = |shown: RungPicture| ShownPicture {
        rung: shown.rung,
        seconds: shown.seconds,
        jpeg: BASE64_STANDARD.encode(shown.jpeg),
    };
    drawn.into_iter().map(message).collect()
}

impl Shared {
    /// Applies the orders and requests of an answer.
    fn follow(&self, answer: Option<Reply>) {
        let (orders, draw, rungs) = match answer {
            Some(Reply::Orders(orders)) => (orders, false, Vec::new()),
            Some(Reply::Draw(orders)) => (orders, true, Vec::new()),
            Some(Reply::Show { orders, draw, rungs }) => (orders, draw, rungs),
            _ => return,
        };
        let mut state = self.lock();
        state.orders = orders;
        state.picture_requested |= draw;
        state.viewers = std::array::from_fn(|rung| rungs.contains(&rung));
    }
}

/// Returns the next report with its findings, and whether it is the last.
fn take(shared: &Shared) -> (Report, Vec<Finding>, bool) {
    let state = &mut *shared.lock();
    let many = state.findings.len().min(FINDINGS_A_LINE);
    let findings: Vec<Finding> = state.findings.drain(..many).collect();
    let mut report = state.report.clone();
    let all = state.findings.is_empty();
    report.lag = shared.lag(report.position);
    report.found = findings.len() as u64;
    // The end is reported with the last findings, not before them.
    report.done &= all;
    report.failure = report.failure.filter(|_| all);
    let last = report.done || report.failure.is_some();
    if report.done {
        report.lag = 0.0;
    }
    (report, findings, last)
}

#[expect(clippy::disallowed_methods, reason = "there is no state to wait for until the peer answers")]
fn nap(seconds: f64) {
    std::thread::sleep(Duration::from_secs_f64(seconds));
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::*;

    /// Runs a worker against a scheduler that answers every `Hello` with this reply. Returns the worker's result.
    fn answer(answer: &Reply) -> Result<(), WorkerError> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let driver = listener.local_addr().unwrap().to_string();
        let worker = std::thread::spawn(move || {
            run(&WorkerOptions { driver, task: "video-a-1.2".into(), token: "secret".into() })
        });
        let (stream, _) = listener.accept().unwrap();
        let mut stream = BufReader::new(stream);
        stream.read_line(&mut String::new()).unwrap();
        let mut line = serde_json::to_vec(answer).unwrap();
        line.push(b'\n');
        stream.get_mut().write_all(&line).unwrap();
        worker.join().unwrap()
    }

    #[test]
    fn a_worker_whose_query_is_over_succeeds_and_an_unknown_one_fails() {
        answer(&Reply::Over).unwrap();
        let error = answer(&Reply::Unknown).unwrap_err();
        assert_eq!(error.to_string(), "the scheduler does not know task video-a-1.2");
    }
}
