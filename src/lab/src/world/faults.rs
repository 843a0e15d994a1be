//! Faults of a world: processes end, disks are slow, clocks drift, connections break, stall and partition.
//!
//! The peers detect them on their own, by broken connections and by timeouts.

use std::time::Duration;

use base::Time;

use super::disk::Refusal;
use super::event::{Doom, Event};
use super::{Observer, World};

/// The wait status of a process that signal 9 has ended.
const KILLED: i32 = 9;
/// Longest time until an agent detects another master.
pub(super) const DETECTION: Duration = Duration::from_millis(2000);

/// A process of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// The master that leads, whichever it is.
    Master,
    /// An agent, by its number.
    Agent(usize),
    /// A scheduler, by its number.
    Scheduler(usize),
}

impl<O: Observer> World<O> {
    /// The master's process crashes, and starts again with its registry after `away`.
    pub fn crash_master(&mut self, away: Duration) {
        self.crash_master_so(away, 0, false);
    }

    /// The same. `durable` gives the part of its pending writes that is durable; sent data still arrives if `arrives`.
    pub fn crash_master_so(&mut self, away: Duration, durable: u32, arrives: bool) {
        self.stop_master(durable, arrives);
        self.queue.push(self.now + away, Event::StartMaster);
    }

    /// The master's process ends without closing connections, and after `away` another one leads elsewhere with the
    /// same registry. Each agent detects it on its own.
    pub fn fail_master_over(&mut self, away: Duration, durable: u32, arrives: bool) {
        self.stop_master(durable, arrives);
        self.master.moves_on();
        // Where a deposed one still runs, its address is taken.
        if self.is_at_deposed(&self.master.pid()) {
            self.master.moves_on();
        }
        self.queue.push(self.now + away, Event::StartMaster);
        self.all_hosts_detect(DETECTION);
    }

    /// All agents detect the leading master within this time.
    pub(super) fn all_hosts_detect(&mut self, within: Duration) {
        self.master.moved = true;
        for agent in 0..self.agents.len() {
            let late = within.mul_f64(Self::unit(&mut self.network_rng));
            let life = self.agents[agent].life;
            self.queue.push(self.now + late, Event::Detect { agent: agent as u32, life });
        }
    }

    pub(super) fn detect(&mut self, agent: u32, life: u32) {
        if self.agents[agent as usize].life != life {
            return;
        }
        let master = self.master.core.is_some().then(|| self.master.pid());
        // An agent without a master detects the next one.
        self.master.moved |= master.is_none();
        self.agent_input(agent, agent::Input::Detected { master });
    }

    /// An agent's process crashes, and starts again with its checkpoints after `away`. Its executors keep running.
    pub fn crash_agent(&mut self, agent: usize, away: Duration) {
        self.crash_agent_so(agent, away, 0, false);
    }

    /// The same. `durable` gives the part of its pending writes that is durable; sent data still arrives if `arrives`.
    pub fn crash_agent_so(&mut self, agent: usize, away: Duration, durable: u32, arrives: bool) {
        self.stop_agent(agent as u32, durable, arrives);
        self.queue.push(self.now + away, Event::StartAgent(agent as u32));
    }

    /// An agent's host stops with all that runs on it, and is there again after `away`.
    pub fn reboot_agent(&mut self, agent: usize, away: Duration, durable: u32) {
        self.agents[agent].boots += 1;
        self.kill_agent_and_executors(agent, away, durable);
        self.agents[agent].keeper.disk().host_restarts();
    }

    /// An agent's process and all its executors end; the agent starts again after `away`, on a host that has not
    /// stopped.
    pub fn kill_agent_and_executors(&mut self, agent: usize, away: Duration, durable: u32) {
        self.stop_agent(agent as u32, durable, false);
        for executor in self.executors_of(agent as u32) {
            self.end_executor(executor, KILLED);
        }
        self.queue.push(self.now + away, Event::StartAgent(agent as u32));
    }

    /// A scheduler's process crashes, and starts again with its saved state after `away`. The master notices after
    /// `noticed`.
    pub fn crash_scheduler(&mut self, who: usize, away: Duration, noticed: Duration, arrives: bool) {
        self.stop_scheduler(who as u32, noticed, arrives);
        self.queue.push(self.now + away, Event::StartScheduler(who as u32));
    }

    /// Ends a process in its next batch with effects, at the point of `doom`.
    pub fn doom(&mut self, process: Process, doom: Doom) {
        match process {
            Process::Master => self.master.doom = Some(doom),
            Process::Agent(agent) => self.agents[agent].doom = Some(doom),
            Process::Scheduler(who) => self.schedulers[who].doom = Some(doom),
        }
    }

    /// From now on a process's clock goes too fast by this many parts of a million, or too slow.
    pub fn drift(&mut self, process: Process, drift: i32) {
        let now = self.now;
        match process {
            Process::Master => self.master.clock.drifts(now, drift),
            Process::Agent(agent) => self.agents[agent].clock.drifts(now, drift),
            Process::Scheduler(who) => self.schedulers[who].clock.drifts(now, drift),
        }
    }

    /// A process's clock is ahead by so much. Only for the beginning: clocks do not jump.
    pub fn set_ahead(&mut self, process: Process, by: Duration) {
        match process {
            Process::Master => self.master.clock.ahead(by),
            Process::Agent(agent) => self.agents[agent].clock.ahead(by),
            Process::Scheduler(who) => self.schedulers[who].clock.ahead(by),
        }
    }

    /// Until then each write of the master's registry takes longer by so much.
    pub fn slow_registry(&mut self, until: Time, by: Duration) {
        self.master.writer.slow(until, by);
    }

    /// Until then each write of an agent's checkpoints takes longer by so much.
    pub fn slow_agent(&mut self, agent: usize, until: Time, by: Duration) {
        self.agents[agent].writer.slow(until, by);
    }

    /// From now on the registry's disk refuses writes, for at most so long. A master that writes ends.
    pub fn refuse_registry(&mut self, refusal: Refusal, span: Duration) {
        self.master.refusal = Some((refusal, self.now + span));
    }

    /// An executor on an agent's host is killed; `pick` modulo their number selects it.
    pub fn kill_executor(&mut self, agent: usize, pick: usize) {
        let living = self.executors_of(agent as u32);
        if let Some(executor) = living.get(pick % living.len().max(1)) {
            self.end_executor(*executor, KILLED);
        }
    }

    /// An executor's connection to its agent breaks; which one, modulo how many there are.
    pub fn cut_executor(&mut self, agent: usize, pick: usize) {
        let living = self.executors_of(agent as u32);
        if let Some(executor) = living.get(pick % living.len().max(1)) {
            self.break_executor(*executor);
        }
    }

    /// The next containers on an agent's host, so many, cannot be started.
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

    /// Something happens between the others and the master that leads, and the deposed one too.
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
            (Process::Scheduler(who), true) => world.schedulers[who].calls.stall(until),
            (Process::Scheduler(who), false) => world.schedulers[who].events.stall(until),
            (Process::Master, _) => {}
        });
    }

    /// What an agent and the master say to each other until then is lost. If anything was, the connections break then.
    pub fn part_agent(&mut self, agent: usize, until: Time) {
        self.with_each_master(|world| {
            let host = &mut world.agents[agent];
            host.to_agent.part(until);
            host.to_master.part(until);
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

    /// What an agent and the master say to each other from now on arrives after `until`.
    pub fn stall_agent(&mut self, agent: usize, until: Time) {
        self.with_each_master(|world| {
            let host = &mut world.agents[agent];
            host.to_agent.stall(until);
            host.to_master.stall(until);
        });
    }

    /// Breaks a scheduler's connections; both ends are notified.
    pub fn cut_framework(&mut self, who: usize) {
        self.with_each_master(|world| {
            if world.schedulers[who].at == world.master.life {
                world.cut_scheduler(who as u32, false);
            }
        });
    }

    /// What a scheduler and the master say to each other until then is lost. If anything was, the connections break
    /// then.
    pub fn part_framework(&mut self, who: usize, until: Time) {
        self.with_each_master(|world| {
            let host = &mut world.schedulers[who];
            host.calls.part(until);
            host.events.part(until);
        });
        self.queue.push(until, Event::SchedulerRejoined(who as u32));
    }

    /// What a scheduler and the master say to each other from now on arrives after `until`.
    pub fn stall_framework(&mut self, who: usize, until: Time) {
        self.with_each_master(|world| {
            let host = &mut world.schedulers[who];
            host.calls.stall(until);
            host.events.stall(until);
        });
    }

    /// Ends all faults: everything that is sent from now on arrives in time. Losses in a partition become visible now,
    /// and a deposed master finds out.
    pub fn heal(&mut self) {
        self.as_deposed(|world| world.stop_master(0, true));
        self.master.doom = None;
        self.master.writer.slow(self.now, Duration::ZERO);
        self.master.refusal = None;
        for agent in 0..self.agents.len() {
            let host = &mut self.agents[agent];
            host.to_agent.heal();
            host.to_master.heal();
            host.writer.slow(self.now, Duration::ZERO);
            host.keeper.disk().heal();
            (host.doom, host.failing) = (None, 0);
            self.agent_rejoined(agent as u32);
        }
        for who in 0..self.schedulers.len() {
            let host = &mut self.schedulers[who];
            host.calls.heal();
            host.events.heal();
            host.doom = None;
            self.scheduler_rejoined(who as u32);
        }
    }
}
