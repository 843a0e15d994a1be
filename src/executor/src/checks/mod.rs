//! Health checks, which may end a task, and checks, which only report (docs/mesos/executors.md).
//!
//! A [`Checks`] belongs to one task: it probes on time and returns its findings. Executors report these to the agent
//! and end the task. COMMAND probes are processes beside the executor, or inside the task's container.

mod error;
mod location;
mod probe;
mod session;
mod state;

use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use crate::messages::{CheckStatus, Task};
use crate::poller::{Poller, Token, earlier};
use containers::WaitStatus;
use error::InvalidCheck;
pub(crate) use location::CheckLocation;
use location::Network;
use probe::{Outcome, Probe, Probing};
pub(crate) use session::main as run_in_session;
pub(crate) use state::CheckReport;
use state::{HealthState, StatusState, Verdict};

/// Kind of a check, with the state that it derives from the outcomes of its probes.
#[derive(Debug)]
enum Kind {
    Health(HealthState),
    Status(StatusState),
}

/// One check of a task.
#[derive(Debug)]
struct Item {
    probe: Probe,
    kind: Kind,
    delay: Duration,
    interval: Duration,
    /// Time limit of a probe; `None` for no limit.
    timeout: Option<Duration>,
    /// Time of the next probe; `None` while a probe runs, and while the task does not run.
    next_at: Option<Instant>,
    probing: Option<(Probing, Option<Instant>)>,
    /// Whether the check waits until the agent has returned.
    paused: bool,
}

/// All checks of a task: at most one health check and one check.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    items: Vec<Item>,
    reports: Vec<CheckReport>,
    network: Network,
}

/// Converts seconds of a check. Negative ones, which the master rejects, become zero.
fn seconds(number: f64) -> Duration {
    Duration::try_from_secs_f64(number).unwrap_or_default()
}

impl Checks {
    /// Creates the checks of `task`. A check that cannot be performed is logged and omitted.
    pub(crate) fn of(task: &Task, location: &CheckLocation<'_>) -> Checks {
        let mut checks = Checks::default();
        if let Some(check) = &task.health_check {
            let kind =
                Kind::Health(HealthState::new(check.consecutive_failures(), seconds(check.grace_period_seconds())));
            checks.add(
                Probe::of_health_check(check, task, location),
                kind,
                (check.delay_seconds(), check.interval_seconds(), check.timeout_seconds()),
            );
        }
        if let Some(check) = &task.check {
            let kind = Kind::Status(StatusState::new(check.r#type()));
            checks.add(
                Probe::of_check(check, task, location),
                kind,
                (check.delay_seconds(), check.interval_seconds(), check.timeout_seconds()),
            );
        }
        checks
    }

    fn add(&mut self, probe: Result<Probe, InvalidCheck>, kind: Kind, (delay, interval, timeout): (f64, f64, f64)) {
        match probe {
            Ok(probe) => self.items.push(Item {
                probe,
                kind,
                delay: seconds(delay),
                interval: seconds(interval),
                timeout: Some(seconds(timeout)).filter(|timeout| !timeout.is_zero()),
                next_at: None,
                probing: None,
                paused: false,
            }),
            Err(error) => stdio::err!("A check of the task cannot be created: {}", base::error_chain(&error)),
        }
    }

    /// Performs HTTP and TCP probes in the network namespace of this process from now on.
    pub(crate) fn enter_network_of(&mut self, pid: i32) {
        // A process that has ended at once has no network namespace.
        if self.items.is_empty() || pid == 0 {
            return;
        }
        match Network::of(pid) {
            Ok(network) => self.network = network,
            Err(error) => {
                stdio::err!("The network of the task cannot be entered, its checks use the host's network: {error}")
            }
        }
    }

    /// Starts the checks, when the task runs.
    pub(crate) fn start(&mut self, now: Instant) {
        for item in &mut self.items {
            item.next_at = Some(now + item.delay);
            if let Kind::Health(health) = &mut item.kind {
                health.start(now);
            }
        }
    }

    /// Pauses the checks while there is no connection to the agent: there are no findings meanwhile.
    pub(crate) fn pause(&mut self) {
        for item in &mut self.items {
            item.paused |= item.next_at.is_some() || item.probing.is_some();
            item.next_at = None;
            if let Some((probing, _)) = item.probing.take() {
                probing.abandon();
            }
        }
    }

    /// Resumes the checks after the agent has returned.
    pub(crate) fn resume(&mut self, now: Instant) {
        for item in self.items.iter_mut().filter(|item| item.paused) {
            item.paused = false;
            item.next_at = Some(now + item.interval);
        }
    }

    /// Stops the checks because the task is ending or has ended: there are no further findings.
    pub(crate) fn stop(&mut self) {
        for item in &mut self.items {
            (item.next_at, item.paused) = (None, false);
            if let Some((probing, _)) = item.probing.take() {
                probing.abandon();
            }
        }
        self.reports.clear();
    }

    /// Returns the latest result of the task's check, if it has one. Every status update of the task contains it.
    pub(crate) fn status(&self) -> Option<CheckStatus> {
        self.items.iter().find_map(|item| match &item.kind {
            Kind::Status(state) => Some(state.latest().clone()),
            Kind::Health(_) => None,
        })
    }

    /// Removes the next finding and returns it.
    pub(crate) fn next(&mut self) -> Option<CheckReport> {
        (!self.reports.is_empty()).then(|| self.reports.remove(0))
    }

    /// Returns the time at which [`Checks::on_time`] must be called.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        let of_item = |item: &Item| earlier(item.next_at, item.probing.as_ref().and_then(|(_, deadline)| *deadline));
        self.items.iter().filter_map(of_item).min()
    }

    /// Adds the descriptors to wait for. Their tokens are `first` and those after it, at most two.
    pub(crate) fn interests<'a>(&'a self, first: Token, poller: &mut Poller<'a>) {
        for (token, item) in (first..).zip(&self.items) {
            if let Some((Probing::Socket(waiting), _)) = &item.probing {
                poller.add(token, waiting.fd(), waiting.interest());
            }
        }
    }

    /// Handles the result of a wait for the descriptor of the item with number `index`.
    pub(crate) fn on_ready(&mut self, index: usize, found: PollFlags, now: Instant) {
        let Some(item) = self.items.get_mut(index) else { return };
        if let Some((Probing::Socket(waiting), _)) = &mut item.probing
            && let Some(outcome) = waiting.on_ready(found)
        {
            self.finish(index, outcome, now);
        }
    }

    /// Handles the end of a child process. Returns whether it was a probe.
    pub(crate) fn on_child(&mut self, pid: i32, status: WaitStatus, now: Instant) -> bool {
        let is_it = |item: &Item| matches!(&item.probing, Some((Probing::Process { pid: own, .. }, _)) if *own == pid);
        let Some(index) = self.items.iter().position(is_it) else { return false };
        self.finish(index, Outcome::Ended(status), now);
        true
    }

    /// Starts the probes that are due, and gives up those whose time limit is over.
    pub(crate) fn on_time(&mut self, now: Instant) {
        for index in 0..self.items.len() {
            let item = &mut self.items[index];
            if let Some((_, Some(deadline))) = &item.probing
                && now >= *deadline
            {
                if let Some((probing, _)) = item.probing.take() {
                    probing.abandon();
                }
                let words = format!("timed out after {:?}", item.timeout.unwrap_or_default());
                self.finish(index, Outcome::Nothing(words), now);
            } else if item.next_at.is_some_and(|at| now >= at) {
                item.next_at = None;
                match item.probe.start(&self.network) {
                    Ok(probing) => item.probing = Some((probing, item.timeout.map(|timeout| now + timeout))),
                    Err(error) => self.finish(index, Outcome::Nothing(base::error_chain(&error)), now),
                }
            }
        }
    }

    fn finish(&mut self, index: usize, outcome: Outcome, now: Instant) {
        let item = &mut self.items[index];
        item.probing = None;
        if let Outcome::Redirected = outcome {
            match item.probe.follow(&self.network) {
                Ok(probing) => item.probing = Some((probing, item.timeout.map(|timeout| now + timeout))),
                Err(error) => self.finish(index, Outcome::Nothing(base::error_chain(&error)), now),
            }
            return;
        }
        item.next_at = Some(now + item.interval);
        let verdict = match &mut item.kind {
            Kind::Health(health) => health.on_outcome(item.probe.is_good(&outcome), now),
            Kind::Status(state) => state.on_result(item.probe.result(&outcome)),
        };
        if let Outcome::Nothing(words) = &outcome {
            stdio::err!("A check of the task failed: {words}");
        }
        if let Verdict::Tell(report) = verdict {
            self.reports.push(report);
        }
    }
}
