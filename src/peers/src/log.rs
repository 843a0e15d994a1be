//! Copy of the log of a member in memory, with the changes that are not on its disk yet.
//!
//! The library writes here and never sees an error: what it has written becomes durable before any message is sent that
//! depends on it (see `Peer`).

use std::sync::{Arc, Mutex};

use base::lock;
use omnipaxos::ballot_leader_election::Ballot;
use omnipaxos::storage::{StopSign, Storage, StorageOp, StorageResult};
use serde::{Deserialize, Serialize};

use crate::entry::{Compacted, LogEntry, State};

/// A change of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum LogChange {
    /// Append entries at the end.
    Append(Vec<LogEntry>),
    /// Replace the entries from an index on.
    Replace(usize, Vec<LogEntry>),
    /// Promise a round.
    Promise(Ballot),
    /// Set the number of decided entries.
    Decided(usize),
    /// Set the round in which entries were last accepted.
    AcceptedRound(Ballot),
    /// Set the number of entries that the snapshot stands for.
    CompactedTo(usize),
    /// Delete the entries before an index.
    Trim(usize),
    /// Set the entry that ends this configuration.
    StopSign(Option<StopSign>),
    /// Replace the snapshot.
    Snapshot(Option<Compacted>),
}

impl LogChange {
    /// Returns whether other members rely on the change. The number of decided entries is determined again after a
    /// crash.
    pub fn must_be_durable(&self) -> bool {
        !matches!(self, LogChange::Decided(_))
    }
}

/// The log of a member as it is on its disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Log {
    promise: Option<Ballot>,
    accepted_round: Option<Ballot>,
    decided: usize,
    /// Number of entries that were deleted from the beginning of `entries`.
    trimmed: usize,
    compacted_to: usize,
    entries: Vec<LogEntry>,
    stop_sign: Option<StopSign>,
    snapshot: Option<Compacted>,
}

/// Part of the log of a configuration that a member has when it enters the configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct InitialState {
    /// State that the decided entries result in.
    pub state: State,
    /// Number of decided entries.
    pub decided: usize,
    /// Round in which the member that sends them has last accepted entries.
    pub round: Ballot,
}

impl InitialState {
    /// Returns the beginning of a configuration without entries.
    pub(crate) fn of(state: State) -> InitialState {
        InitialState { state, ..InitialState::default() }
    }
}

impl Log {
    /// Returns the log of a member that enters a configuration.
    ///
    /// The member counts as having accepted the entries in the round in which their sender has. In an election a log
    /// counts by that round. Without it the member could not show that it has decided entries, and a leader with other
    /// entries would take those for decided, because so many are. The member follows no leader of an earlier round
    /// either.
    pub(crate) fn from_initial_state(InitialState { state, decided, round }: InitialState) -> Log {
        let round = (decided > 0).then_some(round);
        let snapshot = Some(Compacted { state: Some(state), entries: Vec::new() });
        let (promise, accepted_round) = (round, round);
        Log { promise, accepted_round, decided, trimmed: decided, compacted_to: decided, snapshot, ..Log::default() }
    }

    /// Returns the state that the snapshot stands for, and the number of entries in it.
    pub(crate) fn base(&self) -> (State, usize) {
        let state = self.snapshot.as_ref().and_then(|snapshot| snapshot.state.clone());
        (state.unwrap_or_default(), self.compacted_to)
    }

    /// Returns whether the member has promised anything to a leader.
    pub(crate) fn has_promised(&self) -> bool {
        self.promise.is_some_and(|ballot| ballot != Ballot::default())
    }

    /// Applies a change, which has the same effect on every copy.
    pub fn apply(&mut self, change: LogChange) {
        match change {
            LogChange::Append(entries) => self.entries.extend(entries),
            LogChange::Replace(from, entries) => {
                self.entries.truncate(from.saturating_sub(self.trimmed));
                self.entries.extend(entries);
            }
            LogChange::Promise(ballot) => self.promise = Some(ballot),
            LogChange::Decided(count) => self.decided = count,
            LogChange::AcceptedRound(ballot) => self.accepted_round = Some(ballot),
            LogChange::CompactedTo(count) => self.compacted_to = count,
            LogChange::Trim(to) => {
                let count = to.saturating_sub(self.trimmed).min(self.entries.len());
                self.entries.drain(..count);
                self.trimmed = to.max(self.trimmed);
            }
            LogChange::StopSign(sign) => self.stop_sign = sign,
            LogChange::Snapshot(snapshot) => self.snapshot = snapshot,
        }
    }

    fn slice(&self, from: usize, to: usize) -> Vec<LogEntry> {
        let (from, to) = (from.checked_sub(self.trimmed), to.checked_sub(self.trimmed));
        let range = from.zip(to).and_then(|(from, to)| self.entries.get(from..to));
        range.map(<[LogEntry]>::to_vec).unwrap_or_default()
    }
}

/// A log with the changes since they were last taken. The library owns one of two handles.
#[derive(Clone, Debug)]
pub(crate) struct Shared(Arc<Mutex<(Log, Vec<LogChange>)>>);

impl Shared {
    pub(crate) fn new(log: Log) -> Shared {
        Shared(Arc::new(Mutex::new((log, Vec::new()))))
    }

    /// Returns the changes since the last call.
    pub(crate) fn take(&self) -> Vec<LogChange> {
        std::mem::take(&mut lock(&self.0).1)
    }

    /// Returns a copy of the log, for a new file.
    pub(crate) fn copy(&self) -> Log {
        lock(&self.0).0.clone()
    }

    /// Returns the round in which entries were last accepted.
    pub(crate) fn accepted_round(&self) -> Ballot {
        lock(&self.0).0.accepted_round.unwrap_or_default()
    }

    /// Returns the number of entries that are not compacted.
    pub(crate) fn len(&self) -> usize {
        lock(&self.0).0.entries.len()
    }

    /// Returns the number of entries of the configuration, including compacted ones.
    pub(crate) fn end(&self) -> usize {
        let log = &lock(&self.0).0;
        log.trimmed + log.entries.len()
    }

    fn read<T>(&self, get: impl FnOnce(&Log) -> T) -> StorageResult<T> {
        Ok(get(&lock(&self.0).0))
    }

    fn change(&mut self, change: LogChange) -> StorageResult<()> {
        let (log, changes) = &mut *lock(&self.0);
        changes.push(change.clone());
        log.apply(change);
        Ok(())
    }
}

impl Storage<LogEntry> for Shared {
    fn write_atomically(&mut self, operations: Vec<StorageOp<LogEntry>>) -> StorageResult<()> {
        for operation in operations {
            self.change(match operation {
                StorageOp::AppendEntry(entry) => LogChange::Append(vec![entry]),
                StorageOp::AppendEntries(entries) => LogChange::Append(entries),
                StorageOp::AppendOnPrefix(from, entries) => LogChange::Replace(from, entries),
                StorageOp::SetPromise(ballot) => LogChange::Promise(ballot),
                StorageOp::SetDecidedIndex(index) => LogChange::Decided(index),
                StorageOp::SetAcceptedRound(ballot) => LogChange::AcceptedRound(ballot),
                StorageOp::SetCompactedIdx(index) => LogChange::CompactedTo(index),
                StorageOp::Trim(index) => LogChange::Trim(index),
                StorageOp::SetStopsign(sign) => LogChange::StopSign(sign),
                StorageOp::SetSnapshot(snapshot) => LogChange::Snapshot(snapshot),
            })?;
        }
        Ok(())
    }

    fn append_entry(&mut self, entry: LogEntry) -> StorageResult<()> {
        self.change(LogChange::Append(vec![entry]))
    }

    fn append_entries(&mut self, entries: Vec<LogEntry>) -> StorageResult<()> {
        match entries.is_empty() {
            true => Ok(()),
            false => self.change(LogChange::Append(entries)),
        }
    }

    fn append_on_prefix(&mut self, from: usize, entries: Vec<LogEntry>) -> StorageResult<()> {
        self.change(LogChange::Replace(from, entries))
    }

    fn set_promise(&mut self, ballot: Ballot) -> StorageResult<()> {
        self.change(LogChange::Promise(ballot))
    }

    fn set_decided_idx(&mut self, index: usize) -> StorageResult<()> {
        self.change(LogChange::Decided(index))
    }

    fn get_decided_idx(&self) -> StorageResult<usize> {
        self.read(|log| log.decided)
    }

    fn set_accepted_round(&mut self, ballot: Ballot) -> StorageResult<()> {
        self.change(LogChange::AcceptedRound(ballot))
    }

    fn get_accepted_round(&self) -> StorageResult<Option<Ballot>> {
        self.read(|log| log.accepted_round)
    }

    fn get_entries(&self, from: usize, to: usize) -> StorageResult<Vec<LogEntry>> {
        // The library asks for decided entries only, with one exception (0.2.4, `sync_log`): it asks with a number that
        // it has raised before the entries are here. The others come with what it merges.
        self.read(|log| log.slice(from, to.min(log.decided)))
    }

    fn get_log_len(&self) -> StorageResult<usize> {
        self.read(|log| log.entries.len())
    }

    fn get_suffix(&self, from: usize) -> StorageResult<Vec<LogEntry>> {
        self.read(|log| log.slice(from, log.trimmed + log.entries.len()))
    }

    fn get_promise(&self) -> StorageResult<Option<Ballot>> {
        self.read(|log| log.promise)
    }

    fn set_stopsign(&mut self, sign: Option<StopSign>) -> StorageResult<()> {
        self.change(LogChange::StopSign(sign))
    }

    fn get_stopsign(&self) -> StorageResult<Option<StopSign>> {
        self.read(|log| log.stop_sign.clone())
    }

    fn trim(&mut self, index: usize) -> StorageResult<()> {
        self.change(LogChange::Trim(index))
    }

    fn set_compacted_idx(&mut self, index: usize) -> StorageResult<()> {
        self.change(LogChange::CompactedTo(index))
    }

    fn get_compacted_idx(&self) -> StorageResult<usize> {
        self.read(|log| log.compacted_to)
    }

    fn set_snapshot(&mut self, snapshot: Option<Compacted>) -> StorageResult<()> {
        self.change(LogChange::Snapshot(snapshot))
    }

    fn get_snapshot(&self) -> StorageResult<Option<Compacted>> {
        self.read(|log| log.snapshot.clone())
    }
}
