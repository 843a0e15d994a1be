//! Messages of the replicated log and of the state store on top of it: packages `mesos.internal.log` and
//! `mesos.internal.state`.
//!
//! prost does not notice that a required field is missing. Such fields are optional here, and their readers check them.

use prost::{Enumeration, Message};

/// A record of the log's LevelDB.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Record {
    #[prost(enumeration = "RecordType", optional, tag = "1")]
    pub(crate) r#type: Option<i32>,
    #[prost(message, optional, tag = "3")]
    pub(crate) action: Option<Action>,
    #[prost(message, optional, tag = "4")]
    pub(crate) metadata: Option<Metadata>,
}

/// Kinds of records. Promises are records of versions before 0.16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub(crate) enum RecordType {
    Promise = 1,
    Action = 2,
    Metadata = 3,
}

/// State of a position in a replica.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Action {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) position: Option<u64>,
    /// Proposal that the replica has promised to.
    #[prost(uint64, optional, tag = "2")]
    pub(crate) promised: Option<u64>,
    /// Proposal that wrote the value; `None` if it is only promised.
    #[prost(uint64, optional, tag = "3")]
    pub(crate) performed: Option<u64>,
    /// Whether a quorum is known to have the value.
    #[prost(bool, optional, tag = "4")]
    pub(crate) learned: Option<bool>,
    #[prost(enumeration = "ActionType", optional, tag = "5")]
    pub(crate) r#type: Option<i32>,
    #[prost(message, optional, tag = "6")]
    pub(crate) nop: Option<Nop>,
    #[prost(message, optional, tag = "7")]
    pub(crate) append: Option<Append>,
    #[prost(message, optional, tag = "8")]
    pub(crate) truncate: Option<Truncate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub(crate) enum ActionType {
    Nop = 1,
    Append = 2,
    Truncate = 3,
}

/// A position without a value.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Nop {
    /// Whether the position was truncated before the replica had it.
    #[prost(bool, optional, tag = "1")]
    pub(crate) tombstone: Option<bool>,
}

/// Bytes of the application that uses the log.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Append {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(crate) bytes: Option<Vec<u8>>,
}

/// Removal of the positions before one.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Truncate {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) to: Option<u64>,
}

/// State of a replica.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Metadata {
    #[prost(enumeration = "Status", optional, tag = "1")]
    pub(crate) status: Option<i32>,
    #[prost(uint64, optional, tag = "2")]
    pub(crate) promised: Option<u64>,
}

/// Statuses of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum Status {
    /// The replica promises and writes, and counts for a quorum.
    Voting = 1,
    /// The replica catches up with the others.
    Recovering = 2,
    /// The replica waits until the others start, too.
    Starting = 3,
    /// The replica was never started.
    Empty = 4,
}

/// A change of the state store, in an entry of the log.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Operation {
    #[prost(enumeration = "OperationType", optional, tag = "1")]
    pub(crate) r#type: Option<i32>,
    #[prost(message, optional, tag = "2")]
    pub(crate) snapshot: Option<Stored>,
    #[prost(message, optional, tag = "4")]
    pub(crate) diff: Option<Stored>,
    #[prost(message, optional, tag = "3")]
    pub(crate) expunge: Option<Expunge>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub(crate) enum OperationType {
    Snapshot = 1,
    Expunge = 2,
    Diff = 3,
}

/// Message of `Operation.Snapshot` and `Operation.Diff`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Stored {
    #[prost(message, optional, tag = "1")]
    pub(crate) entry: Option<Entry>,
}

/// A variable of the state store, or a difference of one.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Entry {
    #[prost(string, optional, tag = "1")]
    pub(crate) name: Option<String>,
    /// Version of the variable.
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(crate) uuid: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(crate) value: Option<Vec<u8>>,
}

/// Message of `Operation.Expunge`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Expunge {
    #[prost(string, optional, tag = "1")]
    pub(crate) name: Option<String>,
}
