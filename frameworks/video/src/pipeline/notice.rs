//! What happens to a query's source and view, for its status. Pure.

use serde::{Deserialize, Serialize};

/// Notices of a query that are kept.
pub const NOTICES_MAX: usize = 20;

/// An event of a query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notice {
    /// When, in seconds of the stream.
    pub at: f64,
    /// The text.
    pub text: String,
}

/// Adds a notice; the oldest goes when there are too many. A text that was the last one is not repeated.
pub fn notice(notices: &mut Vec<Notice>, at: f64, text: &str) {
    if notices.last().is_some_and(|last| last.text == text) {
        return;
    }
    notices.push(Notice { at, text: text.to_owned() });
    if notices.len() > NOTICES_MAX {
        notices.remove(0);
    }
}
