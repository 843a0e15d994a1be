//! The log: positions with the values that a quorum has chosen.

use std::collections::BTreeMap;

/// The positions of a group's log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Log {
    /// The highest learned position.
    pub(crate) last: u64,
    /// What was not truncated, without a gap.
    pub(crate) values: BTreeMap<u64, Value>,
}

/// What is chosen for a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Nothing.
    Nop,
    /// Something that was truncated before the replica could learn it.
    Tombstone,
    /// A change of the state store.
    Append(Vec<u8>),
    /// Positions before this one are removed.
    Truncate(u64),
}
