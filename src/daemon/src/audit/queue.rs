//! The queue between the reactor and the thread that writes the audit log.
//!
//! The reactor never waits for a disk. Lines that are not written are counted, and the next line has their number.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use base::lock;

use super::entry::{Decision, Entry};
use crate::window::{Window, instant};

/// Maximum number of lines in the queue. A line has at most a few KB.
const WAITING_MAX: usize = 8192;
/// Maximum number of lines a minute about refused requests, for each decision: clients without any permission cause
/// them.
const REFUSALS_MAX: u32 = 1_000;
/// Maximum number of lines a minute about messages of senders without a principal.
const STRANGERS_MAX: u32 = 10_000;
/// Interval of checks of the number of missing lines, while there are some.
const LOOK: Duration = Duration::from_secs(1);
/// Interval of checks of the number of missing lines, while there are none.
const LONG: Duration = Duration::from_secs(3600);

/// An item of the queue, which becomes a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Item {
    Entry(Box<Entry>),
    /// Number of lines that were lost between the lines before and after: the queue was full, or a write failed.
    Dropped(u64),
    /// Number of lines with this decision that were left out, above the limit of refused requests.
    LeftOut(Decision, u64),
}

/// The queue of lines of the audit log.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    waiting: VecDeque<Item>,
    /// Number of lines that were lost after those in the queue.
    dropped: u64,
    /// Time at which the number of lost lines is written again after a failed write; `None` if no write failed.
    retry_at: Option<Instant>,
    /// Limits of the lines of each decision.
    windows: [(Decision, Window); 4],
    /// Whether the thread writes the items that it took last.
    is_writing: bool,
    is_closed: bool,
}

impl Queue {
    pub(super) fn new() -> Queue {
        let kinds = [Decision::Denied, Decision::Invalid, Decision::Failed, Decision::Received];
        let windows = kinds.map(|kind| (kind, Window::new(instant())));
        let waiting = VecDeque::new();
        let state = State { waiting, dropped: 0, retry_at: None, windows, is_writing: false, is_closed: false };
        Queue { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Adds a line, or counts it if it is above a limit or the queue is full.
    pub(super) fn push(&self, entry: Entry) {
        let mut state = lock(&self.state);
        state.take_left_out(instant());
        if state.admits(&entry, instant()) {
            state.push(Item::Entry(Box::new(entry)));
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Adds lines that could not be written to the number of lost ones.
    pub(super) fn lost(&self, count: u64) {
        let mut state = lock(&self.state);
        state.dropped += count;
        state.retry_at = Some(instant() + LOOK);
    }

    /// Waits for items, and removes and returns them in their order; `None` after the end of the queue.
    pub(super) fn take(&self) -> Option<Vec<Item>> {
        let mut state = lock(&self.state);
        state.is_writing = false;
        self.changed.notify_all();
        loop {
            state.take_left_out(instant());
            let mut items: Vec<Item> = state.waiting.drain(..).collect();
            if state.dropped > 0 && state.retry_at.is_none_or(|at| at <= instant()) {
                items.push(Item::Dropped(std::mem::take(&mut state.dropped)));
                state.retry_at = None;
            }
            if !items.is_empty() {
                state.is_writing = true;
                return Some(items);
            }
            if state.is_closed {
                return None;
            }
            let wait = if state.is_left_out() || state.dropped > 0 { LOOK } else { LONG };
            // Only a thread that has panicked poisons the lock, and none here panics.
            state = self.changed.wait_timeout(state, wait).unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }

    /// Ends the queue: [`Queue::take`] returns the waiting items, counts included, and then `None`.
    pub(super) fn close(&self) {
        let mut state = lock(&self.state);
        state.end_windows(instant());
        state.is_closed = true;
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until all lines are written, at most for `limit`.
    pub(super) fn wait_until_written(&self, limit: Duration) {
        let state = lock(&self.state);
        let is_busy = |state: &mut State| {
            !state.waiting.is_empty() || (state.dropped > 0 && state.retry_at.is_none()) || state.is_writing
        };
        drop(self.changed.wait_timeout_while(state, limit, is_busy));
    }
}

impl State {
    fn push(&mut self, item: Item) {
        if self.waiting.len() >= WAITING_MAX {
            self.dropped += 1;
            return;
        }
        if self.dropped > 0 {
            self.retry_at = None;
            self.waiting.push_back(Item::Dropped(std::mem::take(&mut self.dropped)));
        }
        self.waiting.push_back(item);
    }

    fn admits(&mut self, entry: &Entry, now: Instant) -> bool {
        let max = match entry.decision {
            Decision::Allowed => return true,
            Decision::Received if entry.principal.is_some() => return true,
            Decision::Received => STRANGERS_MAX,
            Decision::Denied | Decision::Invalid | Decision::Failed => REFUSALS_MAX,
        };
        let window = self.windows.iter_mut().find(|(kind, _)| *kind == entry.decision);
        window.is_none_or(|(_, window)| window.admits(now, max))
    }

    fn is_left_out(&self) -> bool {
        self.windows.iter().any(|(_, window)| window.is_waiting())
    }

    fn take_left_out(&mut self, now: Instant) {
        for at in 0..self.windows.len() {
            let (kind, window) = &mut self.windows[at];
            let kind = *kind;
            if let Some(count) = window.take_left_out(now) {
                self.push(Item::LeftOut(kind, count));
            }
        }
    }

    fn end_windows(&mut self, now: Instant) {
        for at in 0..self.windows.len() {
            let (kind, window) = &mut self.windows[at];
            let kind = *kind;
            if let Some(count) = window.end(now) {
                self.push(Item::LeftOut(kind, count));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::entry::entry;

    fn calls(items: &[Item]) -> Vec<String> {
        let text = |item: &Item| match item {
            Item::Entry(entry) => entry.call.clone(),
            Item::Dropped(count) => format!("dropped {count}"),
            Item::LeftOut(decision, count) => format!("{} left out {count}", decision.name()),
        };
        items.iter().map(text).collect()
    }

    #[test]
    fn lines_that_do_not_fit_are_counted_where_they_are_missing() {
        let queue = Queue::new();
        (0..WAITING_MAX + 3).for_each(|number| queue.push(entry(&number.to_string())));
        let items = queue.take().unwrap();
        assert_eq!(calls(&items[..2]), ["0", "1"]);
        assert_eq!(calls(&items[WAITING_MAX - 1..]), [(WAITING_MAX - 1).to_string(), "dropped 3".to_owned()]);
        queue.push(entry("next"));
        queue.lost(2);
        queue.push(entry("last"));
        assert_eq!(calls(&queue.take().unwrap()), ["next", "dropped 2", "last"]);
        queue.close();
        assert_eq!(queue.take(), None);
    }

    #[test]
    fn refused_requests_have_a_limit_and_others_none() {
        let queue = Queue::new();
        for number in 0..REFUSALS_MAX + 5 {
            queue.push(Entry { decision: Decision::Denied, ..entry(&number.to_string()) });
        }
        queue.push(Entry { decision: Decision::Invalid, ..entry("invalid") });
        queue.push(entry("allowed"));
        queue.close();
        let items = queue.take().unwrap();
        assert_eq!(items.len(), REFUSALS_MAX as usize + 3);
        assert_eq!(calls(&items[REFUSALS_MAX as usize..]), ["invalid", "allowed", "denied left out 5"]);
    }
}
