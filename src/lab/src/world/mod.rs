//! A world: the real cores of a master, of agents and of schedulers, under a virtual clock.
//!
//! Only what lies between the cores is modelled: networks, disks, processes. Set-up and seed determine a run;
//! [`World::digest`] covers every message to a scheduler. This module does not know scenarios or reports.

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
use deposed::Deposed;
use digest::Digest;
pub use disk::{DiskError, Refusal};
use event::Event;
pub use event::{Doom, Moment};
use executors::Executor;
pub use faults::Process;
use light::LightTask;
use master::MasterHost;
pub use model::{Fidelity, Model};
pub use note::{CallRefusal, Note};
use queue::Queue;
use recording::Recording;
use schedulers::SchedulerHost;

/// When every world begins: late enough that no timestamp is negative.
pub const BEGIN: Time = Time::from_secs(1_000_000_000);

/// Longer than any world lasts.
const NEVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Receives events of a world, as their `Debug` writes them.
pub type Trace = Box<dyn FnMut(&dyn std::fmt::Debug)>;

/// Observer of a world: it sees the messages between schedulers and the master, and changes nothing.
pub trait Observer {
    /// A scheduler has received this event.
    fn received(&mut self, who: usize, event: &sdk::v1::scheduler::Event, now: Time);
    /// A scheduler has made this call; it is on its way.
    fn called(&mut self, who: usize, call: &sdk::v1::scheduler::Call, now: Time);
    /// A task runs on an agent, whether or not the master knows it.
    fn started(&mut self, framework: &str, task: &str, now: Time);
    /// It does not run any more.
    fn ended(&mut self, framework: &str, task: &str, now: Time);
    /// Another event, which no single process can report.
    fn noted(&mut self, _note: &Note<'_>, _now: Time) {}
}

impl Observer for () {
    fn received(&mut self, _: usize, _: &sdk::v1::scheduler::Event, _: Time) {}
    fn called(&mut self, _: usize, _: &sdk::v1::scheduler::Call, _: Time) {}
    fn started(&mut self, _: &str, _: &str, _: Time) {}
    fn ended(&mut self, _: &str, _: &str, _: Time) {}
}

/// A framework of a world.
pub struct FrameworkSpec {
    /// Its `FrameworkInfo`.
    pub info: FrameworkInfo,
    /// Makes its scheduler, once for each start of its process.
    pub scheduler: Box<dyn FnMut() -> Box<dyn Scheduler>>,
    /// Whether what it saves survives its process. Else nothing does.
    pub keeps: bool,
    /// When its process starts, after the beginning.
    pub start: Duration,
}

/// All that a world is made of.
pub struct Setup {
    /// The master's settings.
    pub master: ::master::Config,
    /// The agents.
    pub agents: Vec<AgentSpec>,
    /// The frameworks.
    pub frameworks: Vec<FrameworkSpec>,
    /// The modelled parts.
    pub model: Model,
}

/// A cluster in a box.
pub struct World<O> {
    now: Time,
    queue: Queue<Event>,
    model: Model,
    seed: Seed,
    network_rng: Rng,
    disk_rng: Rng,
    master: MasterHost,
    /// The master that led before, if it has not found out.
    deposed: Option<Box<Deposed>>,
    agents: Vec<AgentHost>,
    schedulers: Vec<SchedulerHost>,
    executors: Slab<Executor>,
    light_tasks: Slab<LightTask>,
    /// Names for streams, requests and processes.
    serial: u64,
    events: u64,
    /// Batches that the master has handled.
    batches: u64,
    digest: Digest,
    /// Buffer for the outputs of a session.
    wanted: Vec<sdk::Output>,
    /// Memory for what an agent's batch leads to; empty between batches.
    agent_out: agent::Outbox,
    defect: Option<Defect>,
    /// Receives every event before it happens.
    trace: Option<Trace>,
    /// Where the master's inputs are recorded.
    recording: Option<Recording>,
    observer: O,
}

impl<O: Observer> World<O> {
    /// A world whose processes are about to start: the master, then the agents and the schedulers.
    pub fn new(mut setup: Setup, seed: Seed, observer: O) -> World<O> {
        if setup.model.fidelity == Fidelity::Light {
            // Agents of which only the outside is modelled are always well, and nothing is lost on the way to them:
            // every ping would be answered in time.
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
            // Spread over some time, as machines come up; the master is there by then.
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

    /// The virtual clock.
    pub fn now(&self) -> Time {
        self.now
    }

    /// How many events have happened.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Hash over all messages to schedulers with their times: equal runs have equal digests.
    pub fn digest(&self) -> u64 {
        self.digest.value()
    }

    /// The master's core; none while its process is down.
    pub fn master(&mut self) -> Option<&mut ::master::Master> {
        self.master.core.as_mut()
    }

    /// The observer.
    pub fn observer(&mut self) -> &mut O {
        &mut self.observer
    }

    /// Ends the world, and returns the observer.
    pub fn into_observer(self) -> O {
        self.observer
    }

    /// Wakes a scheduler: it receives `Event::Wake` now.
    pub fn nudge(&mut self, who: usize) {
        if let Some(host) = self.schedulers.get(who) {
            let life = host.life;
            self.queue.push(self.now, Event::Nudge { who: who as u32, life });
        }
    }

    /// Whether every scheduler's session has ended.
    pub fn all_ended(&self) -> bool {
        self.schedulers.iter().all(|host| host.ended)
    }

    /// Lets all happen that is due until `end`, and the clock show it.
    pub fn run_until(&mut self, end: Time) {
        while let Some((at, event)) = self.queue.pop_until(end) {
            self.go_on(at, event);
        }
        self.now = self.now.max(end);
    }

    /// Executes the next event. `false` if there is none.
    pub fn step(&mut self) -> bool {
        let Some((at, event)) = self.queue.pop() else { return false };
        self.go_on(at, event);
        true
    }

    fn go_on(&mut self, at: Time, event: Event) {
        self.now = self.now.max(at);
        self.events += 1;
        self.happen(event);
    }

    /// Passes every event to `trace` before it happens.
    pub fn set_trace(&mut self, trace: Trace) {
        self.trace = Some(trace);
    }

    fn happen(&mut self, event: Event) {
        if let Some(trace) = &mut self.trace {
            trace(&event);
        }
        match event.master() {
            Some(life) if self.is_deposed(life) => self.as_deposed(|world| world.happen_here(event)),
            _ => self.happen_here(event),
        }
    }

    fn happen_here(&mut self, event: Event) {
        match event {
            Event::Master { life, over, input } => self.master_arrival(life, over, input),
            Event::MasterBatch { life } => self.master_batch(life),
            Event::MasterWritten { life } => self.master_written(life),
            Event::MasterDies { life, doom } => self.master_dies(life, doom),
            Event::MasterWake { life } => self.master_wake(life),
            Event::StartMaster => self.start_master(),
            Event::Agent { agent, life, epoch, input } => self.agent_arrival(agent, life, epoch, input),
            Event::AgentBatch { agent, life } => self.agent_batch(agent, life),
            Event::AgentWritten { agent, life } => self.agent_written(agent, life),
            Event::AgentTends { agent, life } => self.agent_tends(agent, life),
            Event::AgentVolumes { agent, life } => self.agent_volumes_change(agent, life),
            Event::AgentDies { agent, life, doom } => self.agent_dies(agent, life, doom),
            Event::FindsOut { life } => self.finds_out(life),
            Event::SchedulerDetects(who) => self.scheduler_detects(who),
            Event::Detect { agent, life } => self.detect(agent, life),
            Event::AgentRejoined(agent) => self.agent_rejoined(agent),
            Event::SchedulerRejoined(who) => self.scheduler_rejoined(who),
            Event::AgentWake { agent, life } => self.agent_wake(agent, life),
            Event::StartAgent(agent) => self.start_agent(agent),
            Event::Light { agent, epoch, message } => self.light_message(agent, epoch, message),
            Event::LightTask { agent, task, serial, state } => self.light_task(agent, task, serial, state),
            Event::Scheduler { who, connection, what } => self.scheduler_arrival(who, connection, what),
            Event::SchedulerWake { who, life } => self.scheduler_wake(who, life),
            Event::Nudge { who, life } => self.scheduler_nudge(who, life),
            Event::StartScheduler(who) => self.start_scheduler(who),
            Event::Executor { executor, serial, what } => self.executor_arrival(executor, serial, what),
        }
    }

    /// A number that names something, never used twice.
    fn name(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// One way through the network.
    fn latency(&mut self) -> Duration {
        self.model.latency.draw(&mut self.network_rng)
    }

    /// A durable write.
    fn write(&mut self, dist: fn(&Model) -> &Dist) -> Duration {
        dist(&self.model).draw(&mut self.disk_rng)
    }

    /// A number between 0 and 1 from this generator.
    fn unit(rng: &mut Rng) -> f64 {
        StandardUniform.sample(rng)
    }
}

#[cfg(test)]
mod tests;
