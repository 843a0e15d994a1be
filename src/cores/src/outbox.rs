//! The results of a batch of inputs.
//!
//! The shell writes entries and carries out outputs; the outbox defines their order.

use std::panic::Location;
use std::sync::Arc;

use base::Pid;

/// The result of a batch of inputs: a transaction. The shell makes every entry of `persist` durable before it carries
/// out any of `outputs`, those of earlier batches included.
#[derive(Clone, Debug)]
pub struct Outbox<P, O> {
    /// Changes that must be durable before `outputs` are carried out, in order.
    pub persist: Vec<P>,
    /// Outputs to carry out after that, in order.
    pub outputs: Vec<O>,
    /// Outputs to carry out at once, in order, also while a write is in progress: they reveal nothing that a crash
    /// could revoke.
    pub at_once: Vec<O>,
    /// Log lines. They are written at once, so that a slow disk does not delay them.
    pub log: Vec<Line>,
    /// Refusals for the audit log that no answer to a request reports. They are written at once.
    pub refusals: Vec<Refusal>,
}

/// A refusal of a message, or of a part of a request that was answered before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Principal of the sender, if it has one.
    pub principal: Option<Arc<str>>,
    /// libprocess pid of the sender; `None` for HTTP.
    pub pid: Option<Pid>,
    /// Name of the refused call or message.
    pub call: &'static str,
    /// Ids of the objects by their kind, such as `framework` and `task`.
    pub target: Vec<(&'static str, String)>,
    /// Whether the sender is not authorized; otherwise the message is invalid.
    pub is_denied: bool,
    /// The rule that the message breaks.
    pub why: String,
}

/// A log line of a core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Severity of the log line.
    pub level: Level,
    /// The text, without a line feed.
    pub text: String,
    /// Place in the code that wrote the line: a shell limits the rate of lines by their place.
    pub place: &'static Location<'static>,
}

/// The severity of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// An event on which an operator has to act.
    Error,
    /// An invalid input, or a loss.
    Warning,
    /// A change in the cluster.
    Info,
    /// An event of a single task or offer.
    Debug,
}

impl<P, O> Default for Outbox<P, O> {
    fn default() -> Self {
        Outbox { persist: Vec::new(), outputs: Vec::new(), at_once: Vec::new(), log: Vec::new(), refusals: Vec::new() }
    }
}

impl<P, O> Outbox<P, O> {
    /// Returns whether there are no entries to persist and no outputs; log lines and refusals do not count.
    pub fn is_empty(&self) -> bool {
        self.persist.is_empty() && self.outputs.is_empty() && self.at_once.is_empty()
    }

    /// Removes everything, and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.persist.clear();
        self.outputs.clear();
        self.at_once.clear();
        self.log.clear();
        self.refusals.clear();
    }

    /// Adds an output to carry out after the entries are durable.
    pub fn push(&mut self, output: O) {
        self.outputs.push(output);
    }

    /// Adds a log line.
    #[track_caller]
    pub fn log(&mut self, level: Level, text: impl Into<String>) {
        self.log.push(Line { level, text: text.into(), place: Location::caller() });
    }

    /// Adds a log line about an event on which an operator has to act.
    #[track_caller]
    pub fn error(&mut self, text: impl Into<String>) {
        self.log(Level::Error, text);
    }

    /// Adds a log line about an invalid input or a loss.
    #[track_caller]
    pub fn warn(&mut self, text: impl Into<String>) {
        self.log(Level::Warning, text);
    }

    /// Adds a log line about a change in the cluster.
    #[track_caller]
    pub fn info(&mut self, text: impl Into<String>) {
        self.log(Level::Info, text);
    }
}
