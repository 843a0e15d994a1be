//! `/logging/toggle` and SET_LOGGING_LEVEL: more log lines for a limited time.
//!
//! It does not write log lines; `logging` provides the switch.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::lock;
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

    /// Sets the level, and that of the start again after `duration`.
    pub fn set(self: &Arc<Self>, level: u32, duration: Duration) {
        let change = {
            let mut state = lock(&self.state);
            state.level = level;
            state.change += 1;
            state.change
        };
        (self.switch)(level);
        let this = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(duration).await;
            let mut state = lock(&this.state);
            if state.change == change {
                state.level = 0;
                (this.switch)(0);
            }
        });
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
