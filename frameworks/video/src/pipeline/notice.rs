//! Notices about a query's source and view, for its status. Performs no I/O.

use serde::{Deserialize, Serialize};

/// Maximum number of notices that are kept for a query.
pub const NOTICES_MAX: usize = 20;

/// A notice of an event at a query's source or view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notice {
    /// Time in seconds of the stream.
    pub at: f64,
    /// Text of the notice.
    pub text: String,
}

/// Adds a notice, unless it repeats the text of the last one. The oldest is removed when there are too many.
pub fn notice(notices: &mut Vec<Notice>, at: f64, text: &str) {
    if notices.last().is_some_and(|last| last.text == text) {
        return;
    }
    notices.push(Notice { at, text: text.to_owned() });
    if notices.len() > NOTICES_MAX {
        notices.remove(0);
    }
}
