//! `/logging/toggle` and SET_LOGGING_LEVEL: more log lines for a limited time.
//!
//! It does not write log lines; `logging` provides the switch.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::lock;
use tokio::task::AbortHandle;
use wire::http::{Request, Response, TEXT};

use crate::audit::{self, RequestedChange, Target};

/// Notes for the audit log that a request asks for another log level.
pub(crate) fn note_toggle(request: &Request) {
    if let Some(level) = request.query.get("level") {
        audit::note_call(|| Some(RequestedChange::new("/logging/toggle", Target::default().with("level", level))));
    }
}

/// A function that sets the log level: 0 is the level of the start, 1 adds events of single tasks, 2 and more add all
/// lines.
pub type Switch = Arc<dyn Fn(u32) + Send + Sync>;

/// The current log level of a process.
pub struct LogLevel {
    switch: Switch,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    level: u32,
    /// Number of changes, so that the end of an older one does not undo a newer one.
    change: u64,
    /// Task that ends the newest change.
    reset: Option<AbortHandle>,
}

impl fmt::Debug for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogLevel").field("state", &self.state).finish_non_exhaustive()
    }
}

impl LogLevel {
    /// Creates a log level that is set by `switch`.
    pub fn new(switch: Switch) -> Arc<LogLevel> {
        Arc::new(LogLevel { switch, state: Mutex::default() })
    }

    /// Returns the current level.
    pub fn level(&self) -> u32 {
        lock(&self.state).level
    }

    /// Sets the level, and that of the start again after `duration`. This replaces an earlier change and its duration,
    /// so at most one task waits, however many requests there are.
    pub fn set(self: &Arc<Self>, level: u32, duration: Duration) {
        let mut state = lock(&self.state);
        state.level = level;
        state.change += 1;
        (self.switch)(level);
        let (this, change) = (self.clone(), state.change);
        let reset = tokio::spawn(async move {
            tokio::time::sleep(duration).await;
            this.end(change);
        });
        if let Some(earlier) = state.reset.replace(reset.abort_handle()) {
            earlier.abort();
        }
    }

    /// Sets the level of the start, unless there was another change.
    fn end(&self, change: u64) {
        let mut state = lock(&self.state);
        // The task may have been woken before it was aborted.
        if state.change == change {
            state.level = 0;
            state.reset = None;
            (self.switch)(0);
        }
    }

    /// Answers `/logging/toggle` (LEG-20).
    pub(super) fn toggle(self: &Arc<Self>, request: &Request) -> Response {
        match self.understand(request) {
            Ok(None) => Response::ok_body(TEXT, format!("{}\n", self.level())),
            Ok(Some((level, duration))) => {
                note_toggle(request);
                self.set(level, duration);
                Response::empty(wire::http::StatusCode::OK)
            }
            Err(text) => Response::bad_request(text),
        }
    }

    fn understand(&self, request: &Request) -> Result<Option<(u32, Duration)>, String> {
        let (level, duration) = match (request.query.get("level"), request.query.get("duration")) {
            (None, None) => return Ok(None),
            (None, Some(_)) => return Err("Expecting 'level=value' in query.\n".into()),
            (Some(_), None) => return Err("Expecting 'duration=value' in query.\n".into()),
            (Some(level), Some(duration)) => (level, duration),
        };
        let number: i64 = level.parse().map_err(|_| format!("Failed to convert '{level}' to number.\n"))?;
        let level = u32::try_from(number).map_err(|_| format!("Invalid level '{number}'.\n"))?;
        let duration = base::parse_duration(duration).map_err(|error| format!("{error}.\n"))?;
        Ok(Some((level, duration)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_replaces_the_one_before_and_its_end() {
        let levels = Arc::new(Mutex::new(Vec::new()));
        let noted = levels.clone();
        let level = LogLevel::new(Arc::new(move |level: u32| lock(&noted).push(level)));
        for _ in 0..1000 {
            level.set(3, secs(10));
        }
        level.set(1, secs(60));
        // Time is paused: it passes when no other task can run.
        tokio::time::sleep(secs(30)).await;
        assert_eq!(Arc::strong_count(&level), 2, "one task waits");
        assert_eq!(level.level(), 1);
        tokio::time::sleep(secs(31)).await;
        assert_eq!((level.level(), Arc::strong_count(&level)), (0, 1));
        assert_eq!(lock(&levels)[999..], [3, 1, 0]);
    }
}
