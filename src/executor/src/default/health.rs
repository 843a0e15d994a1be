//! Checks of a pod's tasks: probes on time, findings for each task, and the end of an unhealthy one.
//!
//! COMMAND probes are processes of the executor in the task's sandbox, like the task; those of a task with a container
//! of its own (an image, volumes) are sessions in that container.

use containers::WaitStatus;
use rustix::event::PollFlags;

use super::life::DefaultExecutor;
use crate::checks::CheckReport;
use crate::clock;
use crate::kill::grace_of;
use crate::messages::{Reason, TaskState};
use crate::poller::{Poller, Token};

/// First token of probes, far beyond those of exchanges.
pub(super) const FIRST_PROBE: Token = 1 << 48;
/// Number of tokens of a task: it has at most a health check and a check.
const PROBES_PER_TASK: Token = 2;

impl DefaultExecutor {
    /// Adds the descriptors of the running probes.
    pub(super) fn probe_interests<'a>(&'a self, poller: &mut Poller<'a>) {
        for (first, task) in (FIRST_PROBE..).step_by(PROBES_PER_TASK as usize).zip(&self.tasks) {
            task.checks.interests(first, poller);
        }
    }

    /// Handles the result of a wait for a probe.
    pub(super) fn on_probe(&mut self, token: Token, found: PollFlags) {
        let number = token - FIRST_PROBE;
        let (index, item) = ((number / PROBES_PER_TASK) as usize, (number % PROBES_PER_TASK) as usize);
        if let Some(task) = self.tasks.get_mut(index) {
            task.checks.on_ready(item, found, clock::now());
            self.send_check_reports(index);
        }
    }

    /// Handles the end of child processes, which are always probes.
    pub(super) fn reap(&mut self) {
        self.children.clear();
        while let Some((pid, status)) = containers::reap() {
            self.on_child(pid, status);
        }
    }

    fn on_child(&mut self, pid: i32, status: WaitStatus) {
        for index in 0..self.tasks.len() {
            if self.tasks[index].checks.on_child(pid, status, clock::now()) {
                return self.send_check_reports(index);
            }
        }
    }

    /// Reports the findings of a task's checks, and ends a task that has been unhealthy for too long.
    pub(super) fn send_check_reports(&mut self, index: usize) {
        while let Some(report) = self.tasks[index].checks.next() {
            let (reason, kill) = match report {
                CheckReport::Status => (Reason::TaskCheckStatusUpdated, false),
                CheckReport::Health { healthy, kill } => {
                    self.tasks[index].healthy = Some(healthy);
                    (Reason::TaskHealthCheckStatusUpdated, kill)
                }
            };
            self.tell(index, TaskState::TaskRunning, |status| status.reason = Some(reason as i32));
            if kill {
                // From now on the end of every task of this pod is reported as one of an unhealthy pod.
                self.unhealthy = true;
                let grace = grace_of(None, self.tasks[index].task.kill_policy);
                self.kill(index, grace);
            }
        }
    }
}
