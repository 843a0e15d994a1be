//! Oversubscription: allocated but unused resources may be offered as revocable, and their executors are ended when the
//! machine gets too busy (AGT-130, AGT-131).
//!
//! A [`ResourceEstimator`] decides how much is offered, a [`QosController`] which executors are ended. Both depend on
//! measurements only: they have no clock and do no I/O.

mod fixed;
mod load;
mod measured;

use std::sync::Arc;
use std::time::Duration;

use base::{ExecutorId, FrameworkId, Time};
use protos::mesos::task_status::Reason;
use resources::Resources;

use crate::agent::{Agent, AgentState};
use crate::output::{Outbox, Output};
use crate::state::ExecutorState;
use crate::timers::Timer;

pub use fixed::FixedEstimator;
pub use load::LoadController;
pub use measured::{ExecutorUsage, Load, Measurement, Usage};

/// Says how much may be offered a second time.
pub trait ResourceEstimator: Send {
    /// What may be offered as revocable resources beyond the revocable ones that are in use already. What is not
    /// marked as revocable in the answer is left out.
    fn oversubscribable(&mut self, usage: &Usage) -> Resources;
}

/// Says which executors have to go so that the others get what they were promised.
pub trait QosController: Send {
    /// Corrections to make now. Executors without revocable resources are never ended, whatever this returns.
    fn corrections(&mut self, usage: &Usage) -> Vec<Correction>;
}

/// A correction of a [`QosController`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Correction {
    /// End this executor; its tasks become TASK_GONE (or TASK_LOST) with REASON_CONTAINER_PREEMPTED.
    Kill {
        /// Its framework.
        framework: FrameworkId,
        /// The executor.
        executor: ExecutorId,
    },
}

/// The policy of oversubscription, with its intervals; without both parts there is none.
#[derive(Default)]
pub struct Policy {
    /// How much may be offered a second time (`--resource_estimator`).
    pub estimator: Option<Box<dyn ResourceEstimator>>,
    /// `--oversubscribed_resources_interval`.
    pub estimate_interval: Duration,
    /// Which revocable executors must end (`--qos_controller`).
    pub controller: Option<Box<dyn QosController>>,
    /// `--qos_correction_interval_min`; a second at least.
    pub correction_interval: Duration,
}

/// The policy in force, and what came of it.
#[derive(Default)]
pub(crate) struct Oversubscription {
    policy: Policy,
    /// The revocable resources in all; none before the first estimate.
    total: Option<Arc<Resources>>,
    /// Whether the next measurement is for an estimate, and whether for corrections.
    estimate_due: bool,
    correction_due: bool,
}

/// The shortest time between two looks.
const INTERVAL_MIN: Duration = Duration::from_secs(1);

impl Agent {
    /// Puts a policy in force; the first look is at once.
    pub fn oversubscribe(&mut self, policy: Policy, now: Time) {
        if policy.estimator.is_some() {
            self.timers.set(now, Timer::Estimate);
        }
        if policy.controller.is_some() {
            self.timers.set(now, Timer::CorrectUsage);
        }
        self.oversubscription.policy = policy;
    }

    /// Whether there is an estimator, and the total of revocable resources as last reported.
    pub(crate) fn oversubscribed(&self) -> Option<Arc<Resources>> {
        self.oversubscription.policy.estimator.as_ref()?;
        Some(self.oversubscription.total.clone().unwrap_or_default())
    }

    /// It is time for an estimate.
    pub(crate) fn estimate_is_due(&mut self, now: Time, out: &mut Outbox) {
        let interval = self.oversubscription.policy.estimate_interval.max(INTERVAL_MIN);
        self.timers.set(now + interval, Timer::Estimate);
        self.oversubscription.estimate_due = true;
        self.measure(out);
    }

    /// It is time for corrections.
    pub(crate) fn correction_is_due(&mut self, now: Time, out: &mut Outbox) {
        let interval = self.oversubscription.policy.correction_interval.max(INTERVAL_MIN);
        self.timers.set(now + interval, Timer::CorrectUsage);
        self.oversubscription.correction_due = true;
        self.measure(out);
    }

    fn measure(&self, out: &mut Outbox) {
        if !matches!(self.state, AgentState::Recovering | AgentState::Terminating) {
            out.outputs.push(Output::Measure);
        }
    }

    /// Passes a measurement to the policy.
    pub(crate) fn measured(&mut self, measurement: Measurement, now: Time, out: &mut Outbox) {
        let usage = self.usage(measurement, now);
        if std::mem::take(&mut self.oversubscription.estimate_due)
            && let Some(estimator) = &mut self.oversubscription.policy.estimator
        {
            let total = estimator.oversubscribable(&usage).revocable() + &usage.revocable();
            self.take_estimate(total, out);
        }
        if std::mem::take(&mut self.oversubscription.correction_due)
            && let Some(controller) = &mut self.oversubscription.policy.controller
        {
            for Correction::Kill { framework, executor } in controller.corrections(&usage) {
                self.preempt_revocable(&framework, &executor, out);
            }
        }
    }

    /// Tells the master if the revocable resources are others now.
    fn take_estimate(&mut self, total: Resources, out: &mut Outbox) {
        if self.oversubscription.total.as_ref().is_some_and(|known| **known == total) {
            return;
        }
        self.oversubscription.total = Some(Arc::new(total));
        if self.state == AgentState::Running {
            self.update_slave(out);
        }
    }

    fn preempt_revocable(&mut self, framework: &FrameworkId, executor: &ExecutorId, out: &mut Outbox) {
        let Some(known) = self.executor(framework.as_str(), executor.as_str()) else { return };
        let ends = matches!(known.state, ExecutorState::Terminating | ExecutorState::Terminated);
        let revocable = known.resources().iter().any(|resource| resource.revocable.is_some());
        if ends || !revocable {
            out.warn(format!(
                "Executor {executor} of framework {framework} is not preempted: it ends, or holds no revocable resources"
            ));
            return;
        }
        let container = known.container.clone();
        let message = "The container was ended by the QoS controller, for it used revocable resources".to_owned();
        if self.preempt(&container, Reason::ContainerPreempted, message, out) {
            self.counters.executors_preempted += 1;
        }
    }
}
