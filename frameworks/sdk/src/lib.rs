//! What a framework developer depends on: schedulers without I/O, and the driver that runs them.
//!
//! A scheduler is a value with one method, [`Scheduler::on_event`]: it is told what happened and at what time, and
//! says what to do through [`Calls`]. It opens no socket, starts no thread and reads no clock, so the same value runs
//! against a master over HTTP (`driver::run`) and under virtual time.
//!
//! - [`Event`] is what can happen; [`Calls`] is what can be done about it.
//! - [`Ledger`] (`calls.tasks()`) knows every task that the framework has, so that none is forgotten or doubled.
//! - [`Packer`] puts tasks onto offers and gives the rest of the offers back; [`Need`] is for ports and attributes.
//! - [`Restarts`] says when to start again what has ended.
//! - [`Session`] is everything between the two that needs no I/O: subscribing, re-subscribing with back-off, watching
//!   heartbeats, acknowledging, reconciling, and keeping what must survive a restart in a [`state::State`].
//! - [`executor`] is the same for custom executors.
//! - [`requests()`] is the way from the outside, such as an HTTP API, to a running scheduler and back.
//!
//! The messages are Mesos's own, of version 1: [`v1`]. This crate knows nothing of masters or agents beyond them.
#![forbid(unsafe_code)]

mod calls;
#[cfg(feature = "driver")]
pub mod driver;
mod event;
pub mod executor;
mod ledger;
mod metrics;
pub mod needs;
mod packer;
mod requests;
mod restarts;
mod saved;
mod session;
pub mod state;
pub mod task;

/// Time, ids and the text form of durations.
pub use base;
/// The algebra of resources.
pub use resources;

pub use base::Backoff;
pub use calls::{Calls, DEFAULT_REFUSAL};
pub use event::Event;
pub use ledger::{Entry, Ledger, is_terminal};
pub use metrics::Metrics;
pub use needs::{Constraint, Need};
pub use packer::{Bin, Packer};
pub use protos::mesos::v1;
pub use requests::{Answer, AskError, Deferred, Request, Requester, Requests, requests};
pub use restarts::{RestartPolicy, Restarts};
pub use saved::{Damaged, Kept};
pub use session::{Ending, Input, Output, Session, Settings};

use base::Time;

/// What a framework is: something that answers events with calls.
///
/// `on_event` is called for one event at a time, never at once from two threads. Calls that it makes are sent after it
/// returns, in their order; a status update is acknowledged after them, unless the scheduler keeps that back with
/// [`Calls::hold_acknowledgement`].
pub trait Scheduler {
    /// Answers `event`, which happened at `now`, with `calls`.
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls);
}

impl<S: Scheduler + ?Sized> Scheduler for &mut S {
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls) {
        (**self).on_event(event, now, calls);
    }
}

impl<S: Scheduler + ?Sized> Scheduler for Box<S> {
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls) {
        (**self).on_event(event, now, calls);
    }
}
