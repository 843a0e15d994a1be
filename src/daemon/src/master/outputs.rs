//! Carries out the outputs of the master's core: it sends messages to the network and events to streams, and writes the
//! registry to disk.
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
use master::{Answer, ExcludedAgents, ExplainError, Input, Master, Outbox, Output, RegistryOp, Sender, Snapshot};
use protos::mesos::master::Event;
use resources::Quantities;
use wire::libprocess::Network;

use super::record::Recording;
use super::registry::RegistryStore;
use super::views;
use super::views::visibility::Visibility;
use crate::acls::Caller;
use crate::clock::Stopwatch;
use crate::driver::CoreShell;
use crate::metrics::{Metrics, Timings};
use crate::pending_requests::PendingRequests;
use crate::streams::{LastEvent, Streams};

/// The core, with the measured durations of its allocation runs: the core itself reads no clock.
pub(super) struct TimedMaster {
    core: Master,
    runs: Runs,
    /// Start of the current batch; `None` between batches.
    began: Option<Stopwatch>,
    recording: Option<Recording>,
}

/// The allocation runs so far.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    count: u64,
    took: Arc<Mutex<Timings>>,
    latency: Arc<Mutex<Timings>>,
}

/// Period of the statistics of allocation runs.
const RUNS_WINDOW: Duration = Duration::from_secs(3600);

impl TimedMaster {
    pub(super) fn new(core: Master, recording: Option<Recording>) -> TimedMaster {
        let timings = || Arc::new(Mutex::new(Timings::new(RUNS_WINDOW)));
        TimedMaster { core, runs: Runs { count: 0, took: timings(), latency: timings() }, began: None, recording }
    }

    /// Returns a snapshot of the core's state, and the allocation runs.
    pub(super) fn snapshot(&mut self) -> (Arc<Snapshot>, Runs) {
        (self.core.snapshot(), self.runs.clone())
    }

    /// Returns the authenticated principal of a libprocess client.
    pub(super) fn principal(&self, pid: &Pid) -> Option<Arc<str>> {
        self.core.principal(pid)
    }

    /// Returns the policies of holding and refusal.
    pub(super) fn policies(&mut self) -> Policies {
        self.core.policies().clone()
    }

    /// Explains why a framework has no offers.
    ///
    /// # Errors
    /// An invalid framework, role or need.
    pub(super) fn explain(
        &mut self,
        framework: &str,
        role: Option<&str>,
        need: &Quantities,
    ) -> Result<Vec<Explanation>, ExplainError> {
        self.core.explain(framework, role, need)
    }

    /// Returns the roles that each framework has suppressed, and the agents that its offer constraints exclude.
    pub(super) fn constraints(&mut self) -> Vec<ExcludedAgents> {
        self.core.constraints()
    }

    /// Returns the shares and fair shares of frameworks.
    pub(super) fn fairness(&mut self) -> Report {
        self.core.fairness()
    }
}

impl Runs {
    /// Sets `allocator/mesos/allocation_runs` and the timers of runs. A run never waits for another one: its latency is
    /// the time that the batch before it took.
    pub(super) fn write_metrics(&self, metrics: &mut Metrics) {
        metrics.counter("allocator/mesos/allocation_runs", self.count as f64);
        lock(&self.took).write_metrics("allocator/mesos/allocation_run_ms", metrics);
        lock(&self.latency).write_metrics("allocator/mesos/allocation_run_latency_ms", metrics);
    }
}

impl Core for TimedMaster {
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
    /// The stream is open: send the response of the stream.
    Open,
    /// Respond with this answer.
    Answer(Answer),
}

/// The objects that the core's outputs act on. Shared with the routes.
pub(super) struct Shell {
    pub(super) network: Network,
    pub(super) pid: Pid,
    pub(super) streams: Streams,
    /// Operator event that was sent last: it is sent to all operators' streams.
    pub(super) last_event: LastEvent<Event>,
    pub(super) pending_requests: PendingRequests<Outcome>,
    pub(super) registry: Mutex<RegistryStore>,
    /// The access control lists.
    pub(super) authorizer: Authorizer,
    /// Reason why the process must end; `None` until the core has decided that.
    pub(super) exit: tokio::sync::watch::Sender<Option<String>>,
}

impl CoreShell<TimedMaster> for Shell {
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
            Output::OpenStream { request, .. } => self.pending_requests.answer(request.0, Outcome::Open),
            Output::SchedulerEvent { stream, event } => self.streams.send(stream.0, &*event),
            Output::OperatorSubscribed { stream, snapshot, principal } => {
                self.operator_subscribed(stream.0, &snapshot, principal);
            }
            Output::OperatorEvent { stream, event } => {
                self.streams.send_record(stream.0, |encoding| self.last_event.record(&event, encoding));
            }
            Output::CloseStream { stream } => self.streams.close(stream.0),
            Output::Respond { request, answer } => self.pending_requests.answer(request.0, Outcome::Answer(answer)),
            Output::Refuse { request, error, .. } => {
                self.pending_requests.answer(request.0, Outcome::Answer(Err(error)))
            }
            Output::Exit { reason } => {
                self.exit.send_replace(Some(reason));
            }
        }
    }
}

impl Shell {
    fn operator_subscribed(&self, stream: u64, snapshot: &Arc<Snapshot>, principal: Option<Arc<str>>) {
        let visibility = Visibility::of(Caller::new(self.authorizer.clone(), principal));
        let snapshot = snapshot.clone();
        self.streams.send_first(stream, move |format| views::calls::subscribed(&snapshot, &visibility, format));
    }
}
