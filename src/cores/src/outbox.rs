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
    /// Changes that must be durable before `outputs`, in order.
    pub persist: Vec<P>,
    /// What is to be done after that, in order.
    pub outputs: Vec<O>,
    /// What is to be done at once, in order, also while a write is under way: it reveals nothing that a crash could
    /// revoke.
    pub at_once: Vec<O>,
    /// Lines for the log. They are written at once, so that a slow disk does not delay them.
    pub log: Vec<Line>,
    /// Refusals for the audit log that no answer to a request reports. They are written at once.
    pub refusals: Vec<Refusal>,
}

/// A refusal of what a message asks for, or of a part of a request that was answered before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The principal of the sender, if there is one.
    pub principal: Option<Arc<str>>,
    /// The libprocess process of the sender; none for HTTP.
    pub pid: Option<Pid>,
    /// The name of the call or the message.
    pub call: &'static str,
    /// The ids of its objects by their kind, such as `framework` and `task`.
    pub target: Vec<(&'static str, String)>,
    /// Whether the sender may not ask for it; otherwise it is invalid.
    pub is_denied: bool,
    /// The rule.
    pub why: String,
}

/// A line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// How much it matters.
    pub level: Level,
    /// The text, without an end of line.
    pub text: String,
    /// The place in the code that has written it: a shell limits the lines of one place.
    pub place: &'static Location<'static>,
}

/// How much a log line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// An operator has to act.
    Error,
    /// Bad input, or something lost.
    Warning,
    /// What changed in the cluster.
    Info,
    /// What happened to single tasks and offers.
    Debug,
}

impl<P, O> Default for Outbox<P, O> {
    fn default() -> Self {
        Outbox { persist: Vec::new(), outputs: Vec::new(), at_once: Vec::new(), log: Vec::new(), refusals: Vec::new() }
    }
}

impl<P, O> Outbox<P, O> {
    /// Whether there is nothing to do but to write log lines.
    pub fn is_empty(&self) -> bool {
        self.persist.is_empty() && self.outputs.is_empty() && self.at_once.is_empty()
    }

    /// Removes everything, and keeps the memory.
    pub fn clear(&mut self) {
        self.persist.clear();
        self.outputs.clear();
        self.at_once.clear();
        self.log.clear();
        self.refusals.clear();
    }

    /// Adds an output that waits for the entries to persist.
    pub fn push(&mut self, output: O) {
        self.outputs.push(output);
    }

    /// Adds a log line.
    #[track_caller]
    pub fn log(&mut self, level: Level, text: impl Into<String>) {
        self.log.push(Line { level, text: text.into(), place: Location::caller() });
    }

    /// Adds a log line about something that an operator has to act on.
    #[track_caller]
    pub fn error(&mut self, text: impl Into<String>) {
        self.log(Level::Error, text);
    }

    /// Adds a log line about bad input or something lost.
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
