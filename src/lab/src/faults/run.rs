//! Runs a plan: builds its world, injects the faults at their times, ends them, and checks the rules.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use protos::mesos::master::{Call, call};
use protos::mesos::quota::QuotaConfig;
use protos::mesos::value::Scalar;

use super::checker::{Checker, Violation};
use super::convergence;
use super::invariants::Invariants;
use super::log::Log;
use super::operate;
use super::plan::Plan;
use super::rng::FaultRng;
use super::worker::{CampaignScheduler, View};
use crate::world::{BEGIN, FrameworkSpec, Process, Setup, World};

/// The most events of a run. A world with more does not converge.
const MOST_EVENTS: u64 = 500_000;
/// Time after the last fault by which a world must have converged.
const CONVERGENCE_LIMIT: Duration = Duration::from_secs(2 * 3600);
/// Interval at which convergence is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The result of running a plan.
#[derive(Debug)]
pub struct RunResult {
    /// The first broken rule; `None` if all hold.
    pub broken: Option<Violation>,
    /// Hash over all messages to schedulers.
    pub digest: u64,
    /// Number of events in the run.
    pub events: u64,
    /// Number of tasks that were started.
    pub tasks: u64,
    /// Number of status updates that schedulers received.
    pub updates: u64,
    /// Virtual time that passed in the run.
    pub time: Duration,
    /// A line for each event; empty unless the log is kept.
    pub log: Vec<String>,
}

/// A plan that is being run.
struct PlanRun {
    world: World<Checker>,
    invariants: Invariants,
}

/// Runs a plan to its end, or to the first broken rule.
pub fn run_plan(plan: &Plan, keep_log: bool) -> RunResult {
    run_plan_with(plan, keep_log, |_| {})
}

/// Runs a plan after `prepare` has changed its world.
pub(super) fn run_plan_with(plan: &Plan, keep_log: bool, prepare: impl FnOnce(&mut World<Checker>)) -> RunResult {
    let mut running = PlanRun { world: world(plan, keep_log), invariants: Invariants::new(plan) };
    running.world.set_defect(plan.defect);
    prepare(&mut running.world);
    if let Err(broken) = running.run(plan) {
        let checker = running.world.observer();
        checker.broken.get_or_insert(broken);
    }
    let (digest, events, now) = (running.world.digest(), running.world.events(), running.world.now());
    let mut checker = running.world.into_observer();
    if let Some(broken) = checker.broken.clone() {
        checker.log.line(now, || format!("BROKEN {broken}"));
    }
    RunResult {
        broken: checker.broken,
        digest,
        events,
        tasks: checker.tasks,
        updates: checker.updates,
        time: now.since(BEGIN),
        log: checker.log.into_lines(),
    }
}

fn world(plan: &Plan, keep_log: bool) -> World<Checker> {
    let root = plan.root();
    let (mut frameworks, mut checked_frameworks) = (Vec::new(), Vec::new());
    for (n, part) in plan.frameworks.iter().enumerate() {
        let (part, view) = (Rc::new(part.clone()), Rc::new(RefCell::new(View::default())));
        checked_frameworks.push((Rc::clone(&part), Rc::clone(&view)));
        let (info, start) = (part.info(n), part.start);
        let rng = FaultRng::new(root.nth("worker", n));
        frameworks.push(FrameworkSpec {
            info,
            scheduler: Box::new(move || {
                Box::new(CampaignScheduler::new(Rc::clone(&part), n, Rc::clone(&view), rng.clone()))
            }),
            persists_state: true,
            start,
        });
    }
    let setup = Setup { master: plan.config(), agents: plan.specs(), frameworks, model: plan.model() };
    let mut world = World::new(setup, root, Checker::new(checked_frameworks, Log::new(keep_log)));
    let agents = (0..plan.agents.len()).map(Process::Agent);
    let schedulers = (0..plan.frameworks.len()).map(Process::Scheduler);
    for (process, ahead) in [Process::Master].into_iter().chain(agents).chain(schedulers).zip(&plan.ahead) {
        world.set_ahead(process, *ahead);
    }
    world
}

impl PlanRun {
    fn run(&mut self, plan: &Plan) -> Result<(), Violation> {
        self.until(BEGIN.since(BEGIN) + Duration::from_millis(5))?;
        self.set_quotas(plan);
        for fault in &plan.faults {
            self.until(fault.at)?;
            let now = self.world.now();
            self.world.observer().log.line(now, || format!("FAULT      {}", fault.kind));
            fault.inject(&mut self.world);
            self.check()?;
        }
        let now = self.world.now();
        self.world.observer().log.line(now, || "FAULT      end of faults".to_owned());
        self.world.heal();
        self.wait_for_convergence(plan, false)?;
        for checked in &self.world.observer().checked_frameworks {
            checked.view.borrow_mut().finish = true;
        }
        self.wake_schedulers(plan);
        self.wait_for_convergence(plan, true)
    }

    /// Runs until this time after the start, and checks the rules after each event.
    fn until(&mut self, after: Duration) -> Result<(), Violation> {
        let end = BEGIN + after;
        while self.world.next_at().is_some_and(|at| at <= end) {
            self.world.step();
            self.check()?;
        }
        // Advances the clock.
        self.world.run_until(end);
        Ok(())
    }

    fn check(&mut self) -> Result<(), Violation> {
        self.invariants.check(&mut self.world)?;
        if let Some(broken) = self.world.observer().broken.clone() {
            return Err(broken);
        }
        if self.world.events() > MOST_EVENTS {
            let text = format!("more than {MOST_EVENTS} events");
            return Err(Violation { rule: "the cluster becomes idle in time", text });
        }
        Ok(())
    }

    fn wake_schedulers(&mut self, plan: &Plan) {
        (0..plan.frameworks.len()).for_each(|scheduler| self.world.wake_scheduler(scheduler));
    }

    /// Runs until the world has converged.
    fn wait_for_convergence(&mut self, plan: &Plan, finished: bool) -> Result<(), Violation> {
        let end = self.world.now() + CONVERGENCE_LIMIT;
        loop {
            let left = self.world.observer().left();
            let settling = operate::settle(&mut self.world, plan, finished, &left);
            let at = self.world.now() + CHECK_INTERVAL;
            self.until(at.since(BEGIN))?;
            let calm = match settling {
                0 => convergence::check_convergence(&mut self.world, plan.agents.len(), finished),
                calls => Err(format!("operators have restored {calls} settings")),
            };
            let Err(text) = calm else { return Ok(()) };
            if at > end {
                return Err(Violation { rule: "the cluster becomes idle in time", text });
            }
            if finished {
                self.wake_schedulers(plan);
            }
        }
    }

    fn set_quotas(&mut self, plan: &Plan) {
        let cpus = |cpus: u64| [("cpus".to_owned(), Scalar { value: cpus as f64 })].into_iter().collect();
        let mut configs = Vec::new();
        if let Some(limit) = plan.limit {
            configs.push(QuotaConfig { role: "a".to_owned(), limits: cpus(limit), ..QuotaConfig::default() });
        }
        if let Some(guarantee) = plan.guarantee {
            configs.push(QuotaConfig { role: "b".to_owned(), guarantees: cpus(guarantee), ..QuotaConfig::default() });
        }
        if !configs.is_empty() {
            let update = call::UpdateQuota { force: Some(true), quota_configs: configs };
            let kind = Some(call::Type::UpdateQuota as i32);
            self.world.operate(Call { r#type: kind, update_quota: Some(update), ..Call::default() });
        }
    }
}
