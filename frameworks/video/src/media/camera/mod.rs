//! Live sources: pictures as they arrive, with capture times. Lost sources are reconnected.
//!
//! One thread reads the source all the time, since a camera does not wait. Pictures that are not taken from the feed in
//! time are dropped, the oldest first, and counted.

mod connection;
mod device;
mod messages;
mod process;
mod record;
mod retry;
mod stamps;
mod uplink;

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use record::{Recording, record};
pub use retry::Retry;
pub use stamps::Stamps;

use super::source::{Camera, CameraKind};
use crate::clock;
use crate::frame::Frame;
use connection::Connection;
use process::NoPicture;

/// Number of pictures over which the frame rate is measured.
const RATE_OVER: usize = 64;

/// Limits of a feed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FeedOptions {
    /// Longest time until the first picture of a connection, in seconds.
    pub answer: f64,
    /// Longest time between two pictures, in seconds.
    pub stall: f64,
    /// Time for which a lost source is reconnected, in seconds; with 0 the feed ends when the source does.
    pub reconnect: f64,
    /// Maximum number of bytes of queued pictures.
    pub bytes: usize,
    /// Highest rung of an uplink that the reader has a use for, unless the address names one.
    pub most: Option<usize>,
}

impl Default for FeedOptions {
    fn default() -> FeedOptions {
        FeedOptions { answer: 15.0, stall: 10.0, reconnect: 3600.0, bytes: 48 << 20, most: None }
    }
}

/// State of a feed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FeedState {
    /// No picture has arrived on this connection yet.
    #[default]
    Connecting,
    /// Pictures arrive.
    Live,
    /// The source is lost and will be reconnected.
    Lost,
    /// The source has ended or was given up.
    Ended,
}

/// State and counters of a feed, for reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FeedStatus {
    /// State of the feed.
    pub state: FeedState,
    /// Reason why the source is lost or has ended, without credentials.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Number of connections that delivered a picture.
    pub connections: u32,
    /// Number of pictures that arrived.
    pub received: u64,
    /// Number of pictures that should have been examined and were dropped, since too many were queued.
    pub dropped: u64,
    /// Measured frame rate; 0 before there are two pictures.
    pub fps: f64,
}

/// A picture of a live source.
#[derive(Debug)]
pub struct Picture {
    /// Capture time, in seconds of this machine's monotonic clock.
    pub captured: f64,
    /// Number of the picture since the feed began.
    pub number: u64,
    /// Decoded picture.
    pub frame: Frame,
}

/// Result of a wait for the next picture.
#[derive(Debug)]
pub enum Next {
    /// The next picture arrived.
    Picture(Box<Picture>),
    /// No picture arrived in time.
    Nothing,
    /// The feed has ended.
    Ended,
}

/// A live source that is being read.
#[derive(Debug)]
pub struct Feed {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    camera: Camera,
    options: FeedOptions,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    status: FeedStatus,
    waiting: VecDeque<Picture>,
    bytes: usize,
    every: u64,
    /// Whether the feed ended with an error.
    failed: bool,
    stop: bool,
    /// Core-seconds of connections that have ended, and of the present one.
    used: (f64, f64),
    arrivals: VecDeque<f64>,
}

impl Feed {
    /// Starts to read a source. An address that cannot be reached is not an error here but a state of the feed.
    pub fn open(camera: &Camera, options: FeedOptions) -> Feed {
        let state = Mutex::new(State { every: 1, ..Default::default() });
        let shared = Arc::new(Shared { camera: camera.clone(), options, state, changed: Condvar::new() });
        let theirs = shared.clone();
        Feed { shared, thread: Some(std::thread::spawn(move || theirs.read())) }
    }

    /// Returns the next picture; waits for at most this long.
    pub fn next(&self, wait: Duration) -> Next {
        let mut state = self.shared.lock();
        if state.waiting.is_empty() && state.status.state != FeedState::Ended {
            let waited = self
                .shared
                .changed
                .wait_timeout_while(state, wait, |s| s.waiting.is_empty() && s.status.state != FeedState::Ended);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        match state.waiting.pop_front() {
            Some(picture) => {
                state.bytes -= picture.frame.bytes();
                Next::Picture(Box::new(picture))
            }
            None if state.status.state == FeedState::Ended => Next::Ended,
            None => Next::Nothing,
        }
    }

    /// Sets that only one of `every` pictures is needed from now on.
    pub fn every(&self, every: u32) {
        self.shared.lock().every = u64::from(every.max(1));
    }

    /// Returns the state and the counters of the feed.
    pub fn status(&self) -> FeedStatus {
        self.shared.lock().status.clone()
    }

    /// Returns whether the feed ended for another reason than the end of the source.
    pub fn failed(&self) -> bool {
        self.shared.lock().failed
    }

    /// Returns the core-seconds that were used to read and decode the source.
    pub fn used(&self) -> f64 {
        let (before, now) = self.shared.lock().used;
        before + now
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Locks the state. A panic while the lock is held leaves no inconsistent state, so poisoning is ignored.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) {
        let mut retry = Retry::new(self.options.reconnect);
        let mut stamps = Stamps::default();
        loop {
            let gap = self.connection(&mut stamps, &mut retry);
            stamps.restart();
            let (mut why, failed) = match gap {
                NoPicture::Stopped => return,
                NoPicture::Ended(None) => ("the source has ended".to_owned(), false),
                NoPicture::Ended(Some(error)) if self.camera.kind() == CameraKind::Device => {
                    (device::device_error(self.camera.secret(), &error), true)
                }
                NoPicture::Ended(Some(error)) => (self.camera.hide(&error), true),
                NoPicture::Silent => (self.silence(), true),
                NoPicture::Unreadable(what) => return self.end(self.camera.hide(&what), true),
            };
            let ends = !failed && (self.camera.kind() == CameraKind::Pipe || self.options.reconnect <= 0.0);
            let Some(pause) = retry.lost(clock::monotonic()).filter(|_| !ends) else {
                if failed && self.options.reconnect > 0.0 {
                    why = format!("{why}; stopped after {} attempts", retry.attempts());
                }
                return self.end(why, failed);
            };
            let mut state = self.lock();
            state.status.state = FeedState::Lost;
            state.status.message = format!("{why}; attempt {} in {pause:.1} s", retry.attempts());
            self.changed.notify_all();
            let until = Duration::from_secs_f64(pause);
            drop(self.changed.wait_timeout_while(state, until, |s| !s.stop));
        }
    }

    fn silence(&self) -> String {
        match self.lock().status.state {
            FeedState::Live => format!("no picture for {:.0} s", self.options.stall),
            _ => format!("no answer within {:.0} s", self.options.answer),
        }
    }

    fn end(&self, message: String, failed: bool) {
        let mut state = self.lock();
        state.status.state = FeedState::Ended;
        state.status.message = message;
        state.failed = failed;
        drop(state);
        self.changed.notify_all();
    }

    /// Reads one connection to its end. Returns why it ended.
    fn connection(&self, stamps: &mut Stamps, retry: &mut Retry) -> NoPicture {
        {
            let mut state = self.lock();
            if state.stop {
                return NoPicture::Stopped;
            }
            state.status.state = FeedState::Connecting;
        }
        let stop = || self.lock().stop;
        let deadline = clock::monotonic() + self.options.answer;
        let mut connection = match Connection::start(&self.camera, self.options.most, deadline, &stop) {
            Ok(connection) => connection,
            Err(gap) => return gap,
        };
        let mut deadline = deadline;
        let gap = loop {
            let arrival = match connection.next(deadline, &stop) {
                Ok(arrival) => arrival,
                Err(gap) => break gap,
            };
            let captured = stamps.capture(arrival.stamp, arrival.at);
            retry.reached();
            deadline = arrival.at + self.options.stall;
            self.arrived(captured, arrival.frame, connection.used());
        };
        let mut state = self.lock();
        state.used = (state.used.0 + state.used.1, 0.0);
        gap
    }

    fn arrived(&self, captured: f64, frame: Frame, used: f64) {
        let mut state = self.lock();
        let state = &mut *state;
        let status = &mut state.status;
        if status.state != FeedState::Live {
            status.state = FeedState::Live;
            status.connections += 1;
            status.message.clear();
            state.arrivals.clear();
        }
        let number = status.received;
        status.received += 1;
        state.used.1 = used;
        state.arrivals.push_back(captured);
        if state.arrivals.len() > RATE_OVER {
            state.arrivals.pop_front();
        }
        if let (Some(first), Some(last)) = (state.arrivals.front(), state.arrivals.back())
            && last > first
        {
            status.fps = (state.arrivals.len() - 1) as f64 / (last - first);
        }
        if number.is_multiple_of(state.every) {
            state.bytes += frame.bytes();
            state.waiting.push_back(Picture { captured, number, frame });
        }
        // The newest picture is always kept.
        while state.bytes > self.options.bytes && state.waiting.len() > 1 {
            let Some(gone) = state.waiting.pop_front() else { break };
            state.bytes -= gone.frame.bytes();
            status.dropped += 1;
        }
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod hls_tests;
#[cfg(test)]
mod rtsp_tests;
#[cfg(test)]
mod tests;
