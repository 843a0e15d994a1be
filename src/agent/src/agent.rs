//! The agent: its state, and where each input goes.
//!
//! What an input does is in the file named after it; this one only directs.

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
use crate::state::{ContainerName, Executor, Framework, Frameworks, Nested, Operations, Streams, Trouble};
use crate::texts::Texts;
use crate::timers::{Timer, Timers};

/// How far an agent has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentState {
    /// It waits for the executors of an earlier agent to come back.
    Recovering,
    /// It is not registered with the leading master.
    Disconnected,
    /// It is registered.
    Running,
    /// It ends its executors and then itself.
    Terminating,
}

/// Why an agent cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The checkpoints cannot be used.
    #[error("the agent cannot recover")]
    Recovery(#[from] RecoveryError),
    /// The agent's resources cannot be.
    #[error("the agent's resources cannot be used: {0}")]
    Resources(String),
    /// The agent has less than what is reserved on it.
    #[error(
        "the agent's resources are less than what is reserved on it: {why}\n\
         Give it what it had, or have it forget its reservations and volumes (the volumes' data stays on the disk):\n\
         rm -rf {directory}"
    )]
    Reserved {
        /// What is missing.
        why: String,
        /// The directory of the checkpointed resources.
        directory: String,
    },
    /// The agent is not what it was when it registered.
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
        /// What differs.
        why: Box<Incompatible>,
        /// The link that keeps the agent's id.
        latest: String,
    },
}

/// The agent's core.
pub struct Agent {
    pub(crate) config: Config,
    pub(crate) texts: Texts,
    /// What the agent registers with, with its id once it is known.
    pub(crate) info: Arc<pb::SlaveInfo>,
    pub(crate) id: Option<AgentId>,
    pub(crate) state: AgentState,
    /// It leaves by its own will: the next start is to be a new agent.
    pub(crate) unregistered: bool,
    pub(crate) master: Option<Pid>,
    pub(crate) registered: Option<Time>,
    pub(crate) random: Random,
    pub(crate) timers: Timers,
    pub(crate) streams: Streams,
    pub(crate) frameworks: Frameworks,
    /// The next executor heartbeats.
    pub(crate) heartbeats: Option<TimerKey>,
    /// Containers inside the executors' ones.
    pub(crate) nested: BTreeMap<ContainerName, Nested>,
    /// The agent's resources with reservations and volumes.
    pub(crate) total: Arc<Resources>,
    pub(crate) garbage: Garbage,
    /// When executors that have not come back are given up.
    pub(crate) recovery: Option<TimerKey>,
    /// When this process began, and how long it took to be as it was before.
    pub(crate) started: Time,
    pub(crate) recovery_time: Option<std::time::Duration>,
    /// The version of the agent's own resources, as offers refer to it.
    pub(crate) resource_version: [u8; 16],
    pub(crate) authentication: Authentication,
    pub(crate) registration: Option<TimerKey>,
    /// The longest wait before the next registration attempt.
    pub(crate) registration_wait: std::time::Duration,
    /// Whether this process has asked the present master to admit it.
    pub(crate) asked: bool,
    /// Whether the log reports an unreachable or silent master, since the last registration.
    pub(crate) has_complained: bool,
    /// What it had when it last asked to be admitted.
    pub(crate) announced: Option<Arc<Resources>>,
    /// Why checkpoints cannot be written, while they cannot; and the part of that in the last registration.
    pub(crate) trouble: Option<Trouble>,
    pub(crate) announced_trouble: Option<Trouble>,
    /// Whether registrations of one attempt differ in that: the master may have admitted the agent by the first of
    /// them.
    pub(crate) announced_both: bool,
    /// Tasks that this batch has refused because of that.
    pub(crate) refused: Vec<(FrameworkId, base::TaskId)>,
    pub(crate) ping: Option<TimerKey>,
    pub(crate) ping_timeout: std::time::Duration,
    pub(crate) drain: Option<pb::DrainConfig>,
    pub(crate) drain_start: Option<Time>,
    pub(crate) operations: Operations,
    /// The last requested change of volumes, and the last one that is done.
    pub(crate) volume_change: u64,
    pub(crate) volumes_settled: u64,
    /// While these differ: the volumes that were there before, and may be there still.
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
            Input::CheckpointsFailing { why, needs_room } => self.checkpoints_failing(&why, needs_room, now, out),
            Input::CheckpointsWork => self.checkpoints_work(now, out),
            Input::Shutdown { unregister } => self.shut_down(unregister, now, out),
            Input::Wake => {}
        }
    }

    /// Creates an agent that recovers what an earlier one left. `info` is what it registers with, without an id.
    ///
    /// # Errors
    /// When it must not start: see [`StartError`].
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
            has_complained: false,
            announced: None,
            trouble: None,
            announced_trouble: None,
            announced_both: false,
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

    /// The agent as it is now; the same view as before while nothing has changed.
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
            // These were handled above: their senders are other processes than the master.
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

    /// Sends a message.
    pub(crate) fn send(&self, to: &Pid, message: impl Into<Outgoing>, out: &mut Outbox) {
        out.outputs.push(Output::Send { to: to.clone(), message: Arc::new(message.into()) });
    }

    /// Sends a message to the leading master; without one it is lost.
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

    /// Replaces a checkpoint.
    pub(crate) fn checkpoint(&self, path: String, bytes: Vec<u8>, out: &mut Outbox) {
        out.persist.push(Persist::Replace { path, bytes });
    }

    /// The agent's id as messages carry it.
    pub(crate) fn slave_id(&self) -> pb::SlaveId {
        pb::SlaveId { value: self.id.as_ref().map(Into::into).unwrap_or_default() }
    }
}
