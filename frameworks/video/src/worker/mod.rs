//! A worker: the process of one query's task. It processes the stream, keeps to the cores that it was given, and
//! reports to the scheduler.
//!
//! It decides nothing: configuration and cores are orders, and a video that cannot be read is reported.

mod link;
mod live;
mod pace;
mod sampler;
mod show;
mod stream;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::monotonic as clock;
use crate::core::{Orders, Report, Start};
use crate::frame::Frame;
use crate::output::{annotate, draw_scope, png};
use crate::pipeline::{Finding, Scope};
use crate::vision::{Track, shrink};

pub use link::REPORT_EVERY;
pub(crate) use link::{LINE_MAX, Reply, WorkerMessage};
pub use pace::Pace;

/// Maximum number of findings that are not reported yet; the worker waits when there are more.
const FINDINGS_MAX: usize = 20_000;
/// Approximate width of a requested picture, in pixels.
const PICTURE_WIDTH: usize = 480;

/// The address of a worker's scheduler, and the worker's identity.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Address of the scheduler, `host:port` or `tls://host:port`.
    pub driver: String,
    /// Id of the worker's task.
    pub task: String,
    /// Token with which the worker authenticates.
    pub token: String,
}

/// Reason why a worker ends before its stream.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// No scheduler answers at the address.
    #[error("no scheduler at {driver} for {seconds:.0} s: {why}")]
    NoScheduler {
        /// Address of the scheduler.
        driver: String,
        /// Time for which the worker tried, in seconds.
        seconds: f64,
        /// Last error.
        why: String,
    },
    /// The scheduler has no task with this id.
    #[error("the scheduler does not know task {0}")]
    Unwanted(String),
    /// The video cannot be read, for this reason.
    #[error("{0}")]
    Video(String),
}

/// State shared by the thread that processes the stream and the one that reports.
#[derive(Debug)]
struct Shared {
    /// Time at which the stream began, by this machine's [`clock`].
    began: f64,
    state: Mutex<SharedState>,
    changed: Condvar,
}

#[derive(Debug)]
struct SharedState {
    orders: Orders,
    report: Report,
    findings: Vec<Finding>,
    /// Whether a picture is requested, and the picture as a PNG file.
    picture_requested: bool,
    picture: Option<Vec<u8>>,
    /// Rungs that have viewers, the time from which on the next picture is due, and the last picture.
    viewers: show::ViewedRungs,
    show_after: f64,
    seen: Option<show::ExaminedPicture>,
    /// Whether the worker must stop.
    stop: bool,
}

impl Shared {
    fn new(start: &Start) -> Arc<Shared> {
        let report = Report { position: start.position, ..Default::default() };
        let state = Mutex::new(SharedState {
            orders: start.orders,
            report,
            findings: Vec::new(),
            picture_requested: false,
            picture: None,
            viewers: show::ViewedRungs::default(),
            show_after: 0.0,
            seen: None,
            stop: false,
        });
        Arc::new(Shared { began: clock() - start.age, state, changed: Condvar::new() })
    }

    /// Returns the lag of a worker at this position of its stream, in seconds.
    fn lag(&self, position: f64) -> f64 {
        (clock() - self.began - position).max(0.0)
    }

    /// Draws the present picture with its objects if it was requested, and passes it on for live views.
    fn draw(&self, frame: &Frame, tracks: &[Track], seconds: f64, scope: &Scope) {
        self.show(frame, tracks, seconds, clock());
        if !std::mem::take(&mut self.lock().picture_requested) {
            return;
        }
        let mut frame = shrink(frame, (frame.width() / PICTURE_WIDTH).max(1) as u32).into_owned();
        annotate(&mut frame, tracks, seconds, |_| None, &format!("{seconds:.1} s"));
        draw_scope(&mut frame, scope);
        let picture = png(&frame).ok();
        self.lock().picture = picture;
        self.changed.notify_all();
    }

    /// Locks the state. A panic while the lock is held leaves no inconsistent state, so poisoning is ignored.
    fn lock(&self) -> MutexGuard<'_, SharedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something changes, for at most this many seconds.
    fn wait(&self, seconds: f64) {
        let time = Duration::from_secs_f64(seconds.clamp(0.001, 0.5));
        drop(self.changed.wait_timeout(self.lock(), time));
    }
}

/// A worker in this process without a scheduler, for measurements without a cluster.
#[derive(Debug)]
pub struct LocalWorker {
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl LocalWorker {
    /// Starts a worker.
    pub fn start(start: Start) -> LocalWorker {
        let shared = Shared::new(&start);
        let theirs = shared.clone();
        let thread = std::thread::spawn(move || stream::work(&start, &theirs));
        LocalWorker { shared, thread: Some(thread) }
    }

    /// Sets the configuration and the cores of the worker.
    pub fn set_orders(&self, orders: Orders) {
        self.shared.lock().orders = orders;
        self.shared.changed.notify_all();
    }

    /// Returns the current report.
    pub fn report(&self) -> Report {
        let mut report = self.shared.lock().report.clone();
        report.lag = self.shared.lag(report.position);
        report
    }

    /// Returns the findings since the last call.
    pub fn findings(&self) -> Vec<Finding> {
        std::mem::take(&mut self.shared.lock().findings)
    }
}

impl Drop for LocalWorker {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Waits until the worker's report satisfies `is`, for a minute at most.
#[cfg(test)]
pub(crate) fn wait_for(worker: &LocalWorker, is: &dyn Fn(&Report) -> bool) {
    let until = clock() + 60.0;
    while !is(&worker.report()) {
        assert!(clock() < until, "{:?}", worker.report());
        worker.shared.wait(0.01);
    }
}

/// Runs a worker until the stream ends, the video cannot be read, or the query has ended or moved.
///
/// # Errors
/// Returns the reason why it ended before its stream. The scheduler has been notified if possible.
pub fn run(options: &WorkerOptions) -> Result<(), WorkerError> {
    let Some((mut link, start)) = link::Link::open(options)? else { return Ok(()) };
    let shared = Shared::new(&start);
    let work = {
        let (shared, start) = (shared.clone(), start.clone());
        std::thread::spawn(move || stream::work(&start, &shared))
    };
    let talked = link.report_until_done(&shared, &start);
    shared.lock().stop = true;
    shared.changed.notify_all();
    let worked = work.join();
    talked?;
    match shared.lock().report.failure.take() {
        Some(why) => Err(WorkerError::Video(why)),
        None if worked.is_err() => Err(WorkerError::Video("the worker panicked".to_owned())),
        None => Ok(()),
    }
}
