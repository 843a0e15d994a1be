//! The log of a group: positions with the values that a quorum has chosen.

use std::collections::BTreeMap;

/// Positions of a group's log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Log {
    /// Highest learned position.
    pub(crate) last: u64,
    /// Values of the positions that were not truncated, without a gap.
    pub(crate) values: BTreeMap<u64, Value>,
}

/// Value that was chosen for a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// No value.
    Nop,
    /// A value that was truncated before the replica could learn it.
    Tombstone,
    /// A change of the state store.
    Append(Vec<u8>),
    /// Removal of the positions before this one.
    Truncate(u64),
}
