//! A worker: the process beside one query's task. It reads the stream, keeps to the cores that it was given, and talks
//! with the scheduler.
//!
//! It decides nothing: configuration and cores are orders, and a video that cannot be read is a message.

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
pub(crate) use link::{LINE_MAX, Reply, Said};
pub use pace::Pace;

/// Limit of findings that wait to be reported; the worker waits when there are more.
const FINDINGS_MAX: usize = 20_000;
/// About how wide a picture is that is sent, in pixels.
const PICTURE_WIDTH: usize = 480;

/// The address of a worker's scheduler, and the worker's identity.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// `host:port` of the scheduler, or `tls://host:port`.
    pub driver: String,
    /// The task that it is.
    pub task: String,
    /// What it proves itself with.
    pub token: String,
}

/// Why a worker ends before its stream.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// No scheduler answers.
    #[error("no scheduler at {driver} for {seconds:.0} s: {why}")]
    NoScheduler {
        /// The address of the driver.
        driver: String,
        /// For how long it was tried.
        seconds: f64,
        /// What happened last.
        why: String,
    },
    /// The scheduler has no such task.
    #[error("the scheduler does not know task {0}")]
    Unwanted(String),
    /// The video.
    #[error("{0}")]
    Video(String),
}

/// What the thread that works and the one that talks share.
#[derive(Debug)]
struct Shared {
    /// When the stream began, by this machine's [`clock`].
    began: f64,
    state: Mutex<Exchange>,
    changed: Condvar,
}

#[derive(Debug)]
struct Exchange {
    orders: Orders,
    report: Report,
    findings: Vec<Finding>,
    /// Whether a picture is wanted, and the picture: a PNG file.
    wanted: bool,
    picture: Option<Vec<u8>>,
    /// What viewers want, from when on the next picture is wanted, and the last one.
    viewers: show::Wanted,
    show_after: f64,
    seen: Option<show::Seen>,
    /// The work is not needed any more.
    stop: bool,
}

impl Shared {
    fn new(start: &Start) -> Arc<Shared> {
        let report = Report { position: start.position, ..Default::default() };
        let state = Mutex::new(Exchange {
            orders: start.orders,
            report,
            findings: Vec::new(),
            wanted: false,
            picture: None,
            viewers: show::Wanted::default(),
            show_after: 0.0,
            seen: None,
            stop: false,
        });
        Arc::new(Shared { began: clock() - start.age, state, changed: Condvar::new() })
    }

    /// How far behind its stream a worker at this position is, in seconds.
    fn lag(&self, position: f64) -> f64 {
        (clock() - self.began - position).max(0.0)
    }

    /// Draws what is seen, if a picture was asked for, and hands it over for live views.
    fn draw(&self, frame: &Frame, tracks: &[Track], seconds: f64, scope: &Scope) {
        self.show(frame, tracks, seconds, clock());
        if !std::mem::take(&mut self.lock().wanted) {
            return;
        }
        let mut frame = shrink(frame, (frame.width() / PICTURE_WIDTH).max(1) as u32).into_owned();
        annotate(&mut frame, tracks, seconds, |_| None, &format!("{seconds:.1} s"));
        draw_scope(&mut frame, scope);
        let picture = png(&frame).ok();
        self.lock().picture = picture;
        self.changed.notify_all();
    }

    /// A panic while the lock is held leaves nothing half done.
    fn lock(&self) -> MutexGuard<'_, Exchange> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something changes, or for so long.
    fn wait(&self, seconds: f64) {
        let time = Duration::from_secs_f64(seconds.clamp(0.001, 0.5));
        drop(self.changed.wait_timeout(self.lock(), time));
    }
}

/// A worker in this process without a scheduler: for measurements without a cluster.
#[derive(Debug)]
pub struct HandWorker {
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl HandWorker {
    /// Begins to work.
    pub fn start(start: Start) -> HandWorker {
        let shared = Shared::new(&start);
        let theirs = shared.clone();
        let thread = std::thread::spawn(move || stream::work(&start, &theirs));
        HandWorker { shared, thread: Some(thread) }
    }

    /// Tells it what it may use.
    pub fn order(&self, orders: Orders) {
        self.shared.lock().orders = orders;
        self.shared.changed.notify_all();
    }

    /// Its current report.
    pub fn report(&self) -> Report {
        let mut report = self.shared.lock().report.clone();
        report.lag = self.shared.lag(report.position);
        report
    }

    /// What it found since the last look.
    pub fn findings(&self) -> Vec<Finding> {
        std::mem::take(&mut self.shared.lock().findings)
    }
}

impl Drop for HandWorker {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Waits until a worker reports that, for a minute at most.
#[cfg(test)]
pub(crate) fn wait_for(worker: &HandWorker, is: &dyn Fn(&Report) -> bool) {
    let until = clock() + 60.0;
    while !is(&worker.report()) {
        assert!(clock() < until, "{:?}", worker.report());
        worker.shared.wait(0.01);
    }
}

/// Works until the stream ends, the video cannot be read, or the query has ended or moved.
///
/// # Errors
/// Why it ended before its stream. The scheduler has been notified if possible.
pub fn run(options: &WorkerOptions) -> Result<(), WorkerError> {
    let Some((mut link, start)) = link::Link::open(options)? else { return Ok(()) };
    let shared = Shared::new(&start);
    let work = {
        let (shared, start) = (shared.clone(), start.clone());
        std::thread::spawn(move || stream::work(&start, &shared))
    };
    let talked = link.talk(&shared, &start);
    shared.lock().stop = true;
    shared.changed.notify_all();
    let worked = work.join();
    talked?;
    match shared.lock().report.failure.take() {
        Some(why) => Err(WorkerError::Video(why)),
        None if worked.is_err() => Err(WorkerError::Video("the worker broke down".to_owned())),
        None => Ok(()),
    }
}
