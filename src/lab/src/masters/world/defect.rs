//! Deliberate defects of masters, which show that the rules detect such defects.
//!
//! The core has none of them: they are in the modelled shell, and in what a member reads from its disk.

use peers::Log;
use serde_json::Value;

/// The deliberate defects. In text their names are in kebab-case, such as `ignored-lease`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Defect {
    /// A write is acknowledged when it is proposed.
    AnswerBeforeCommit,
    /// A master whose disk was replaced uses the number of the former disk, and is admitted.
    EmptyDiskLetIn,
    /// A member forgets at a start what it has promised, and votes twice.
    ForgottenPromises,
    /// A leader answers although its lease is over.
    IgnoredLease,
    /// Some members run their clocks too fast by half, so that promises end early.
    ImpatientMembers,
    /// Messages are sent before the records are durable.
    SendBeforeDurable,
    /// A master that does not lead answers reads.
    StaleReads,
}

/// Returns the log without its promise.
pub(super) fn forgetful(log: &Log) -> Option<Log> {
    let mut value = serde_json::to_value(log).ok()?;
    *value.get_mut("promise")? = Value::Null;
    serde_json::from_value(value).ok()
}
