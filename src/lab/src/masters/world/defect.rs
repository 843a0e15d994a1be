//! Deliberate defects of masters, which show that the rules detect such defects.
//!
//! The core has none of them: they are in the modelled shell, and in what a member finds on its disk.

use peers::Log;
use serde_json::Value;

/// What is broken. Names are in kebab-case in text, such as `ignored-lease`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Defect {
    /// A write is acknowledged when it is proposed.
    AnswerBeforeCommit,
    /// A master whose disk was replaced has the number of the former disk, and is let in.
    EmptyDiskLetIn,
    /// A member forgets at a start what it has promised, and votes twice.
    ForgottenPromises,
    /// A leader answers although its lease is over.
    IgnoredLease,
    /// Members count the time of a promise too fast by half.
    ImpatientMembers,
    /// Messages are sent before the records are durable.
    SendBeforeDurable,
    /// A master that does not lead answers reads.
    StaleReads,
}

/// A log without its promise.
pub(super) fn forgetful(log: &Log) -> Option<Log> {
    let mut value = serde_json::to_value(log).ok()?;
    *value.get_mut("promise")? = Value::Null;
    serde_json::from_value(value).ok()
}
