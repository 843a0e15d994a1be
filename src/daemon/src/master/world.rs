//! The master core's side of the world: its messages go to the network, its events to streams, its registry to disk.
//!
//! It decides nothing.

use std::sync::{Arc, Mutex};

use base::{Pid, Time};
use master::{Answer, Input, Level, Master, Outbox, Output, RegistryOp, Sender, Snapshot};
use wire::libprocess::Network;

use super::registry::RegistryStore;
use super::views;
use crate::answers::Answers;
use crate::driver::{Core, World};
use crate::streams::Streams;
use crate::sync::lock;

impl Core for Master {
    type Input = Input;
    type Persist = RegistryOp;
    type Output = Output;

    fn batch(&mut self, inputs: &mut dyn Iterator<Item = Input>, now: Time) -> (Vec<RegistryOp>, Vec<Output>) {
        let mut out = Outbox::default();
        for input in inputs {
            self.handle(input, now, &mut out);
        }
        self.end_batch(now, &mut out);
        (out.persist, out.outputs)
    }

    fn next_wake(&self) -> Option<Time> {
        Master::next_wake(self)
    }

    fn wake() -> Input {
        Input::Wake
    }
}

/// What a request to the core comes to.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The stream is open: send its response.
    Open,
    /// Answer with this.
    Answer(Answer),
}

/// What the core's outputs act on. Shared by the routes.
pub(super) struct Shell {
    pub(super) network: Network,
    pub(super) pid: Pid,
    pub(super) streams: Streams,
    pub(super) answers: Answers<Outcome>,
    pub(super) registry: Mutex<RegistryStore>,
    /// Why the process is to end, once the core has said so.
    pub(super) exit: tokio::sync::watch::Sender<Option<String>>,
}

impl World<Master> for Shell {
    fn persist(&self, entries: Vec<RegistryOp>) -> anyhow::Result<()> {
        lock(&self.registry).apply(&entries)
    }

    fn carry_out(&self, output: Output) {
        match output {
            Output::Send { to, from, message } => {
                let from = match from {
                    Sender::Master => self.pid.clone(),
                    observer => Pid::new(&observer.to_string(), self.pid.address()),
                };
                self.network.send(&from, &to, &message.full_name(), &message.encode());
            }
            Output::Link { pid } => self.network.link(&pid),
            Output::Unlink { pid } => self.network.unlink(&pid),
            Output::OpenStream { request, .. } => self.answers.answer(request.0, Outcome::Open),
            Output::SchedulerEvent { stream, event } => self.streams.send(stream.0, &*event),
            Output::OperatorSubscribed { stream, snapshot } => self.operator_subscribed(stream.0, &snapshot),
            Output::OperatorEvent { stream, event } => self.streams.send(stream.0, &*event),
            Output::CloseStream { stream } => self.streams.close(stream.0),
            Output::Respond { request, answer } => self.answers.answer(request.0, Outcome::Answer(answer)),
            Output::Exit { reason } => {
                self.exit.send_replace(Some(reason));
            }
            Output::Log { level, text } => match level {
                Level::Warning => tracing::warn!("{text}"),
                Level::Info => tracing::info!("{text}"),
                Level::Debug => tracing::debug!("{text}"),
            },
        }
    }
}

impl Shell {
    fn operator_subscribed(&self, stream: u64, snapshot: &Arc<Snapshot>) {
        self.streams.send_encoded(stream, |format| views::calls::subscribed(snapshot, format));
    }
}
