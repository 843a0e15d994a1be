//! The plan that is drawn from a seed: the group, its clients, and the faults.

use std::time::Duration;

use super::fault::Fault;
use super::world::{Defect, Setup};
use crate::dist::Dist;
use crate::faults::rng::FaultRng;
use crate::faults::shrink::{FaultPlan, Shrinker};
use crate::seeds::Seed;

/// Bounds of the period in which faults happen, in seconds.
const HORIZON: (u64, u64) = (5, 25);

/// The plan of a run of masters, drawn from a seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The seed of the plan. All other random decisions of the run depend on it, too.
    pub seed: u64,
    /// Masters, clients, network and disks of the group.
    pub setup: Setup,
    /// Faults of the run, in the order of time.
    pub faults: Vec<Fault>,
    /// Time after the beginning at which all faults end.
    pub horizon: Duration,
}

impl Plan {
    /// Draws the plan of a seed.
    pub fn draw(seed: u64) -> Plan {
        let root = Seed::root(seed).child("masters");
        let mut rng = FaultRng::new(root.child("group"));
        let founders = if rng.chance(65) { 3 } else { 5 };
        let spares = rng.within(1, 2) as usize;
        let latency = match rng.below(3) {
            0 => Dist::Constant(Duration::from_micros(500)),
            1 => Dist::Exponential(Duration::from_millis(rng.within(1, 10))),
            _ => Dist::LogNormal(Duration::from_millis(rng.within(1, 5)), 1.5),
        };
        let horizon = Duration::from_secs(rng.within(HORIZON.0, HORIZON.1));
        let count = rng.within(2, 16) as usize;
        let draw = |n| Fault::draw(root.nth("fault", n), horizon, founders, spares);
        let mut faults: Vec<Fault> = (0..count).map(draw).collect();
        faults.sort_by_key(|fault| fault.at);
        let setup = Setup {
            founders,
            spares,
            clients: rng.within(1, 4) as usize,
            latency,
            write: Dist::Exponential(Duration::from_millis(rng.within(1, 5))),
            compact_after: rng.pick(&[2, 8, 4096]),
            ends_when_deposed: rng.chance(60),
            defect: None,
        };
        Plan { seed, setup, faults, horizon }
    }

    /// Returns the plan with a deliberate defect.
    pub fn with_defect(mut self, defect: Option<Defect>) -> Plan {
        self.setup.defect = defect;
        self
    }

    /// Returns the root of the seeds for all random decisions in the plan's world.
    pub fn root(&self) -> Seed {
        Seed::root(self.seed).child("masters' world")
    }

    /// Returns a smaller plan for which `fails` returns `true`, too.
    pub fn shrink(&self, fails: &mut dyn FnMut(&Plan) -> bool) -> Plan {
        let mut shrinker = Shrinker::new(self, fails);
        shrinker.leave_faults_out();
        while shrinker.best.setup.clients > 1 {
            let mut plan = shrinker.best.clone();
            plan.setup.clients -= 1;
            if !shrinker.try_out(plan) {
                break;
            }
        }
        let mut plain = shrinker.best.clone();
        plain.setup.latency = Dist::Constant(Duration::from_micros(500));
        plain.setup.compact_after = 4096;
        shrinker.try_out(plain);
        shrinker.make_milder();
        shrinker.leave_faults_out();
        shrinker.best
    }
}

impl FaultPlan for Plan {
    type Fault = Fault;

    fn faults(&mut self) -> &mut Vec<Fault> {
        &mut self.faults
    }

    fn milder(fault: &Fault) -> Vec<Fault> {
        fault.milder()
    }
}
