//! Injects the faults of a scenario at their times.

use std::time::Duration;

use rand_distr::{Distribution, Exp1};
use rand_pcg::rand_core::Rng as _;

use crate::scenario::{FaultPart, Scenario, Target, Trouble};
use crate::seeds::{Rng, Seed};
use crate::world::{Observer, Process, World};

/// Number of parts of a batch that may be durable when its process ends. The world decides how soon a master detects
/// that a scheduler's process or its own peers are gone.
const PARTS: u32 = 8;

/// A fault of the scenario with its next time.
struct Coming {
    part: FaultPart,
    target: Target,
    at: Duration,
    rng: Rng,
}

impl Coming {
    /// Advances to the fault's next time; returns `false` if there is none.
    fn advance(&mut self) -> bool {
        if let Some(every) = self.part.every {
            self.at += every.0;
        } else if let Some(mean) = self.part.poisson {
            let gap: f64 = Exp1.sample(&mut self.rng);
            self.at += mean.0.mul_f64(gap);
        } else {
            return false;
        }
        self.part.until.is_none_or(|until| self.at <= until.0)
    }

    /// Draws the agents that the fault affects this time.
    fn draw(&mut self) -> Vec<usize> {
        let Target::Agents(mut all) = self.target.clone() else { return Vec::new() };
        let mut drawn = Vec::new();
        for _ in 0..self.part.count {
            drawn.push(all.swap_remove((self.rng.next_u64() % all.len() as u64) as usize));
        }
        drawn
    }

    fn strike<O: Observer>(&mut self, world: &mut World<O>) {
        let (part, now) = (self.part.clone(), world.now());
        let (lasts, until, by) = (part.lasts.0, now + part.lasts.0, part.by.unwrap_or_default().0);
        let durable = (self.rng.next_u64() % u64::from(PARTS)) as u32;
        match (&self.target, part.what) {
            (Target::Master, Trouble::Failover) => world.fail_master_over(lasts, durable, false),
            (Target::Master, Trouble::SlowDisk) => world.slow_registry(until, by),
            (Target::Master, _) => world.crash_master_so(lasts, durable, false),
            (Target::Framework(who), Trouble::Partition) => world.part_framework(*who, until),
            (Target::Framework(who), Trouble::Stall) => {
                world.stall_one_way(Process::Scheduler(*who), until, true);
                world.stall_one_way(Process::Scheduler(*who), until, false);
            }
            (Target::Framework(who), _) => world.cut_framework(*who),
            (Target::Agents(_), what) => {
                for agent in self.draw() {
                    match what {
                        Trouble::Crash => world.crash_agent_so(agent, lasts, durable, false),
                        Trouble::Reboot => world.reboot_agent(agent, lasts, durable),
                        Trouble::Partition => world.part_agent(agent, until),
                        Trouble::Stall => world.stall_agent(agent, until),
                        Trouble::SlowDisk => world.slow_agent(agent, until, by),
                        Trouble::Cut | Trouble::Failover => world.cut_agent(agent),
                    }
                }
            }
        }
    }
}

/// All faults of a run that are still to happen.
pub(super) struct Troubles(Vec<Coming>);

impl Troubles {
    /// Creates the faults of a scenario. Each draws from a branch of its own of the seed.
    pub fn new(scenario: &Scenario, seed: Seed) -> Troubles {
        let coming = |(n, part): (usize, &FaultPart)| {
            let at = part.at.map_or(part.from.0, |at| at.0.max(part.from.0));
            let rng = seed.nth("fault", n).rng();
            let mut coming = Coming { target: part.target(scenario)?, part: part.clone(), at, rng };
            // A random fault does not happen at the very beginning.
            (part.poisson.is_none() || coming.advance()).then_some(coming)
        };
        Troubles(scenario.faults.iter().enumerate().filter_map(coming).collect())
    }

    /// Returns the time of the next fault.
    pub fn next_at(&self) -> Option<Duration> {
        self.0.iter().map(|coming| coming.at).min()
    }

    /// Injects all faults that are due.
    pub fn strike<O: Observer>(&mut self, at: Duration, world: &mut World<O>) {
        self.0.retain_mut(|coming| {
            if coming.at > at {
                return true;
            }
            coming.strike(world);
            coming.advance()
        });
    }
}
