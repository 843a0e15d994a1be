//! A world: the real cores of a master, of agents and of schedulers, under a virtual clock.
//!
//! Only what connects the cores is modelled: networks, disks, processes. Set-up and seed determine a run;
//! [`World::digest`] covers every message to a scheduler. This module does not depend on scenarios or reports.

mod agents;
mod checkpoints;
pub(crate) mod clock;
mod convert;
mod defect;
mod deposed;
mod digest;
mod disk;
mod dropped;
mod event;
mod executors;
mod faults;
mod light;
mod master;
mod model;
pub(crate) mod network;
mod note;
pub(crate) mod queue;
mod recording;
mod schedulers;
mod view;
mod volumes;
mod writer;

use std::time::Duration;

use base::Time;
use rand_distr::{Distribution, StandardUniform};
use sdk::Scheduler;
use sdk::v1::FrameworkInfo;
use slab::Slab;

use crate::dist::Dist;
use crate::seeds::{Rng, Seed};
use agents::AgentHost;
pub use agents::AgentSpec;
pub use defect::Defect;
use deposed::DeposedMaster;
use digest::Digest;
pub use disk::{DiskError, Refusal};
use event::Event;
pub use event::{CrashPoint, PlannedCrash};
use executors::Executor;
pub use faults::Process;
use light::LightTask;
use master::MasterHost;
pub use model::{Fidelity, Model};
pub use note::{CallRefusal, Note};
use queue::Queue;
use recording::Recording;
use schedulers::SchedulerHost;

/// Time at which every world begins; late enough that no timestamp is negative.
pub const BEGIN: Time = Time::from_secs(1_000_000_000);

/// A duration that exceeds every run.
const NEVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// A function that receives every event of a world, in its `Debug` form.
pub type Trace = Box<dyn FnMut(&dyn std::fmt::Debug)>;

/// An observer of a world, which receives the messages between schedulers and the master and changes nothing.
pub trait Observer {
    /// Called when a scheduler has received an event.
    fn received(&mut self, scheduler: usize, event: &sdk::v1::scheduler::Event, now: Time);
    /// Called when a scheduler has made a call, which has not arrived yet.
    fn called(&mut self, scheduler: usize, call: &sdk::v1::scheduler::Call, now: Time);
    /// Called when a task starts on an agent, whether or not the master knows it.
    fn started(&mut self, framework: &str, task: &str, now: Time);
    /// Called when a task has ended on its agent.
    fn ended(&mut self, framework: &str, task: &str, now: Time);
    /// Called for events that no single process can report.
    fn noted(&mut self, _note: &Note<'_>, _now: Time) {}
}

impl Observer for () {
    fn received(&mut self, _: usize, _: &sdk::v1::scheduler::Event, _: Time) {}
    fn called(&mut self, _: usize, _: &sdk::v1::scheduler::Call, _: Time) {}
    fn started(&mut self, _: &str, _: &str, _: Time) {}
    fn ended(&mut self, _: &str, _: &str, _: Time) {}
}

/// The parameters of a framework in a world.
pub struct FrameworkSpec {
    /// The framework's `FrameworkInfo`.
    pub info: FrameworkInfo,
    /// Creates the scheduler, once for each start of its process.
    pub scheduler: Box<dyn FnMut() -> Box<dyn Scheduler>>,
    /// Whether the scheduler's saved state survives its process.
    pub persists_state: bool,
    /// Time after the beginning at which the process starts.
    pub start: Duration,
}

/// The parameters of a world.
pub struct Setup {
    /// Settings of the master.
    pub master: ::master::Config,
    /// Agents of the cluster.
    pub agents: Vec<AgentSpec>,
    /// Frameworks of the cluster.
    pub frameworks: Vec<FrameworkSpec>,
    /// Parameters of the modelled networks, disks and processes.
    pub model: Model,
}

/// A cluster under a virtual clock.
pub struct World<O> {
    now: Time,
    queue: Queue<Event>,
    model: Model,
    seed: Seed,
    network_rng: Rng,
    disk_rng: Rng,
    master: MasterHost,
    /// The former leading master, until it detects that it was deposed.
    deposed: Option<Box<DeposedMaster>>,
    agents: Vec<AgentHost>,
    schedulers: Vec<SchedulerHost>,
    executors: Slab<Executor>,
    light_tasks: Slab<LightTask>,
    /// Last number given to a stream, request or process.
    serial: u64,
    events: u64,
    /// Number of batches that masters have handled.
    batches: u64,
    digest: Digest,
    /// Buffer for the outputs of a session.
    wanted: Vec<sdk::Output>,
    /// Buffer for the outputs of an agent's batch; empty between batches.
    agent_out: agent::Outbox,
    defect: Option<Defect>,
    /// Receives every event before it is handled.
    trace: Option<Trace>,
    /// Recording of the master's inputs, if it was requested.
    recording: Option<Recording>,
    observer: O,
}

impl<O: Observer> World<O> {
    /// Creates a world whose processes are about to start: the master, then the agents and the schedulers.
    pub fn new(mut setup: Setup, seed: Seed, observer: O) -> World<O> {
        if setup.model.fidelity == Fidelity::Light {
            // Light agents have no faults, and no message to them is lost, so every ping would be answered in time.
            setup.master.agent_ping_timeout = NEVER;
        }
        let mut world = World {
            now: BEGIN,
            queue: Queue::default(),
            seed,
            network_rng: seed.child("network").rng(),
            disk_rng: seed.child("disks").rng(),
            master: MasterHost::new(setup.master),
            deposed: None,
            agents: Vec::new(),
            schedulers: Vec::new(),
            executors: Slab::new(),
            light_tasks: Slab::new(),
            serial: 0,
            events: 0,
            batches: 0,
            digest: Digest::default(),
            wanted: Vec::new(),
            agent_out: agent::Outbox::default(),
            defect: None,
            trace: None,
            recording: None,
            observer,
            model: setup.model,
        };
        world.queue.push(BEGIN, Event::StartMaster);
        for (n, spec) in setup.agents.into_iter().enumerate() {
            // Agents start one after the other, as real machines do; the master leads by then.
            let at = BEGIN + Duration::from_millis(10) + Duration::from_micros(20 * n as u64);
            world.agents.push(AgentHost::new(n, spec, seed.nth("agent", n)));
            world.queue.push(at, Event::StartAgent(n as u32));
        }
        for (n, spec) in setup.frameworks.into_iter().enumerate() {
            let at = BEGIN + Duration::from_millis(10) + spec.start;
            world.schedulers.push(SchedulerHost::new(spec, seed.nth("scheduler", n)));
            world.queue.push(at, Event::StartScheduler(n as u32));
        }
        world
    }

    /// Returns the time of the virtual clock.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the number of events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns a hash over all messages to schedulers with their times. Equal runs have equal digests.
    pub fn digest(&self) -> u64 {
        self.digest.value()
    }

    /// Returns the master's core; `None` while its process does not run.
    pub fn master(&mut self) -> Option<&mut ::master::Master> {
        self.master.core.as_mut()
    }

    /// Returns the observer of the world.
    pub fn observer(&mut self) -> &mut O {
        &mut self.observer
    }

    /// Ends the world and returns the observer.
    pub fn into_observer(self) -> O {
        self.observer
    }

    /// Wakes a scheduler, which receives `Event::Wake` now.
    pub fn wake_scheduler(&mut self, scheduler: usize) {
        if let Some(host) = self.schedulers.get(scheduler) {
            let generation = host.generation;
            self.queue.push(self.now, Event::WakeScheduler { scheduler: scheduler as u32, generation });
        }
    }

    /// Returns whether every scheduler's session has ended.
    pub fn all_ended(&self) -> bool {
        self.schedulers.iter().all(|host| host.ended)
    }

    /// Handles all events that are due until `end`, and sets the clock to it.
    pub fn run_until(&mut self, end: Time) {
        while let Some((at, event)) = self.queue.pop_until(end) {
            self.advance(at, event);
        }
        self.now = self.now.max(end);
    }

    /// Handles the next event. Returns `false` if there is none.
    pub fn step(&mut self) -> bool {
        let Some((at, event)) = self.queue.pop() else { return false };
        self.advance(at, event);
        true
    }

    fn advance(&mut self, at: Time, event: Event) {
        self.now = self.now.max(at);
        self.events += 1;
        self.handle_event(event);
    }

    /// Passes every event to `trace` before it is handled.
    pub fn set_trace(&mut self, trace: Trace) {
        self.trace = Some(trace);
    }

    fn handle_event(&mut self, event: Event) {
        if let Some(trace) = &mut self.trace {
            trace(&event);
        }
        match event.master() {
            Some(generation) if self.is_deposed(generation) => self.as_deposed(|world| world.dispatch(event)),
            _ => self.dispatch(event),
        }
    }

    fn dispatch(&mut self, event: Event) {
        match event {
            Event::Master { generation, via, input } => self.master_arrival(generation, via, input),
            Event::MasterBatch { generation } => self.master_batch(generation),
            Event::MasterWritten { generation } => self.master_written(generation),
            Event::MasterCrashes { generation, planned_crash } => self.master_crashes(generation, planned_crash),
            Event::MasterWake { generation } => self.master_wake(generation),
            Event::StartMaster => self.start_master(),
            Event::Agent { agent, generation, epoch, input } => self.agent_arrival(agent, generation, epoch, input),
            Event::AgentBatch { agent, generation } => self.agent_batch(agent, generation),
            Event::AgentWritten { agent, generation } => self.agent_written(agent, generation),
            Event::AgentDiskCheck { agent, generation } => self.check_agent_disk(agent, generation),
            Event::AgentVolumes { agent, generation } => self.agent_volumes_change(agent, generation),
            Event::AgentCrashes { agent, generation, planned_crash } => {
                self.agent_crashes(agent, generation, planned_crash)
            }
            Event::DepositionDetected { generation } => self.end_deposed_master(generation),
            Event::SchedulerDetects(scheduler) => self.scheduler_detects(scheduler),
            Event::Detect { agent, generation } => self.detect(agent, generation),
            Event::AgentRejoined(agent) => self.agent_rejoined(agent),
            Event::SchedulerRejoined(scheduler) => self.scheduler_rejoined(scheduler),
            Event::AgentWake { agent, generation } => self.agent_wake(agent, generation),
            Event::StartAgent(agent) => self.start_agent(agent),
            Event::Light { agent, epoch, message } => self.light_message(agent, epoch, message),
            Event::LightTask { agent, task, serial, state } => self.light_task(agent, task, serial, state),
            Event::Scheduler { scheduler, connection, what } => self.scheduler_arrival(scheduler, connection, what),
            Event::SchedulerWake { scheduler, generation } => self.scheduler_wake(scheduler, generation),
            Event::WakeScheduler { scheduler, generation } => self.scheduler_woken(scheduler, generation),
            Event::StartScheduler(scheduler) => self.start_scheduler(scheduler),
            Event::Executor { executor, serial, what } => self.executor_arrival(executor, serial, what),
        }
    }

    /// Returns a number that was not used before, to identify a stream, request or process.
    fn next_id(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Draws the one-way latency of a message.
    fn latency(&mut self) -> Duration {
        self.model.latency.draw(&mut self.network_rng)
    }

    /// Draws a duration from one of the model's distributions, such as that of a durable write.
    fn draw_duration(&mut self, dist: fn(&Model) -> &Dist) -> Duration {
        dist(&self.model).draw(&mut self.disk_rng)
    }

    /// Draws a number between 0 and 1.
    fn unit(rng: &mut Rng) -> f64 {
        StandardUniform.sample(rng)
    }
}

#[cfg(test)]
mod tests;
