//! State of the agent's core, and the dispatch of inputs to their handlers.
//!
//! The effect of an input is in the file of its name; this file only directs.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{AgentId, FrameworkId, Pid, Time};
use cores::{CallError, Core, ErrorKind, RequestId, TimerKey};
use protos::mesos as pb;
use resources::Resources;

use crate::authenticate::Authentication;
use crate::config::Config;
use crate::disk::{Recovered, RecoveryError};
use crate::gc::Garbage;
use crate::input::Input;
use crate::message::{Incoming, Outgoing};
use crate::output::{Answer, Outbox, Output, Persist};
use crate::oversubscription::Oversubscription;
use crate::random::Random;
use crate::reconfiguration::Incompatible;
use crate::snapshot::{Counters, Snapshot};
use crate::state::{CheckpointFailure, ContainerName, Executor, Framework, Frameworks, Nested, Operations, Streams};
use crate::texts::Texts;
use crate::timers::{Timer, Timers};

/// Phase of an agent's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentState {
    /// The agent waits for the executors of the previous agent process to reconnect.
    Recovering,
    /// The agent is not registered with the leading master.
    Disconnected,
    /// The agent is registered with the leading master.
    Running,
    /// The agent ends its executors and then exits.
    Terminating,
}

/// Reason why an agent cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The checkpoints cannot be used.
    #[error("the agent cannot recover")]
    Recovery(#[from] RecoveryError),
    /// The agent's resources, or the checkpointed volumes, are invalid.
    #[error("the agent's resources cannot be used: {0}")]
    Resources(String),
    /// The agent has fewer resources than are reserved on it.
    #[error(
        "the agent's resources are less than what is reserved on it: {why}\n\
         Restore the resources, or discard the reservations and volumes (the volumes' data stays on the disk):\n\
         rm -rf {directory}"
    )]
    Reserved {
        /// Resources that are missing.
        why: String,
        /// Directory of the checkpointed resources.
        directory: String,
    },
    /// The agent's resources, attributes or domain differ from those that it registered with.
    #[error(
        "Incompatible agent info detected: {why}\n\
         To restart this agent with a new agent id instead, do as follows:\n\
         rm -f {latest}\n\
         This ensures that the agent does not recover old live executors.\n\
         \n\
         If you use the Docker containerizer and think that the Docker daemon state is out of sync, also stop its containers.\n\
         Old agent info: see {latest}/slave.info"
    )]
    Reconfiguration {
        /// First difference that the reconfiguration policy does not permit.
        why: Box<Incompatible>,
        /// Path of the link `slaves/latest`, which keeps the agent's id.
        latest: String,
    },
}

/// The agent's state machine, without I/O.
pub struct Agent {
    pub(crate) config: Config,
    pub(crate) texts: Texts,
    /// Agent info of the registration, with the agent id once it is known.
    pub(crate) info: Arc<pb::SlaveInfo>,
    pub(crate) id: Option<AgentId>,
    pub(crate) state: AgentState,
    /// Whether the agent has left the cluster for good: its next start gets a new agent id.
    pub(crate) unregistered: bool,
    pub(crate) master: Option<Pid>,
    pub(crate) registered: Option<Time>,
    pub(crate) random: Random,
    pub(crate) timers: Timers,
    pub(crate) streams: Streams,
    pub(crate) frameworks: Frameworks,
    /// Timer of the next executor heartbeats.
    pub(crate) heartbeats: Option<TimerKey>,
    /// Nested and standalone containers by name.
    pub(crate) nested: BTreeMap<ContainerName, Nested>,
    /// The agent's resources with reservations and volumes.
    pub(crate) total: Arc<Resources>,
    pub(crate) garbage: Garbage,
    /// Timer after which executors that have not reconnected are destroyed.
    pub(crate) recovery: Option<TimerKey>,
    /// Start time of this process, and the time that recovery took.
    pub(crate) started: Time,
    pub(crate) recovery_time: Option<std::time::Duration>,
    /// UUID of the version of the agent's own resources, as offers refer to it.
    pub(crate) resource_version: [u8; 16],
    pub(crate) authentication: Authentication,
    pub(crate) registration: Option<TimerKey>,
    /// Upper bound of the random wait before the next registration attempt.
    pub(crate) registration_wait: std::time::Duration,
    /// Whether this process has sent a registration to the current master.
    pub(crate) asked: bool,
    /// Whether a warning about an unreachable or silent master was logged since the last registration.
    pub(crate) has_warned_of_master: bool,
    /// Total resources in the last registration that was sent.
    pub(crate) announced: Option<Arc<Resources>>,
    /// Reason why checkpoints cannot be written at present, and the reason in the last registration.
    pub(crate) checkpoint_failure: Option<CheckpointFailure>,
    pub(crate) announced_failure: Option<CheckpointFailure>,
    /// Whether registrations of one attempt differ in `announced_failure`: the master may have admitted the agent by
    /// the first of them.
    pub(crate) announcements_differ: bool,
    /// Tasks that were refused in this batch because checkpoints cannot be written.
    pub(crate) refused: Vec<(FrameworkId, base::TaskId)>,
    pub(crate) ping: Option<TimerKey>,
    pub(crate) ping_timeout: std::time::Duration,
    pub(crate) drain: Option<pb::DrainConfig>,
    pub(crate) drain_start: Option<Time>,
    pub(crate) operations: Operations,
    /// Number of the last requested change of volumes, and of the last completed one.
    pub(crate) volume_change: u64,
    pub(crate) volumes_settled: u64,
    /// Volumes from before the change that may still be on the disk, while the two numbers above differ.
    pub(crate) volumes_on_disk: Resources,
    pub(crate) oversubscription: Oversubscription,
    pub(crate) counters: Counters,
    view: Option<Arc<Snapshot>>,
}

impl Core for Agent {
    type Input = Input;
    type Persist = Persist;
    type Output = Output;

    const WAKE: Input = Input::Wake;

    fn handle(&mut self, input: Input, now: Time, out: &mut Outbox) {
        self.view = None;
        let before = out.outputs.len();
        self.dispatch(input, now, out);
        self.end_without_disk(before, out);
    }

    /// Fires due timers and sends due status updates.
    fn end_batch(&mut self, now: Time, out: &mut Outbox) {
        let before = out.outputs.len();
        while let Some(timer) = self.timers.pop_due(now) {
            self.view = None;
            self.fire(timer, now, out);
        }
        self.end_without_disk(before, out);
        self.forward_updates(now, out);
    }

    fn next_wake(&self) -> Option<Time> {
        [self.timers.next(), self.streams.next_wake()].into_iter().flatten().min()
    }
}

impl Agent {
    fn dispatch(&mut self, input: Input, now: Time, out: &mut Outbox) {
        match input {
            Input::Detected { master } => self.detected(master, now),
            Input::Message { from, message } => self.message(&from, message, now, out),
            Input::Authentication { attempt, from, message } => self.authentication(attempt, &from, message, now, out),
            Input::Exited { pid } => self.exited(&pid, now, out),
            Input::ExecutorSubscribe { stream, request, call, proof } => {
                self.subscribe_executor(stream, request, *call, proof, now, out);
            }
            Input::ExecutorCall { request, call, proof } => self.executor_call(request, *call, &proof, now, out),
            Input::ExecutorStreamClosed { stream } => self.executor_stream_closed(stream),
            Input::OperatorCall { request, call } => self.operator_call(request, *call, out),
            Input::ContainerNetworks { container, networks } => self.container_networks(&container, networks),
            Input::ContainerClass { container, class } => self.container_class(&container, class),
            Input::ContainerStarted { container, pid } => self.container_started(&container, pid, now, out),
            Input::ContainerStartFailed { container, why } => self.container_start_failed(&container, &why, now, out),
            Input::ContainerExited { container, status } => self.container_exited(&container, status, now, out),
            Input::ContainerLimited { container, reason, message, resources } => {
                self.container_limited(&container, reason, message, &resources);
            }
            Input::VolumesChanged { change } => self.volumes_changed(change, out),
            Input::ContainerUpdateFailed { container, why } => self.container_update_failed(&container, &why, out),
            Input::Measured { measurement } => self.measured(*measurement, now, out),
            Input::DiskUsage { fraction } => self.disk_usage(fraction, now, out),
            Input::CheckpointsFailing { why, lacks_space } => self.checkpoints_failing(&why, lacks_space, now, out),
            Input::CheckpointsWork => self.checkpoints_work(now, out),
            Input::Shutdown { unregister } => self.shut_down(unregister, now, out),
            Input::Wake => {}
        }
    }

    /// Creates an agent that recovers the state of the previous agent process. `info` is the agent info of the
    /// registration, without an id.
    ///
    /// # Errors
    /// When the agent must not start: see [`StartError`].
    pub fn new(
        config: Config,
        info: pb::SlaveInfo,
        recovered: Recovered,
        seed: u64,
        now: Time,
        out: &mut Outbox,
    ) -> Result<Agent, StartError> {
        let mut random = Random::new(seed);
        let resource_version = random.uuid();
        let registration_wait = config.registration_backoff_factor;
        let mut agent = Agent {
            texts: Texts::of(&config),
            config,
            info: Arc::new(info),
            id: None,
            state: AgentState::Recovering,
            unregistered: false,
            master: None,
            registered: None,
            random,
            timers: Timers::default(),
            streams: Streams::new(),
            frameworks: Frameworks::default(),
            heartbeats: None,
            nested: BTreeMap::new(),
            total: Arc::default(),
            garbage: Garbage::default(),
            recovery: None,
            started: now,
            recovery_time: None,
            resource_version,
            authentication: Authentication::default(),
            registration: None,
            registration_wait,
            asked: false,
            has_warned_of_master: false,
            announced: None,
            checkpoint_failure: None,
            announced_failure: None,
            announcements_differ: false,
            refused: Vec::new(),
            ping: None,
            ping_timeout: std::time::Duration::from_secs(75),
            drain: None,
            drain_start: None,
            operations: Operations::default(),
            volume_change: 0,
            volumes_settled: 0,
            volumes_on_disk: Resources::default(),
            oversubscription: Oversubscription::default(),
            counters: Counters::default(),
            view: None,
        };
        agent.recover(recovered, now, out)?;
        Ok(agent)
    }

    /// Returns a snapshot of the agent's state; the same one as before while nothing has changed.
    pub fn snapshot(&mut self) -> Arc<Snapshot> {
        if let Some(view) = &self.view {
            return Arc::clone(view);
        }
        let view = Arc::new(Snapshot {
            state: self.state,
            id: self.id.clone(),
            info: Arc::clone(&self.info),
            resources: Arc::clone(&self.total),
            master: self.master.clone(),
            registered: self.registered,
            recovery_time: self.recovery_time,
            frameworks: Arc::clone(self.frameworks.rows()),
            completed_frameworks: Arc::clone(self.frameworks.completed()),
            drain: self.drain,
            drain_start: self.drain_start,
            operations: Arc::clone(self.operations.rows()),
            oversubscribed: self.oversubscribed(),
            counters: self.counters.clone(),
            garbage: self.garbage.len(),
            garbage_kept_for: self.kept_for(),
        });
        self.view = Some(Arc::clone(&view));
        view
    }

    fn fire(&mut self, timer: Timer, now: Time, out: &mut Outbox) {
        match timer {
            Timer::Register => self.registration_is_due(now, out),
            Timer::Authentication => self.authentication_timed_out(now, out),
            Timer::PingTimeout => self.ping_timed_out(out),
            Timer::ExecutorRegistration { framework, executor, container } => {
                self.executor_registration_timed_out(&framework, &executor, &container, out);
            }
            Timer::ExecutorShutdown { framework, executor, container } => {
                self.executor_shutdown_timed_out(&framework, &executor, &container, now, out);
            }
            Timer::ExecutorReregistration => self.executor_reregistration_timed_out(now, out),
            Timer::ExecutorHeartbeats => self.send_heartbeats(now, out),
            Timer::CollectGarbage => self.collect_garbage(now, out),
            Timer::OperationRetry { uuid, wait } => self.report_operation(&uuid, wait, now, out),
            Timer::Estimate => self.estimate_is_due(now, out),
            Timer::CorrectUsage => self.correction_is_due(now, out),
            Timer::ExecutorReconnect => self.reconnect_executors(now, out),
        }
    }

    fn message(&mut self, from: &Pid, message: Box<Incoming>, now: Time, out: &mut Outbox) {
        match *message {
            Incoming::PingSlave(ping) => return self.ping(from, ping, now, out),
            Incoming::RegisterExecutor(register) => return self.register_executor(from, &register, now, out),
            Incoming::ReregisterExecutor(register) => return self.reregister_executor(from, register, now, out),
            Incoming::StatusUpdate(update) => return self.status_update_message(from, update, now, out),
            Incoming::ExecutorToFramework(message) => return self.executor_to_framework_message(from, message, out),
            Incoming::FrameworkToExecutor(message) => return self.framework_to_executor_message(from, message, out),
            _ => {}
        }
        if self.master.as_ref() != Some(from) {
            out.warn(format!("Dropped a message from {from}, which is not the leading master"));
            return;
        }
        match *message {
            Incoming::SlaveRegistered(answer) => self.slave_registered(answer, now, out),
            Incoming::SlaveReregistered(answer) => self.slave_reregistered(answer, now, out),
            Incoming::RunTask(run) => self.run_task(run, now, out),
            Incoming::RunTaskGroup(run) => self.run_task_group(run, now, out),
            Incoming::KillTask(kill) => self.kill_task(kill, now, out),
            Incoming::ShutdownExecutor(shutdown) => self.shutdown_executor_message(&shutdown, now, out),
            Incoming::ShutdownFramework(shutdown) => self.shutdown_framework_message(&shutdown, now, out),
            Incoming::StatusUpdateAcknowledgement(ack) => self.status_update_acknowledgement(&ack, now, out),
            Incoming::Shutdown(shutdown) => self.shutdown_message(shutdown, now, out),
            Incoming::ApplyOperation(apply) => self.apply_operation(apply, now, out),
            Incoming::AcknowledgeOperationStatus(ack) => self.acknowledge_operation_status(&ack, out),
            Incoming::ReconcileOperations(reconcile) => self.reconcile_operations(reconcile, out),
            Incoming::CheckpointResources(checkpoint) => self.checkpoint_resources_message(&checkpoint, out),
            Incoming::DrainSlave(drain) => self.drain_slave(drain, now, out),
            Incoming::UpdateFramework(update) => self.update_framework(update, now, out),
            // These were handled above: processes other than the master send them.
            Incoming::PingSlave(_)
            | Incoming::RegisterExecutor(_)
            | Incoming::ReregisterExecutor(_)
            | Incoming::StatusUpdate(_)
            | Incoming::ExecutorToFramework(_)
            | Incoming::FrameworkToExecutor(_) => {}
        }
    }

    pub(crate) fn framework_mut(&mut self, id: &str) -> Option<&mut Framework> {
        self.frameworks.get_mut(id)
    }

    pub(crate) fn executor_mut(&mut self, framework: &str, executor: &str) -> Option<&mut Executor> {
        self.frameworks.executor_mut(framework, executor)
    }

    pub(crate) fn executor(&self, framework: &str, executor: &str) -> Option<&Arc<Executor>> {
        self.frameworks.executor(framework, executor)
    }

    /// Sends a message to a process.
    pub(crate) fn send(&self, to: &Pid, message: impl Into<Outgoing>, out: &mut Outbox) {
        out.outputs.push(Output::Send { to: to.clone(), message: Arc::new(message.into()) });
    }

    /// Sends a message to the leading master; drops it if there is none.
    pub(crate) fn send_to_master(&self, message: impl Into<Outgoing>, out: &mut Outbox) {
        if let Some(master) = &self.master {
            self.send(master, message, out);
        }
    }

    pub(crate) fn respond(&self, request: RequestId, answer: Answer, out: &mut Outbox) {
        out.outputs.push(Output::Respond { request, answer });
    }

    pub(crate) fn reject(&self, request: RequestId, kind: ErrorKind, text: &str, out: &mut Outbox) {
        self.respond(request, Err(CallError::new(kind, text)), out);
    }

    pub(crate) fn exit(&mut self, code: i32, message: String, out: &mut Outbox) {
        self.state = AgentState::Terminating;
        out.outputs.push(Output::Exit { code, message });
    }

    /// Persists the new content of a checkpoint.
    pub(crate) fn checkpoint(&self, path: String, bytes: Vec<u8>, out: &mut Outbox) {
        out.persist.push(Persist::Replace { path, bytes });
    }

    /// Returns the agent's id in the form of messages; empty before the first registration.
    pub(crate) fn slave_id(&self) -> pb::SlaveId {
        pb::SlaveId { value: self.id.as_ref().map(Into::into).unwrap_or_default() }
    }
}
