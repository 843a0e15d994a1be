//! Status update streams: one queue of updates for each task, delivered in order and one at a time.
//!
//! Invariants: at most one update of a task is outstanding; updates leave in the order of their arrival; an update
//! leaves the queue only by its own acknowledgement; while paused nothing is sent; an update is never accepted twice.
//!
//! It sends and writes nothing itself: it returns the updates to send and the time of the next check.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use base::{FrameworkId, TaskId, Time};
use cores::{TimerKey, Timers};
use protos::mesos::internal::{StatusUpdate, StatusUpdateRecord};
use rustc_hash::{FxHashMap, FxHashSet};

use super::status::is_terminal;

/// Wait before an update of a task or an operation is sent again for the first time.
pub(crate) const RETRY_MIN: Duration = Duration::from_secs(10);
/// Longest wait before an update of a task or an operation is sent again.
pub(crate) const RETRY_MAX: Duration = Duration::from_secs(10 * 60);

/// Maximum number of updates of one task that wait for acknowledgements, not counting its last update.
const MAX_PENDING: usize = 10_000;
/// Number of delivered updates of one task that are remembered, to detect duplicates.
const MAX_DELIVERED: usize = 10_000;
/// Number of tasks with streams from which updates of unknown tasks are rejected.
const MAX_TASKS: usize = 10_000;

/// Key of a stream.
type Key = (FrameworkId, TaskId);

/// Outcome of a received update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// The update is new and was queued.
    New {
        /// File of the stream, if its framework checkpoints.
        file: Option<Arc<str>>,
    },
    /// The update is a duplicate: nothing changes.
    Duplicate,
}

/// State of a task's stream before an update is received.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StreamState {
    /// Whether so many updates wait that only the task's last one should be accepted.
    pub(crate) is_full: bool,
    /// Whether the update is a duplicate.
    pub(crate) is_duplicate: bool,
}

/// Outcome of an acknowledgement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Acknowledged {
    /// The outstanding update is delivered.
    Delivered {
        /// The update that was acknowledged.
        update: Arc<StatusUpdate>,
        /// Whether it was the task's last update: the stream is closed.
        last: bool,
        /// File to which the acknowledgement must be written.
        file: Option<Arc<str>>,
    },
    /// The acknowledgement is not for the outstanding update.
    NotOutstanding,
    /// The task has no stream.
    NoStream,
}

#[derive(Clone, Debug)]
struct Stream {
    /// File `task.updates` of the task, if its framework checkpoints.
    file: Option<Arc<str>>,
    /// UUIDs of the waiting updates and of those in `delivered`.
    known: FxHashSet<[u8; 16]>,
    /// UUIDs of the last delivered updates, oldest first.
    delivered: VecDeque<[u8; 16]>,
    /// Updates that have not been acknowledged, oldest first.
    pending: VecDeque<Arc<StatusUpdate>>,
    /// Newest state of the task.
    latest_state: i32,
    /// Time at which the oldest update is sent next, and the wait after that.
    due: Option<TimerKey>,
    wait: Duration,
}

/// Status update streams of all tasks of an agent.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    streams: FxHashMap<Key, Stream>,
    /// Times at which streams have an update to send.
    agenda: Timers<Key>,
    paused: bool,
}

/// Sets the time at which a stream's oldest update is sent, and the wait after that.
fn schedule(agenda: &mut Timers<Key>, key: Key, stream: &mut Stream, at: Time, wait: Duration) {
    stream.due = Some(agenda.set(at, key));
    stream.wait = wait;
}

/// Returns the UUID of an accepted update; `None` if it does not have 16 bytes.
fn uuid_of(bytes: Option<&[u8]>) -> Option<[u8; 16]> {
    bytes.and_then(|bytes| bytes.try_into().ok())
}

impl Streams {
    /// Creates an empty set of streams, which is paused.
    pub(crate) fn new() -> Streams {
        Streams { streams: FxHashMap::default(), agenda: Timers::default(), paused: true }
    }

    /// Queues an update. `uuid` is that of the update; `file` returns the file of the stream if this is its first
    /// update.
    pub(crate) fn receive(
        &mut self,
        (framework, task): (&FrameworkId, &TaskId),
        uuid: [u8; 16],
        update: Arc<StatusUpdate>,
        file: impl FnOnce() -> Option<Arc<str>>,
        now: Time,
    ) -> Received {
        let key = (framework.clone(), task.clone());
        let stream = self.streams.entry(key.clone()).or_insert_with(|| Stream {
            file: file(),
            known: FxHashSet::default(),
            delivered: VecDeque::new(),
            pending: VecDeque::new(),
            latest_state: update.status.state,
            due: None,
            wait: RETRY_MIN,
        });
        if !stream.known.insert(uuid) {
            return Received::Duplicate;
        }
        stream.latest_state = update.status.state;
        stream.pending.push_back(update);
        if stream.pending.len() == 1 {
            schedule(&mut self.agenda, key, stream, now, RETRY_MIN);
        }
        Received::New { file: stream.file.clone() }
    }

    /// Returns the state of a task's stream before this update is received.
    pub(crate) fn state_of(&self, framework: &FrameworkId, task: &TaskId, uuid: &[u8; 16]) -> StreamState {
        let Some(stream) = self.streams.get(&(framework.clone(), task.clone())) else { return StreamState::default() };
        StreamState { is_full: stream.pending.len() >= MAX_PENDING, is_duplicate: stream.known.contains(uuid) }
    }

    /// Returns whether so many tasks have streams that updates of unknown tasks are rejected.
    pub(crate) fn has_too_many_tasks(&self) -> bool {
        self.streams.len() >= MAX_TASKS
    }

    /// Returns state and UUID of the task's update that the master has, or receives next: the one that waits for its
    /// acknowledgement, or else the last one that was acknowledged.
    pub(crate) fn latest(&self, framework: &FrameworkId, task: &TaskId) -> Option<(i32, Vec<u8>)> {
        let stream = self.streams.get(&(framework.clone(), task.clone()))?;
        match stream.pending.front() {
            Some(update) => Some((update.status.state, update.uuid.clone()?)),
            None => Some((stream.latest_state, stream.delivered.back()?.to_vec())),
        }
    }

    /// Handles an acknowledgement; the next update of the task becomes due at once.
    pub(crate) fn acknowledge(
        &mut self,
        framework: &FrameworkId,
        task: &TaskId,
        uuid: &[u8],
        now: Time,
    ) -> Acknowledged {
        let key = (framework.clone(), task.clone());
        let Some(stream) = self.streams.get_mut(&key) else {
            return Acknowledged::NoStream;
        };
        let outstanding = stream.pending.front().is_some_and(|update| update.uuid.as_deref() == Some(uuid));
        let Some(update) = stream.pending.pop_front_if(|_| outstanding) else {
            return Acknowledged::NotOutstanding;
        };
        stream.delivered.extend(uuid_of(Some(uuid)));
        if stream.delivered.len() > MAX_DELIVERED
            && let Some(oldest) = stream.delivered.pop_front()
        {
            stream.known.remove(&oldest);
        }
        let file = stream.file.clone();
        let last = is_terminal(update.status.state);
        self.agenda.cancel(stream.due.take());
        if last {
            self.streams.remove(&key);
        } else if !stream.pending.is_empty() {
            schedule(&mut self.agenda, key, stream, now, RETRY_MIN);
        }
        Acknowledged::Delivered { update, last, file }
    }

    /// Returns the updates to send now, each with the newest state of its task.
    pub(crate) fn take_due(&mut self, now: Time) -> Vec<(Arc<StatusUpdate>, i32)> {
        let mut sent = Vec::new();
        if self.paused {
            return sent;
        }
        while let Some(key) = self.agenda.pop_due(now) {
            let Some(stream) = self.streams.get_mut(&key) else { continue };
            stream.due = None;
            let Some(update) = stream.pending.front().cloned() else { continue };
            sent.push((update, stream.latest_state));
            let wait = stream.wait;
            schedule(&mut self.agenda, key, stream, now + wait, (wait * 2).min(RETRY_MAX));
        }
        sent
    }

    /// Restores a task's stream from its file. Returns whether the task's last update is acknowledged.
    pub(crate) fn restore(
        &mut self,
        key: (&FrameworkId, &TaskId),
        file: &Arc<str>,
        records: &[StatusUpdateRecord],
        now: Time,
    ) -> bool {
        for record in records {
            if let Some(update) = &record.update
                && let Some(uuid) = uuid_of(update.uuid.as_deref())
            {
                self.receive(key, uuid, Arc::new(update.clone()), || Some(Arc::clone(file)), now);
            }
            if let Some(uuid) = record.uuid.as_deref().filter(|_| record.update.is_none())
                && matches!(self.acknowledge(key.0, key.1, uuid, now), Acknowledged::Delivered { last: true, .. })
            {
                return true;
            }
        }
        false
    }

    /// Pauses all streams: nothing is sent until they are resumed.
    pub(crate) fn pause(&mut self) {
        self.paused = true;
    }

    /// Returns whether the streams are paused.
    pub(crate) fn paused(&self) -> bool {
        self.paused
    }

    /// Makes the oldest update of every task due now, for one framework or for all.
    pub(crate) fn resend(&mut self, framework: Option<&FrameworkId>, now: Time) {
        let wanted = |key: &Key| framework.is_none_or(|framework| key.0 == *framework);
        let mut streams: Vec<_> = self.streams.iter_mut().filter(|(key, _)| wanted(key)).collect();
        // The order must not depend on the layout of the map.
        streams.sort_unstable_by_key(|(key, _)| *key);
        for (key, stream) in streams {
            self.agenda.cancel(stream.due.take());
            if !stream.pending.is_empty() {
                schedule(&mut self.agenda, key.clone(), stream, now, RETRY_MIN);
            }
        }
    }

    /// Resumes all streams; the oldest update of every task is due at once.
    pub(crate) fn resume(&mut self, now: Time) {
        self.paused = false;
        self.resend(None, now);
    }

    /// Removes all streams of a framework.
    pub(crate) fn remove_framework(&mut self, framework: &FrameworkId) {
        for (_, stream) in self.streams.extract_if(|key, _| key.0 == *framework) {
            self.agenda.cancel(stream.due);
        }
    }

    /// Returns the time of the next update to send; `None` if there is none, or the streams are paused.
    pub(crate) fn next_wake(&self) -> Option<Time> {
        if self.paused { None } else { self.agenda.next() }
    }
}

#[cfg(test)]
mod tests;
