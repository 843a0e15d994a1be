//! The SDK for framework developers: schedulers without I/O, and the driver that runs them.
//!
//! A scheduler is a value with one method, [`Scheduler::on_event`]. It receives an event and the time, and answers
//! through [`Calls`]. It opens no socket, starts no thread and reads no clock, so the same value runs against a master
//! over HTTP (`driver::run`) and under virtual time.
//!
//! - [`Event`]: events of a scheduler. [`Calls`]: its calls.
//! - [`Ledger`] (`calls.tasks()`): every task of the framework, so that none is forgotten or launched twice.
//! - [`Packer`]: packs tasks into offers and declines the rest. [`Need`]: ports and attributes.
//! - [`Restarts`]: back-off for tasks that are started again.
//! - [`Session`]: the protocol without I/O: it subscribes, subscribes again with back-off, watches heartbeats,
//!   acknowledges, reconciles, and persists state in a [`state::State`].
//! - [`executor`]: the same for custom executors.
//! - [`requests()`]: a channel from an HTTP API or a command to a running scheduler and back.
//!
//! The messages are those of Mesos's v1 API: [`v1`].
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
/// Resources and their arithmetic.
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
pub use saved::{Damaged, StoreContents};
pub use session::{Ending, Input, Output, Session, Settings};

use base::Time;

/// A scheduler: handles events and makes calls.
///
/// `on_event` is called for one event at a time, never at once from two threads. Calls that it makes are sent after it
/// returns, in order. A status update is acknowledged after them, unless the scheduler withholds that with
/// [`Calls::hold_acknowledgement`].
pub trait Scheduler {
    /// Handles `event`, which happened at `now`, and makes calls through `calls`.
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
