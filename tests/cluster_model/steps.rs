//! What random histories are made of, and the playing of one.

use std::time::Duration;

use proptest::prelude::*;

use crate::agents::Doom;
use crate::network::Channel;
use crate::world::{Event, World};

/// A kind of framework.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Whether its executors outlive an agent's process.
    pub checkpoint: bool,
    /// Whether it is PARTITION_AWARE.
    pub aware: bool,
    /// Its role.
    pub role: &'static str,
}

/// The cluster of a history.
#[derive(Clone, Debug)]
pub struct Setup {
    /// For all that is random beside the steps: delays, how tasks end.
    pub seed: u64,
    pub agents: usize,
    pub frameworks: Vec<Kind>,
}

/// One step; numbers choose among what is there at the time.
#[derive(Clone, Debug)]
pub enum Step {
    Accept { who: usize, pick: usize, tasks: usize, refuse: u8 },
    Decline { who: usize, pick: usize, refuse: u8 },
    Kill { who: usize, pick: usize },
    Acknowledge(usize),
    Reconcile { who: usize, explicit: bool },
    Suppress(usize),
    Revive(usize),
    BreakScheduler(usize),
    FailOver(usize),
    TearDown(usize),
    CrashMaster { away: u16 },
    DoomMaster { outputs: usize },
    CrashAgent { agent: usize, away: u32, reboot: bool, kill: bool },
    DoomAgent { agent: usize, entries: usize, outputs: usize, away: u16 },
    BreakToAgent(usize),
    BreakToMaster(usize),
    BreakExecutor(usize),
    KillExecutor(usize),
    Stall { agent: usize, to_master: bool, seconds: u8 },
    Part { agent: usize, seconds: u8 },
    Pass { milliseconds: u32 },
}

/// Clusters of one to three agents and schedulers.
pub fn setup() -> impl Strategy<Value = Setup> {
    let kind = (prop::bool::weighted(0.75), any::<bool>(), any::<bool>()).prop_map(|(checkpoint, aware, own)| Kind {
        checkpoint,
        aware,
        role: if own { "*" } else { "dev" },
    });
    (any::<u64>(), 1..4usize, prop::collection::vec(kind, 1..4)).prop_map(|(seed, agents, frameworks)| Setup {
        seed,
        agents,
        frameworks,
    })
}

/// One random step.
pub fn step() -> impl Strategy<Value = Step> {
    let who = 0..3usize;
    let pick = 0..8usize;
    let agent = 0..3usize;
    let refuse = prop_oneof![4 => 0..3u8, 1 => any::<u8>()];
    prop_oneof![
        16 => (who.clone(), pick.clone(), prop_oneof![1 => Just(0), 5 => 1..4usize], refuse.clone())
            .prop_map(|(who, pick, tasks, refuse)| Step::Accept { who, pick, tasks, refuse }),
        2 => (who.clone(), pick.clone(), refuse)
            .prop_map(|(who, pick, refuse)| Step::Decline { who, pick, refuse }),
        3 => (who.clone(), pick.clone()).prop_map(|(who, pick)| Step::Kill { who, pick }),
        3 => who.clone().prop_map(Step::Acknowledge),
        2 => (who.clone(), any::<bool>()).prop_map(|(who, explicit)| Step::Reconcile { who, explicit }),
        1 => who.clone().prop_map(Step::Suppress),
        2 => who.clone().prop_map(Step::Revive),
        2 => who.clone().prop_map(Step::BreakScheduler),
        1 => who.clone().prop_map(Step::FailOver),
        1 => prop::sample::select(vec![2usize]).prop_map(Step::TearDown),
        1 => any::<u16>().prop_map(|away| Step::CrashMaster { away }),
        1 => (0..8usize).prop_map(|outputs| Step::DoomMaster { outputs }),
        2 => (agent.clone(), prop_oneof![3 => 0..5_000u32, 1 => 0..900_000u32], prop::bool::weighted(0.2), prop::bool::weighted(0.2))
            .prop_map(|(agent, away, reboot, kill)| Step::CrashAgent { agent, away, reboot, kill }),
        3 => (agent.clone(), 0..6usize, 0..6usize, 0..5000u16)
            .prop_map(|(agent, entries, outputs, away)| Step::DoomAgent { agent, entries, outputs, away }),
        2 => agent.clone().prop_map(Step::BreakToAgent),
        2 => agent.clone().prop_map(Step::BreakToMaster),
        1 => (0..16usize).prop_map(Step::BreakExecutor),
        2 => (0..16usize).prop_map(Step::KillExecutor),
        2 => (agent.clone(), any::<bool>(), 0..30u8)
            .prop_map(|(agent, to_master, seconds)| Step::Stall { agent, to_master, seconds }),
        1 => (agent, any::<u8>()).prop_map(|(agent, seconds)| Step::Part { agent, seconds }),
        20 => prop_oneof![6 => 0..500u32, 3 => 0..20_000u32, 1 => 0..200_000u32]
            .prop_map(|milliseconds| Step::Pass { milliseconds }),
    ]
}

/// Plays a history to its end. The world with its log, and what is wrong in `broken`.
pub fn play(setup: &Setup, steps: &[Step]) -> World {
    let mut world = World::new(setup);
    world.pass(Duration::from_secs(5));
    for step in steps {
        if world.broken.is_some() {
            return world;
        }
        world.note(|| format!("step {step:?}"));
        world.step(step);
        world.check();
        if !world.rng.one_in(3) {
            let span = world.rng.below(1500);
            world.pass(Duration::from_millis(span));
        }
    }
    world.finish();
    world
}

impl World {
    fn step(&mut self, step: &Step) {
        let (schedulers, agents) = (self.schedulers.len(), self.agents.len());
        match *step {
            Step::Accept { who, pick, tasks, refuse } => {
                let who = self.with_offers(who % schedulers);
                self.accept(who, pick, tasks, f64::from(refuse));
            }
            Step::Decline { who, pick, refuse } => self.decline(who % schedulers, pick, f64::from(refuse)),
            Step::Kill { who, pick } => self.kill(who % schedulers, pick),
            Step::Acknowledge(who) => self.acknowledge(who % schedulers),
            Step::Reconcile { who, explicit } => self.reconcile(who % schedulers, explicit),
            Step::Suppress(who) => self.want_offers(who % schedulers, false),
            Step::Revive(who) => self.want_offers(who % schedulers, true),
            Step::BreakScheduler(who) => self.cut_scheduler(who % schedulers),
            Step::FailOver(who) => self.fail_over(who % schedulers),
            Step::TearDown(who) => self.tear_down(who % schedulers),
            Step::CrashMaster { away } => {
                self.crash_master();
                self.after(u64::from(away), Event::StartMaster);
            }
            Step::DoomMaster { outputs } => self.master.doomed = Some(outputs),
            Step::CrashAgent { agent, away, reboot, kill } => {
                self.take_down(agent % agents, u64::from(away), reboot, kill);
            }
            Step::DoomAgent { agent, entries, outputs, away } => {
                let doom = Doom { entries, outputs, away: u64::from(away) };
                self.agents[agent % agents].doomed = Some(doom);
            }
            Step::BreakToAgent(agent) => self.break_to_agent(agent % agents),
            Step::BreakToMaster(agent) => self.break_to_master(agent % agents),
            Step::BreakExecutor(pick) => {
                if let Some(executor) = self.living(pick) {
                    self.cut_executor(executor);
                }
            }
            Step::KillExecutor(pick) => {
                if let Some(executor) = self.living(pick) {
                    self.end_executor(executor, crate::containers::KILLED);
                }
            }
            Step::Stall { agent, to_master, seconds } => {
                let agent = agent % agents;
                let channel = if to_master { Channel::ToMaster(agent) } else { Channel::ToAgent(agent) };
                self.net.stall(channel, self.now + Duration::from_secs(u64::from(seconds)));
            }
            Step::Part { agent, seconds } => {
                let (agent, until) = (agent % agents, self.now + Duration::from_secs(u64::from(seconds)));
                self.net.part(Channel::ToMaster(agent), until);
                self.net.part(Channel::ToAgent(agent), until);
                self.break_to_master(agent);
                self.break_to_agent(agent);
            }
            Step::Pass { milliseconds } => self.pass(Duration::from_millis(u64::from(milliseconds))),
        }
    }

    /// The first scheduler from this one on that has an offer; this one if none has.
    fn with_offers(&self, who: usize) -> usize {
        let count = self.schedulers.len();
        let mut all = (who..who + count).map(|n| n % count);
        all.find(|n| !self.schedulers[*n].offers.is_empty()).unwrap_or(who)
    }

    fn living(&self, pick: usize) -> Option<usize> {
        let living: Vec<usize> = (0..self.executors.len()).filter(|n| !self.executors[*n].dead).collect();
        living.get(pick % living.len().max(1)).copied()
    }

    /// An agent's process ends for a while; with a reboot, or by chance, its executors too.
    fn take_down(&mut self, agent: usize, away: u64, reboot: bool, kill: bool) {
        self.crash_agent(agent);
        if reboot || kill {
            for executor in 0..self.executors.len() {
                if self.executors[executor].agent == agent {
                    self.end_executor(executor, crate::containers::KILLED);
                }
            }
        }
        self.agents[agent].boots += u64::from(reboot);
        self.after(away, Event::StartAgent(agent));
    }

    /// Heals and starts everything, lets it come to rest, and holds it against what must be true at the end.
    fn finish(&mut self) {
        self.note(|| "the end begins".to_owned());
        self.calm = true;
        self.net.heal();
        self.master.doomed = None;
        self.start_master();
        for agent in 0..self.agents.len() {
            self.agents[agent].doomed = None;
            self.start_agent(agent);
        }
        self.pass(Duration::from_secs(60));
        for who in 0..self.schedulers.len() {
            self.acknowledge(who);
            while !self.schedulers[who].offers.is_empty() && self.schedulers[who].subscribed {
                self.decline(who, 0, 7200.0);
            }
        }
        // Longer than the longest wait for a repeated update, and than agents have to come back.
        self.pass(Duration::from_secs(25 * 60));
        // A task that was lost with a connection may live, and its scheduler learn of it by asking for all.
        (0..self.schedulers.len()).for_each(|who| self.reconcile(who, false));
        (0..self.schedulers.len()).for_each(|who| self.reconcile(who, true));
        self.pass(Duration::from_secs(60));
        if self.broken.is_none() {
            self.check_end();
        }
    }
}
