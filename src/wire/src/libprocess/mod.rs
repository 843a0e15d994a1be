//! libprocess messages between processes (docs/mesos/libprocess.md): received on the HTTP port, sent over connections
//! of this process.
//!
//! A message is an HTTP POST to `/<process>/<name>` that names its sender. There is no reply channel: a process answers
//! with a message of its own. This module does not know what messages mean.
//!
//! It differs from Mesos in one point: a sender's host name is not resolved; its pid must have an IPv4 address.

mod answer;
mod chunked;
mod connection;
mod encode;
mod head;
mod incoming;
mod message;
mod network;
mod peer;
mod replay;
mod sender_token;

pub(crate) use answer::date_now;
pub(crate) use incoming::{Incoming, Outcome, poll_read_shared};
pub(crate) use message::deliver;
pub use message::{ConnectionId, Delivery, Message, MessageSink, NoMessages, Origin, Refusal};
pub use network::{ExitedSink, Network};
pub use replay::replay;
pub use sender_token::{InvalidSenderToken, SenderToken};
