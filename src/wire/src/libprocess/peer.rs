//! The message queue of one address, and its links. It does no I/O.

use std::net::SocketAddrV4;
use std::sync::Mutex;
use std::task::Waker;

use base::Pid;
use bytes::BytesMut;
use rustc_hash::FxHashSet;

use super::{SenderToken, encode};
use crate::sync::lock;

/// Error of a peer whose connection has ended: a new peer is needed.
pub(super) struct Closed;

#[derive(Default)]
struct State {
    /// Encoded requests whose writing has not begun.
    queue: BytesMut,
    links: FxHashSet<Pid>,
    /// Task of the connection, if it waits.
    task: Option<Waker>,
    closed: bool,
    /// Token that messages carry which are queued from now on.
    sender_token: Option<SenderToken>,
    /// Whether the connection's task has bytes that it took and has not written.
    writing: bool,
}

impl State {
    fn wake(&mut self) -> Option<Waker> {
        self.task.take()
    }
}

/// The message queue and the links of one address.
pub(super) struct Peer {
    address: SocketAddrV4,
    state: Mutex<State>,
}

/// The next action of the connection's task.
pub(super) enum NextAction {
    /// Write these bytes.
    Write(BytesMut),
    /// Wait; the task is woken.
    Wait,
    /// The queue is empty, and there are no links.
    Idle,
    /// The connection must end.
    Closed,
}

impl Peer {
    pub(super) fn new(address: SocketAddrV4, sender_token: Option<SenderToken>) -> Peer {
        Peer { address, state: Mutex::new(State { sender_token, ..State::default() }) }
    }

    pub(super) fn set_sender_token(&self, sender_token: Option<SenderToken>) {
        lock(&self.state).sender_token = sender_token;
    }

    pub(super) fn address(&self) -> SocketAddrV4 {
        self.address
    }

    pub(super) fn is_closed(&self) -> bool {
        lock(&self.state).closed
    }

    /// Returns whether a message is queued or partly written.
    pub(super) fn is_busy(&self) -> bool {
        let state = lock(&self.state);
        !state.closed && (state.writing || !state.queue.is_empty())
    }

    /// Changes the state and wakes the connection's task.
    fn change(&self, action: impl FnOnce(&mut State) -> Result<(), Closed>) -> Result<(), Closed> {
        let mut state = lock(&self.state);
        let result = action(&mut state);
        let task = state.wake();
        drop(state);
        if let Some(task) = task {
            task.wake();
        }
        result
    }

    /// Queues a message. If too many bytes wait already, the connection is closed and the message is lost.
    pub(super) fn push(&self, from: &Pid, to: &str, name: &str, body: &[u8], limit: usize) -> Result<(), Closed> {
        self.change(|state| {
            if state.closed {
                return Err(Closed);
            }
            if !state.queue.is_empty() && state.queue.len() + body.len() > limit {
                tracing::warn!(peer = %self.address, limit, "a libprocess peer does not read; connection closed");
                state.closed = true;
                return Ok(());
            }
            encode::push(&mut state.queue, from, to, name, state.sender_token.as_ref(), body);
            Ok(())
        })
    }

    pub(super) fn link(&self, pid: &Pid) -> Result<(), Closed> {
        self.change(|state| {
            if state.closed {
                return Err(Closed);
            }
            state.links.insert(pid.clone());
            Ok(())
        })
    }

    pub(super) fn unlink(&self, pid: &Pid) {
        let _ = self.change(|state| {
            state.links.remove(pid);
            Ok(())
        });
    }

    /// Moves the links and unsent messages of a connection that ends to this one.
    pub(super) fn take_over(&self, old: &Peer) {
        let mut moved = State::default();
        let _ = old.change(|state| {
            state.closed = true;
            moved.links = std::mem::take(&mut state.links);
            moved.queue = std::mem::take(&mut state.queue);
            Ok(())
        });
        let mut state = lock(&self.state);
        // This peer is new: messages that were queued to it follow those that moved.
        moved.queue.unsplit(std::mem::take(&mut state.queue));
        moved.links.extend(std::mem::take(&mut state.links));
        state.queue = moved.queue;
        state.links = moved.links;
    }

    /// Ends the connection without exited events for its links.
    pub(super) fn abandon(&self) {
        let _ = self.change(|state| {
            state.closed = true;
            state.links.clear();
            Ok(())
        });
    }

    /// Returns the next action of the connection's task, which is woken when that changes.
    pub(super) fn next_action(&self, task: &Waker, writing: bool) -> NextAction {
        let mut state = lock(&self.state);
        if state.closed {
            return NextAction::Closed;
        }
        state.writing = writing || !state.queue.is_empty();
        if !writing && !state.queue.is_empty() {
            return NextAction::Write(std::mem::take(&mut state.queue));
        }
        if state.task.as_ref().is_none_or(|waiting| !waiting.will_wake(task)) {
            state.task = Some(task.clone());
        }
        if !writing && state.links.is_empty() { NextAction::Idle } else { NextAction::Wait }
    }

    /// Closes the peer if the queue is empty and there are no links. Returns whether it did.
    pub(super) fn close_if_idle(&self) -> bool {
        let mut state = lock(&self.state);
        let idle = state.queue.is_empty() && state.links.is_empty();
        state.closed |= idle;
        idle
    }

    /// Closes the peer, drops the queue, and returns the links.
    pub(super) fn close(&self) -> Vec<Pid> {
        let mut state = lock(&self.state);
        state.closed = true;
        state.queue = BytesMut::new();
        state.task = None;
        let mut links: Vec<Pid> = std::mem::take(&mut state.links).into_iter().collect();
        // A deterministic order of notifications.
        links.sort_unstable();
        links
    }
}
