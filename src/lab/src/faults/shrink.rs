//! Shrinks a plan that breaks a rule to a smaller one that breaks the same rule.
//!
//! First it removes faults (delta debugging), then agents and frameworks; then it makes faults milder and frameworks
//! simpler, and removes faults once more. [`Shrinker`] also serves the plans of `masters`.

use super::fault::Fault;
use super::plan::Plan;
use super::run::run_plan;
use crate::world::Process;

/// The most plans that are tried.
const TRIES: u32 = 600;

/// A plan that contains faults.
pub(crate) trait FaultPlan: Clone + PartialEq {
    /// Type of the plan's faults.
    type Fault: Clone;
    /// Returns all faults of the plan.
    fn faults(&mut self) -> &mut Vec<Self::Fault>;
    /// Returns milder forms of a fault.
    fn milder(fault: &Self::Fault) -> Vec<Self::Fault>;
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

/// Returns a smaller plan that breaks the same rule.
pub fn shrink(plan: &Plan, rule: &str) -> Plan {
    shrink_by(plan, &mut |smaller| run_plan(smaller, false).broken.is_some_and(|broken| broken.rule == rule))
}

/// Returns a smaller plan for which `fails` returns `true`, too.
pub(super) fn shrink_by(plan: &Plan, fails: &mut dyn FnMut(&Plan) -> bool) -> Plan {
    let mut shrinker = Shrinker::new(plan, fails);
    shrinker.leave_faults_out();
    shrinker.leave_processes_out();
    shrinker.make_milder();
    shrinker.simplify();
    shrinker.leave_faults_out();
    shrinker.best
}

/// A search for a smaller plan that fails. `best` is the smallest one so far.
pub(crate) struct Shrinker<'a, P> {
    pub best: P,
    fails: &'a mut dyn FnMut(&P) -> bool,
    left: u32,
}

impl<'a, P: FaultPlan> Shrinker<'a, P> {
    /// Creates a search that starts from a plan that fails.
    pub fn new(plan: &P, fails: &'a mut dyn FnMut(&P) -> bool) -> Shrinker<'a, P> {
        Shrinker { best: plan.clone(), fails, left: TRIES }
    }

    /// Runs a plan and makes it the best one if it fails, too. Returns whether it does.
    pub fn try_out(&mut self, plan: P) -> bool {
        if self.left == 0 || plan == self.best {
            return false;
        }
        self.left -= 1;
        let fails = (self.fails)(&plan);
        if fails {
            self.best = plan;
        }
        fails
    }

    /// Removes the faults without which the plan still fails.
    pub fn leave_faults_out(&mut self) {
        let mut size = self.best.faults().len().max(1);
        loop {
            let mut at = 0;
            while at < self.best.faults().len() {
                let mut plan = self.best.clone();
                let end = (at + size).min(plan.faults().len());
                plan.faults().drain(at..end);
                if !self.try_out(plan) {
                    at += size;
                }
            }
            if size == 1 {
                return;
            }
            size = size.div_ceil(2);
        }
    }

    /// Replaces faults by milder ones with which the plan still fails.
    pub fn make_milder(&mut self) {
        for at in 0..self.best.faults().len() {
            loop {
                let milder = P::milder(&self.best.faults()[at]);
                let plans = milder.into_iter().map(|fault| {
                    let mut plan = self.best.clone();
                    plan.faults()[at] = fault;
                    plan
                });
                let plans: Vec<P> = plans.collect();
                if !plans.into_iter().any(|plan| self.try_out(plan)) {
                    break;
                }
            }
        }
    }
}

impl Shrinker<'_, Plan> {
    /// Removes agents and frameworks, the last ones first, so that the others keep their numbers.
    fn leave_processes_out(&mut self) {
        while self.best.agents.len() > 1 {
            let mut plan = self.best.clone();
            plan.agents.pop();
            let gone = Process::Agent(plan.agents.len());
            plan.faults.retain(|fault| !fault.concerns(gone));
            plan.ahead.remove(1 + plan.agents.len());
            if !self.try_out(plan) {
                break;
            }
        }
        while self.best.frameworks.len() > 1 {
            let mut plan = self.best.clone();
            plan.frameworks.pop();
            let gone = Process::Scheduler(plan.frameworks.len());
            plan.faults.retain(|fault| !fault.concerns(gone));
            plan.ahead.pop();
            if !self.try_out(plan) {
                break;
            }
        }
    }

    fn simplify(&mut self) {
        for n in 0..self.best.frameworks.len() {
            while self.best.frameworks[n].tasks > 1 {
                let mut plan = self.best.clone();
                plan.frameworks[n].tasks /= 2;
                if !self.try_out(plan) {
                    break;
                }
            }
            let mut plan = self.best.clone();
            let framework = &mut plan.frameworks[n];
            (framework.services, framework.kills, framework.late, framework.wrong) = (0, 0, 0, 0);
            framework.groups = 0;
            self.try_out(plan);
            let mut plan = self.best.clone();
            let framework = &mut plan.frameworks[n];
            (framework.volumes, framework.shared, framework.changes) = (0, false, 0);
            self.try_out(plan);
        }
        let mut plan = self.best.clone();
        (plan.limit, plan.guarantee) = (None, None);
        plan.ahead.iter_mut().for_each(|ahead| *ahead = std::time::Duration::ZERO);
        self.try_out(plan);
    }
}
