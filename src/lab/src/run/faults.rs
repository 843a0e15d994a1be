//! Injects the faults of a scenario at their times.

use std::time::Duration;

use rand_distr::{Distribution, Exp1};
use rand_pcg::rand_core::Rng as _;

use crate::scenario::{FaultPart, FaultType, Scenario, Target};
use crate::seeds::{Rng, Seed};
use crate::world::{Observer, Process, World};

/// Number of parts of a batch that may be durable when its process ends. The world decides how soon a master detects
/// that a scheduler's process or its own peers are gone.
const PARTS: u32 = 8;

/// A fault of the scenario with its next time.
struct ScheduledFault {
    part: FaultPart,
    target: Target,
    at: Duration,
    rng: Rng,
}

impl ScheduledFault {
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

    fn inject<O: Observer>(&mut self, world: &mut World<O>) {
        let (part, now) = (self.part.clone(), world.now());
        let (lasts, until, by) = (part.lasts.0, now + part.lasts.0, part.by.unwrap_or_default().0);
        let durable = (self.rng.next_u64() % u64::from(PARTS)) as u32;
        match (&self.target, part.what) {
            (Target::Master, FaultType::Failover) => world.fail_master_over(lasts, durable, false),
            (Target::Master, FaultType::SlowDisk) => world.slow_registry(until, by),
            (Target::Master, _) => world.crash_master_with(lasts, durable, false),
            (Target::Framework(framework), FaultType::Partition) => world.partition_framework(*framework, until),
            (Target::Framework(framework), FaultType::Stall) => {
                world.stall_one_way(Process::Scheduler(*framework), until, true);
                world.stall_one_way(Process::Scheduler(*framework), until, false);
            }
            (Target::Framework(framework), _) => world.cut_framework(*framework),
            (Target::Agents(_), what) => {
                for agent in self.draw() {
                    match what {
                        FaultType::Crash => world.crash_agent_with(agent, lasts, durable, false),
                        FaultType::Reboot => world.reboot_agent(agent, lasts, durable),
                        FaultType::Partition => world.partition_agent(agent, until),
                        FaultType::Stall => world.stall_agent(agent, until),
                        FaultType::SlowDisk => world.slow_agent(agent, until, by),
                        FaultType::Cut | FaultType::Failover => world.cut_agent(agent),
                    }
                }
            }
        }
    }
}

/// All faults of a run that are still to happen.
pub(super) struct FaultSchedule(Vec<ScheduledFault>);

impl FaultSchedule {
    /// Creates the faults of a scenario. Each draws from a branch of its own of the seed.
    pub fn new(scenario: &Scenario, seed: Seed) -> FaultSchedule {
        let scheduled = |(n, part): (usize, &FaultPart)| {
            let at = part.at.map_or(part.from.0, |at| at.0.max(part.from.0));
            let rng = seed.nth("fault", n).rng();
            let mut scheduled = ScheduledFault { target: part.target(scenario)?, part: part.clone(), at, rng };
            // A random fault does not happen at the very beginning.
            (part.poisson.is_none() || scheduled.advance()).then_some(scheduled)
        };
        FaultSchedule(scenario.faults.iter().enumerate().filter_map(scheduled).collect())
    }

    /// Returns the time of the next fault.
    pub fn next_at(&self) -> Option<Duration> {
        self.0.iter().map(|scheduled| scheduled.at).min()
    }

    /// Injects all faults that are due.
    pub fn inject<O: Observer>(&mut self, at: Duration, world: &mut World<O>) {
        self.0.retain_mut(|scheduled| {
            if scheduled.at > at {
                return true;
            }
            scheduled.inject(world);
            scheduled.advance()
        });
    }
}
