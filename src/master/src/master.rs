//! The core itself: its state, its entry points, and the lookups that every other file uses.
//!
//! The file named like a message or call, below `messages/`, `calls/` and `operator/`, handles it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use allocator::Quota;
use allocator::policies::Policies;
use base::{Pid, Time};
use cores::{Core, StreamId};
use protos::mesos::{self, internal::Registry};
use resources::Role;

use crate::agents::{AbsentAgents, Agents};
use crate::allocation::Allocation;
use crate::config::Config;
use crate::counters::{Counter, Counters};
use crate::frameworks::Frameworks;
use crate::io::{Input, Outbox, Output};
use crate::offers::Offers;
use crate::operations::Operations;
use crate::operator::Subscribers;
use crate::registry::RegistryOp;
use crate::snapshot::Snapshot;
use crate::state::{Agent, AgentKey, Framework, FrameworkKey, Maintenance, TaskKey};
use crate::timers::{Timer, Timers};
use crate::tracked::Tracked;

/// The master's core: a state machine without clock, sockets or files.
pub struct Master {
    pub(crate) config: Config,
    pub(crate) info: Arc<mesos::MasterInfo>,
    pub(crate) now: Time,
    pub(crate) started: Time,

    pub(crate) agents: Agents,
    pub(crate) frameworks: Frameworks,
    pub(crate) offers: Offers,
    pub(crate) operations: Operations,
    pub(crate) absent: AbsentAgents,
    pub(crate) counters: Tracked<Counters>,
    pub(crate) weights: Tracked<BTreeMap<String, f64>>,
    /// Quotas by role; empty ones are left out.
    pub(crate) quotas: Tracked<Arc<BTreeMap<Role, Quota>>>,
    /// Roles whose quotas were emptied since this master started. They are still listed (OPM-41).
    pub(crate) emptied_quotas: Tracked<Arc<BTreeSet<Role>>>,
    pub(crate) maintenance: Tracked<Maintenance>,

    pub(crate) peers: crate::peers::Peers,
    pub(crate) subscribers: Tracked<Subscribers>,
    pub(crate) timers: Timers,
    pub(crate) allocation: Allocation,
    pub(crate) removals: crate::agents::Removals,
    /// Queues of drivers' messages that wait for their rate limits.
    pub(crate) rate_limit_queues: crate::throttle::RateLimitQueues,
    pub(crate) snapshot: Option<Arc<Snapshot>>,
    pub(crate) startup: Vec<RegistryOp>,
}

/// Shortest interval of allocation runs, used in place of an interval of zero.
const LEAST_INTERVAL: Duration = Duration::from_millis(1);

impl Core for Master {
    type Input = Input;
    type Persist = RegistryOp;
    type Output = Output;

    const WAKE: Input = Input::Wake;

    /// Handles one input. Offers are made at the end of the batch.
    fn handle(&mut self, input: Input, now: Time, out: &mut Outbox) {
        self.begin(now, out);
        match input {
            Input::Message { from, message } => self.message(from, message, out),
            Input::Authenticating { pid, attempt } => self.authenticating(pid, attempt),
            Input::Authenticated { pid, attempt, principal } => self.authenticated(pid, attempt, principal, out),
            Input::Exited { pid } => self.exited(&pid, out),
            Input::Subscribe { request, stream, stream_text, call, principal } => {
                self.subscribe_http(request, stream, stream_text, *call, principal, out);
            }
            Input::SchedulerCall { request, stream_id, call, principal } => {
                self.scheduler_call(request, stream_id, call, principal, out);
            }
            Input::StreamClosed { stream } => self.stream_closed(stream, out),
            Input::OperatorCall { request, call, principal } => self.operator_call(request, *call, principal, out),
            Input::OperatorSubscribe { request, stream, principal } => {
                self.operator_subscribe(request, stream, principal, out);
            }
            Input::Whitelist { hostnames } => self.allocation.set_whitelist(hostnames),
            Input::KillTask { request, kill, principal } => self.kill_task(request, *kill, principal, out),
            Input::UpdatePolicies { request, policies } => self.update_policies(request, *policies, out),
            Input::Wake => self.wake(out),
        }
        self.settle_drained(out);
    }

    /// Makes offers from the resources of agents whose state has changed.
    fn end_batch(&mut self, now: Time, out: &mut Outbox) {
        self.begin(now, out);
        self.make_offers(out);
    }

    fn next_wake(&self) -> Option<Time> {
        [self.timers.next(), self.allocation.next_wake()].into_iter().flatten().min()
    }
}

impl Master {
    /// Creates a master that leads from `now` on. `info.id` must not have been used by another master. `registry` is
    /// the state that the former masters have left. `seed` seeds everything that is random.
    ///
    /// The first batch persists [`RegistryOp::Recover`].
    pub fn new(config: Config, info: mesos::MasterInfo, registry: &Registry, seed: u64, now: Time) -> Master {
        let mut master = Master {
            allocation: Allocation::new(&config, &info, seed, now),
            startup: vec![RegistryOp::Recover(Box::new(info.clone()))],
            frameworks: Frameworks::new(&info.id, &config),
            config,
            agents: Agents::new(&info.id),
            offers: Offers::new(&info.id),
            info: Arc::new(info),
            now,
            started: now,
            operations: Operations::new(seed),
            absent: AbsentAgents::new(registry),
            counters: Tracked::default(),
            weights: Tracked::default(),
            quotas: Tracked::default(),
            emptied_quotas: Tracked::default(),
            maintenance: Tracked::default(),
            peers: Default::default(),
            subscribers: Tracked::default(),
            timers: Timers::default(),
            removals: Default::default(),
            rate_limit_queues: Default::default(),
            snapshot: None,
        };
        master.recover(registry);
        master.await_allocation();
        master
    }

    /// Returns the current state for readers. A new snapshot is made only if a table has changed.
    pub fn snapshot(&mut self) -> Arc<Snapshot> {
        // `|` evaluates all of them, so that each resets its mark.
        let changed = self.agents.take_changed()
            | self.frameworks.take_changed()
            | self.offers.take_changed()
            | self.operations.take_changed()
            | self.absent.take_changed()
            | self.counters.take_changed()
            | self.weights.take_changed()
            | self.quotas.take_changed()
            | self.emptied_quotas.take_changed()
            | self.maintenance.take_changed()
            | self.subscribers.take_changed();
        if let Some(snapshot) = self.snapshot.as_ref().filter(|_| !changed) {
            return Arc::clone(snapshot);
        }
        let snapshot = Arc::new(Snapshot::new(self));
        self.snapshot = Some(Arc::clone(&snapshot));
        snapshot
    }

    /// Returns the policies of offers and refusals in force.
    pub fn policies(&self) -> &Policies {
        self.allocation.allocator().policies()
    }

    /// Returns the shares of roles and frameworks with their fair shares, and how their offers ended.
    pub fn fairness(&self) -> allocator::fairness::Report {
        self.allocation.allocator().fairness()
    }

    fn begin(&mut self, now: Time, out: &mut Outbox) {
        self.now = now;
        self.allocation.set_time(now);
        out.persist.append(&mut self.startup);
    }

    fn wake(&mut self, out: &mut Outbox) {
        while let Some(timer) = self.timers.pop_due(self.now) {
            match timer {
                Timer::SchedulerHeartbeat { framework, epoch } => self.scheduler_heartbeat(framework, epoch, out),
                Timer::FrameworkFailover { framework, epoch } => self.failover_timeout(framework, epoch, out),
                Timer::OperatorHeartbeat { stream } => self.operator_heartbeat(stream, out),
                Timer::Ping { agent, observer } => self.ping(agent, observer, out),
                Timer::AgentReregister { agent, epoch } => self.reregister_timeout(agent, epoch, out),
                Timer::AgentRemoval => self.removal_permit(out),
                Timer::RateLimit => self.handle_due_messages(out),
                Timer::RecoveredAgents => self.recovered_timeout(out),
                Timer::OfferTimeout { offer } => self.offer_timeout(offer, out),
                Timer::InverseOfferTimeout { offer } => self.inverse_offer_timeout(offer, out),
                // The batch of this wake-up includes an allocation run.
                Timer::Allocation => self.await_allocation(),
                Timer::RegistryGc => self.registry_gc(out),
            }
        }
    }

    /// Sets the timer of the next allocation run, for the case that no input comes before.
    fn await_allocation(&mut self) {
        let interval = self.config.allocation_interval.max(LEAST_INTERVAL);
        self.timers.set(self.now + interval, Timer::Allocation);
    }

    fn exited(&mut self, pid: &Pid, out: &mut Outbox) {
        self.peers.forget(pid);
        if let Some(framework) = self.frameworks.key_of_pid(pid) {
            self.driver_exited(framework, out);
        }
        if let Some(agent) = self.agents.key_of_pid(pid) {
            self.agent_exited(agent, out);
        }
    }

    fn stream_closed(&mut self, stream: StreamId, out: &mut Outbox) {
        self.subscribers.remove(stream);
        // Without its entry the stream is not closed again.
        if let Some(framework) = self.frameworks.remove_stream(stream) {
            self.disconnect_framework(framework, out);
        }
    }

    pub(crate) fn count(&mut self, counter: Counter) {
        self.counters.add(counter);
    }

    pub(crate) fn agent(&self, key: AgentKey) -> Option<&Arc<Agent>> {
        self.agents.get(key)
    }

    pub(crate) fn framework(&self, key: FrameworkKey) -> Option<&Arc<Framework>> {
        self.frameworks.get(key)
    }

    pub(crate) fn agent_by_id(&self, id: &str) -> Option<AgentKey> {
        self.agents.key_of(id)
    }

    pub(crate) fn framework_by_id(&self, id: &str) -> Option<FrameworkKey> {
        self.frameworks.key_of(id)
    }

    /// Returns an active task of a framework by its id.
    pub(crate) fn task_by_id(&self, framework: FrameworkKey, id: &str) -> Option<TaskKey> {
        self.frameworks.task_key(framework, id)
    }
}
