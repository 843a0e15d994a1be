//! Oversubscription: allocated but unused resources are offered as revocable, and executors that use them are ended
//! when the machine is too busy (AGT-130, AGT-131).
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

/// An estimator of the resources that may be oversubscribed.
pub trait ResourceEstimator: Send {
    /// Returns the resources that may be offered as revocable, beyond the revocable ones that are already in use.
    /// Resources of the result that are not marked as revocable are ignored.
    fn oversubscribable(&mut self, usage: &Usage) -> Resources;
}

/// A policy that decides which revocable executors are ended, so that the others get what they hold.
pub trait QosController: Send {
    /// Returns the corrections to make now. Executors without revocable resources are never ended, whatever this
    /// returns.
    fn corrections(&mut self, usage: &Usage) -> Vec<Correction>;
}

/// A correction that a [`QosController`] makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Correction {
    /// Ends an executor. Its tasks become TASK_GONE (or TASK_LOST) with REASON_CONTAINER_PREEMPTED.
    Kill {
        /// Framework of the executor.
        framework: FrameworkId,
        /// Id of the executor.
        executor: ExecutorId,
    },
}

/// The agent's policy of oversubscription. Without an estimator and a controller there is no oversubscription.
#[derive(Default)]
pub struct Policy {
    /// Estimator of the resources that may be oversubscribed (`--resource_estimator`).
    pub estimator: Option<Box<dyn ResourceEstimator>>,
    /// Interval between estimates (`--oversubscribed_resources_interval`).
    pub estimate_interval: Duration,
    /// Controller that decides which revocable executors are ended (`--qos_controller`).
    pub controller: Option<Box<dyn QosController>>,
    /// Interval between corrections (`--qos_correction_interval_min`), at least one second.
    pub correction_interval: Duration,
}

/// The policy of oversubscription with its last estimate.
#[derive(Default)]
pub(crate) struct Oversubscription {
    policy: Policy,
    /// Total of the revocable resources; `None` before the first estimate.
    total: Option<Arc<Resources>>,
    /// Whether the next measurement is for an estimate, and whether it is for corrections.
    estimate_due: bool,
    correction_due: bool,
}

/// Shortest interval between two measurements for the same purpose.
const INTERVAL_MIN: Duration = Duration::from_secs(1);

impl Agent {
    /// Sets the policy of oversubscription; the first measurement is taken at once.
    pub fn oversubscribe(&mut self, policy: Policy, now: Time) {
        if policy.estimator.is_some() {
            self.timers.set(now, Timer::Estimate);
        }
        if policy.controller.is_some() {
            self.timers.set(now, Timer::CorrectUsage);
        }
        self.oversubscription.policy = policy;
    }

    /// Returns the total of revocable resources as last estimated; `None` if there is no estimator.
    pub(crate) fn oversubscribed(&self) -> Option<Arc<Resources>> {
        self.oversubscription.policy.estimator.as_ref()?;
        Some(self.oversubscription.total.clone().unwrap_or_default())
    }

    /// Handles the timer of estimates: requests a measurement.
    pub(crate) fn estimate_is_due(&mut self, now: Time, out: &mut Outbox) {
        let interval = self.oversubscription.policy.estimate_interval.max(INTERVAL_MIN);
        self.timers.set(now + interval, Timer::Estimate);
        self.oversubscription.estimate_due = true;
        self.measure(out);
    }

    /// Handles the timer of corrections: requests a measurement.
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

    /// Handles a measurement: passes it to the estimator and the controller if they are due.
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

    /// Stores an estimate, and tells the master if the revocable resources have changed.
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
                "Executor {executor} of framework {framework} is not preempted: it is terminating, or has no revocable \
                 resources"
            ));
            return;
        }
        let container = known.container.clone();
        let message = "The QoS controller has terminated the container, which used revocable resources".to_owned();
        if self.preempt(&container, Reason::ContainerPreempted, message, out) {
            self.counters.executors_preempted += 1;
        }
    }
}
