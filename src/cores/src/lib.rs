//! The contract between a core, which is a state machine without I/O, and the shell around it.
//!
//! A core receives inputs with the time, and puts the results into an [`Outbox`]. It reads no clock: it uses the time
//! of the input, and [`Core::next_wake`] returns when it next needs an input without an external cause. The live shells
//! are in `daemon`; `lab` drives the same cores under virtual time. Each core defines its inputs and outputs.
#![forbid(unsafe_code)]

mod call_error;
mod change;
mod outbox;
mod timers;
mod tree;

use base::Time;

pub use call_error::{CallError, ErrorKind};
pub use change::Change;
pub use outbox::{Level, Line, Outbox, Refusal};
pub use timers::{TimerKey, Timers};
pub use tree::Tree;

/// The id of an HTTP response with a body that stays open. The shell chooses it and never uses it twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// The id of an HTTP request that waits for its response. The shell chooses it and never uses it twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A state machine without I/O. Equal inputs at equal times, and an equal seed, lead to equal outboxes.
pub trait Core: Send + 'static {
    /// An input of the core: a message, a request, or the result of an output.
    type Input: Send + 'static;
    /// A change that must be durable before the outputs of its batch are carried out.
    type Persist: Send + 'static;
    /// An output of the core: a request to the shell, such as to send a message.
    type Output: Send + 'static;

    /// The input for the instant of [`Core::next_wake`].
    const WAKE: Self::Input;

    /// Handles one input. `now` is the time of the whole batch.
    fn handle(&mut self, input: Self::Input, now: Time, out: &mut Outbox<Self::Persist, Self::Output>);

    /// Ends a batch of inputs: does the work that is needed once for a batch, not for each input.
    fn end_batch(&mut self, now: Time, out: &mut Outbox<Self::Persist, Self::Output>);

    /// Returns when the core needs [`Core::WAKE`]; `None` if no timer is set. An earlier one is harmless.
    fn next_wake(&self) -> Option<Time>;

    /// Returns whether the core needs [`Core::WAKE`] at `now`.
    fn is_due(&self, now: Time) -> bool {
        self.next_wake().is_some_and(|at| at <= now)
    }
}
