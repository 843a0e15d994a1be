//! Faults of a world: processes end, disks are slow, clocks drift, connections break, stall and partition.
//!
//! The peers detect faults on their own, by broken connections and by timeouts.

use std::time::Duration;

use base::Time;

use super::disk::Refusal;
use super::event::{Event, PlannedCrash};
use super::{Observer, World};

/// Wait status of a process that was ended by signal 9.
const KILLED: i32 = 9;
/// The longest time until an agent detects another master.
pub(super) const DETECTION: Duration = Duration::from_millis(2000);

/// A process of a world that a fault can affect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// The leading master, on whichever host.
    Master,
    /// The agent with this number.
    Agent(usize),
    /// The scheduler with this number.
    Scheduler(usize),
}

impl<O: Observer> World<O> {
    /// Crashes the master's process, which starts again with its registry after `downtime`.
    pub fn crash_master(&mut self, downtime: Duration) {
        self.crash_master_with(downtime, 0, false);
    }

    /// Crashes the master's process, as [`crash_master`](Self::crash_master) does. `durable` determines the part of its
    /// pending writes that is durable; sent data still arrives if `arrives`.
    pub fn crash_master_with(&mut self, downtime: Duration, durable: u32, arrives: bool) {
        self.stop_master(durable, arrives);
        self.queue.push(self.now + downtime, Event::StartMaster);
    }

    /// Ends the master's process without closing connections. After `downtime` another one leads on another host with
    /// the same registry. Each agent detects it on its own.
    pub fn fail_master_over(&mut self, downtime: Duration, durable: u32, arrives: bool) {
        self.stop_master(durable, arrives);
        self.master.moves_on();
        // The address of a deposed master that still runs is in use.
        if self.is_at_deposed(&self.master.pid()) {
            self.master.moves_on();
        }
        self.queue.push(self.now + downtime, Event::StartMaster);
        self.all_hosts_detect(DETECTION);
    }

    /// Makes all agents detect the leading master within this time.
    pub(super) fn all_hosts_detect(&mut self, within: Duration) {
        self.master.moved = true;
        for agent in 0..self.agents.len() {
            let late = within.mul_f64(Self::unit(&mut self.network_rng));
            let generation = self.agents[agent].generation;
            self.queue.push(self.now + late, Event::Detect { agent: agent as u32, generation });
        }
    }

    pub(super) fn detect(&mut self, agent: u32, generation: u32) {
        if self.agents[agent as usize].generation != generation {
            return;
        }
        let master = self.master.core.is_some().then(|| self.master.pid());
        // If no master leads yet, the agent detects the next one when it does.
        self.master.moved |= master.is_none();
        self.agent_input(agent, agent::Input::Detected { master });
    }

    /// Crashes an agent's process, which starts again with its checkpoints after `downtime`. Its executors keep
    /// running.
    pub fn crash_agent(&mut self, agent: usize, downtime: Duration) {
        self.crash_agent_with(agent, downtime, 0, false);
    }

    /// Crashes an agent's process, as [`crash_agent`](Self::crash_agent) does. `durable` determines the part of its
    /// pending writes that is durable; sent data still arrives if `arrives`.
    pub fn crash_agent_with(&mut self, agent: usize, downtime: Duration, durable: u32, arrives: bool) {
        self.stop_agent(agent as u32, durable, arrives);
        self.queue.push(self.now + downtime, Event::StartAgent(agent as u32));
    }

    /// Reboots an agent's host: all its processes end, and the agent starts again after `downtime`.
    pub fn reboot_agent(&mut self, agent: usize, downtime: Duration, durable: u32) {
        self.agents[agent].boots += 1;
        self.kill_agent_and_executors(agent, downtime, durable);
        self.agents[agent].checkpoint_store.disk().host_restarts();
    }

    /// Ends an agent's process and all its executors. The agent starts again after `downtime`, on a host that has not
    /// rebooted.
    pub fn kill_agent_and_executors(&mut self, agent: usize, downtime: Duration, durable: u32) {
        self.stop_agent(agent as u32, durable, false);
        for executor in self.executors_of(agent as u32) {
            self.end_executor(executor, KILLED);
        }
        self.queue.push(self.now + downtime, Event::StartAgent(agent as u32));
    }

    /// Crashes a scheduler's process, which starts again with its saved state after `downtime`. The master notices it
    /// after `noticed`.
    pub fn crash_scheduler(&mut self, scheduler: usize, downtime: Duration, noticed: Duration, arrives: bool) {
        self.stop_scheduler(scheduler as u32, noticed, arrives);
        self.queue.push(self.now + downtime, Event::StartScheduler(scheduler as u32));
    }

    /// Crashes a process in its next batch that has outputs or writes, at the point of `planned_crash`.
    pub fn plan_crash(&mut self, process: Process, planned_crash: PlannedCrash) {
        match process {
            Process::Master => self.master.planned_crash = Some(planned_crash),
            Process::Agent(agent) => self.agents[agent].planned_crash = Some(planned_crash),
            Process::Scheduler(scheduler) => self.schedulers[scheduler].planned_crash = Some(planned_crash),
        }
    }

    /// Makes a process's clock run too fast from now on by this many parts of a million, or too slow if negative.
    pub fn drift(&mut self, process: Process, drift: i32) {
        let now = self.now;
        match process {
            Process::Master => self.master.clock.drifts(now, drift),
            Process::Agent(agent) => self.agents[agent].clock.drifts(now, drift),
            Process::Scheduler(scheduler) => self.schedulers[scheduler].clock.drifts(now, drift),
        }
    }

    /// Sets a process's clock ahead. This is only for the beginning of a run: clocks do not jump.
    pub fn set_ahead(&mut self, process: Process, by: Duration) {
        match process {
            Process::Master => self.master.clock.ahead(by),
            Process::Agent(agent) => self.agents[agent].clock.ahead(by),
            Process::Scheduler(scheduler) => self.schedulers[scheduler].clock.ahead(by),
        }
    }

    /// Makes each write of the master's registry take longer until a time.
    pub fn slow_registry(&mut self, until: Time, by: Duration) {
        self.master.writer.slow(until, by);
    }

    /// Makes each write of an agent's checkpoints take longer until a time.
    pub fn slow_agent(&mut self, agent: usize, until: Time, by: Duration) {
        self.agents[agent].writer.slow(until, by);
    }

    /// Makes the registry's disk refuse writes, for at most `span`. A master that writes meanwhile ends.
    pub fn refuse_registry(&mut self, refusal: Refusal, span: Duration) {
        self.master.refusal = Some((refusal, self.now + span));
    }

    /// Kills an executor on an agent's host; `pick` modulo their number selects it.
    pub fn kill_executor(&mut self, agent: usize, pick: usize) {
        let executors = self.executors_of(agent as u32);
        if let Some(executor) = executors.get(pick % executors.len().max(1)) {
            self.end_executor(*executor, KILLED);
        }
    }

    /// Breaks the connection of an executor to its agent; `pick` modulo the number of executors selects it.
    pub fn cut_executor(&mut self, agent: usize, pick: usize) {
        let executors = self.executors_of(agent as u32);
        if let Some(executor) = executors.get(pick % executors.len().max(1)) {
            self.break_executor(*executor);
        }
    }

    /// Makes the next `containers` containers on an agent's host fail to start.
    pub fn fail_containers(&mut self, agent: usize, containers: u32) {
        self.agents[agent].failing = containers;
    }

    /// Breaks the connections between an agent and the master; both ends are notified.
    pub fn cut_agent(&mut self, agent: usize) {
        self.with_each_master(|world| {
            world.break_to_master(agent as u32);
            world.break_to_agent(agent as u32);
        });
    }

    /// Performs an action with the leading master, and then with the deposed one if there is one.
    pub(super) fn with_each_master(&mut self, mut act: impl FnMut(&mut Self)) {
        act(self);
        self.as_deposed(act);
    }

    /// Breaks the connection between an agent and the master in one direction; both ends of it are notified.
    pub fn cut_agent_one_way(&mut self, agent: usize, to_master: bool) {
        self.with_each_master(|world| match to_master {
            true => world.break_to_master(agent as u32),
            false => world.break_to_agent(agent as u32),
        });
    }

    /// Delays messages in one direction between an agent or a scheduler and the master until `until`.
    pub fn stall_one_way(&mut self, process: Process, until: Time, to_master: bool) {
        self.with_each_master(|world| match (process, to_master) {
            (Process::Agent(agent), true) => world.agents[agent].to_master.stall(until),
            (Process::Agent(agent), false) => world.agents[agent].to_agent.stall(until),
            (Process::Scheduler(scheduler), true) => world.schedulers[scheduler].calls.stall(until),
            (Process::Scheduler(scheduler), false) => world.schedulers[scheduler].events.stall(until),
            (Process::Master, _) => {}
        });
    }

    /// Loses all messages between an agent and the master until a time. If any was lost, the connections break then.
    pub fn partition_agent(&mut self, agent: usize, until: Time) {
        self.with_each_master(|world| {
            let host = &mut world.agents[agent];
            host.to_agent.partition(until);
            host.to_master.partition(until);
        });
        self.queue.push(until, Event::AgentRejoined(agent as u32));
    }

    pub(super) fn agent_rejoined(&mut self, agent: u32) {
        self.with_each_master(|world| {
            let host = &world.agents[agent as usize];
            if host.to_agent.has_lost() || host.to_master.has_lost() {
                world.break_to_master(agent);
                world.break_to_agent(agent);
            }
        });
    }

    /// Delays all messages between an agent and the master that are sent from now on to `until`.
    pub fn stall_agent(&mut self, agent: usize, until: Time) {
        self.with_each_master(|world| {
            let host = &mut world.agents[agent];
            host.to_agent.stall(until);
            host.to_master.stall(until);
        });
    }

    /// Breaks a scheduler's connections; both ends are notified.
    pub fn cut_framework(&mut self, scheduler: usize) {
        self.with_each_master(|world| {
            if world.schedulers[scheduler].master_generation == world.master.generation {
                world.cut_scheduler(scheduler as u32, false);
            }
        });
    }

    /// Loses all messages between a scheduler and the master until a time. If any was lost, the connections break then.
    pub fn partition_framework(&mut self, scheduler: usize, until: Time) {
        self.with_each_master(|world| {
            let host = &mut world.schedulers[scheduler];
            host.calls.partition(until);
            host.events.partition(until);
        });
        self.queue.push(until, Event::SchedulerRejoined(scheduler as u32));
    }

    /// Delays all messages between a scheduler and the master that are sent from now on to `until`.
    pub fn stall_framework(&mut self, scheduler: usize, until: Time) {
        self.with_each_master(|world| {
            let host = &mut world.schedulers[scheduler];
            host.calls.stall(until);
            host.events.stall(until);
        });
    }

    /// Ends all faults: messages arrive in time from now on, connections with losses in a partition break now, and a
    /// deposed master ends.
    pub fn heal(&mut self) {
        self.as_deposed(|world| world.stop_master(0, true));
        self.master.planned_crash = None;
        self.master.writer.slow(self.now, Duration::ZERO);
        self.master.refusal = None;
        for agent in 0..self.agents.len() {
            let host = &mut self.agents[agent];
            host.to_agent.heal();
            host.to_master.heal();
            host.writer.slow(self.now, Duration::ZERO);
            host.checkpoint_store.disk().heal();
            (host.planned_crash, host.failing) = (None, 0);
            self.agent_rejoined(agent as u32);
        }
        for scheduler in 0..self.schedulers.len() {
            let host = &mut self.schedulers[scheduler];
            host.calls.heal();
            host.events.heal();
            host.planned_crash = None;
            self.scheduler_rejoined(scheduler as u32);
        }
    }
}
