//! Carries out the outputs of the master's core: messages go to the network, events to streams, the registry to disk.
//!
//! It decides nothing.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use allocator::Explanation;
use allocator::fairness::Report;
use allocator::policies::Policies;
use authorizer::Authorizer;
use base::{Pid, Time, lock};
use cores::Core;
use master::{Answer, ExplainError, Input, KeptFrom, Master, Outbox, Output, RegistryOp, Sender, Snapshot};
use protos::mesos::master::Event;
use resources::Quantities;
use wire::libprocess::Network;

use super::record::Recording;
use super::registry::RegistryStore;
use super::views;
use super::views::sight::Sight;
use crate::acls::Asker;
use crate::answers::Answers;
use crate::clock::Stopwatch;
use crate::driver::World;
use crate::metrics::{Metrics, Timings};
use crate::streams::{LastEvent, Streams};

/// The core, and what its runs of the allocator have cost: the core itself reads no clock.
pub(super) struct Live {
    core: Master,
    runs: Runs,
    /// When the batch began that is being handled.
    began: Option<Stopwatch>,
    recording: Option<Recording>,
}

/// The allocator's runs so far.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    count: u64,
    took: Arc<Mutex<Timings>>,
    latency: Arc<Mutex<Timings>>,
}

/// How far back the statistics of runs reach.
const RUNS_WINDOW: Duration = Duration::from_secs(3600);

impl Live {
    pub(super) fn new(core: Master, recording: Option<Recording>) -> Live {
        let timings = || Arc::new(Mutex::new(Timings::new(RUNS_WINDOW)));
        Live { core, runs: Runs { count: 0, took: timings(), latency: timings() }, began: None, recording }
    }

    /// What a reader may see.
    pub(super) fn snapshot(&mut self) -> (Arc<Snapshot>, Runs) {
        (self.core.snapshot(), self.runs.clone())
    }

    /// The principal that a libprocess client has proved to be.
    pub(super) fn principal(&self, pid: &Pid) -> Option<Arc<str>> {
        self.core.principal(pid)
    }

    /// The policies of holding and refusal.
    pub(super) fn policies(&mut self) -> Policies {
        self.core.policies().clone()
    }

    /// Why a framework has no offers.
    ///
    /// # Errors
    /// What is wrong with the question.
    pub(super) fn explain(
        &mut self,
        framework: &str,
        role: Option<&str>,
        need: &Quantities,
    ) -> Result<Vec<Explanation>, ExplainError> {
        self.core.explain(framework, role, need)
    }

    /// What suppressed roles and offer constraints keep from each framework.
    pub(super) fn constraints(&mut self) -> Vec<KeptFrom> {
        self.core.constraints()
    }

    /// Shares and fair shares of frameworks.
    pub(super) fn fairness(&mut self) -> Report {
        self.core.fairness()
    }
}

impl Runs {
    /// `allocator/mesos/allocation_runs` and the timers of runs. A run never waits for another: its latency is the time
    /// that the batch before it took.
    pub(super) fn tell(&self, metrics: &mut Metrics) {
        metrics.counter("allocator/mesos/allocation_runs", self.count as f64);
        lock(&self.took).tell("allocator/mesos/allocation_run_ms", metrics);
        lock(&self.latency).tell("allocator/mesos/allocation_run_latency_ms", metrics);
    }
}

impl Core for Live {
    type Input = Input;
    type Persist = RegistryOp;
    type Output = Output;

    const WAKE: Input = Input::Wake;

    fn handle(&mut self, input: Input, now: Time, out: &mut Outbox) {
        self.began.get_or_insert_with(Stopwatch::start);
        if let Some(recording) = &mut self.recording {
            recording.input(&input);
        }
        self.core.handle(input, now, out);
    }

    fn end_batch(&mut self, now: Time, out: &mut Outbox) {
        let run = Stopwatch::start();
        self.core.end_batch(now, out);
        self.runs.count += 1;
        let began = self.began.take().unwrap_or(run);
        lock(&self.runs.latency).add(began, began.until(run));
        lock(&self.runs.took).add(run, run.elapsed());
        if let Some(recording) = &mut self.recording {
            recording.end_batch(now, out);
        }
    }

    fn next_wake(&self) -> Option<Time> {
        self.core.next_wake()
    }
}

/// The result of a request to the core.
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
    /// The operators' event that was sent last: it goes to all their streams.
    pub(super) last_event: LastEvent<Event>,
    pub(super) answers: Answers<Outcome>,
    pub(super) registry: Mutex<RegistryStore>,
    /// The access control lists.
    pub(super) authorizer: Authorizer,
    /// Why the process must end, once the core has decided so.
    pub(super) exit: tokio::sync::watch::Sender<Option<String>>,
}

impl World<Live> for Shell {
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
            Output::OperatorSubscribed { stream, snapshot, principal } => {
                self.operator_subscribed(stream.0, &snapshot, principal);
            }
            Output::OperatorEvent { stream, event } => {
                self.streams.send_record(stream.0, |encoding| self.last_event.record(&event, encoding));
            }
            Output::CloseStream { stream } => self.streams.close(stream.0),
            Output::Respond { request, answer } => self.answers.answer(request.0, Outcome::Answer(answer)),
            Output::Refuse { request, error, .. } => self.answers.answer(request.0, Outcome::Answer(Err(error))),
            Output::Exit { reason } => {
                self.exit.send_replace(Some(reason));
            }
        }
    }
}

impl Shell {
    fn operator_subscribed(&self, stream: u64, snapshot: &Arc<Snapshot>, principal: Option<Arc<str>>) {
        let sight = Sight::of(Asker::new(self.authorizer.clone(), principal));
        self.streams.send_encoded(stream, |format| views::calls::subscribed(snapshot, &sight, format));
    }
}
