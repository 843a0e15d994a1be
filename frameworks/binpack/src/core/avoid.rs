//! Avoids agents whose tasks failed while the same jobs succeed elsewhere, if that is turned on.
//!
//! `advice::agents` decides which agents these are. A task that fails on such an agent is started again at once, and
//! the failure does not count as one of the task's own.

use std::time::Duration;

use advice::agents::Standing;
use base::Time;
use sdk::v1::task_status::Reason;
use sdk::v1::{TaskState, TaskStatus};

use super::Core;
use super::record::{LiveState, Record};

/// Time after which a running task counts as running well.
const STEADY: Duration = Duration::from_secs(10);
/// Maximum number of a job's tasks that are examined for running well.
const EXAMINED_MAX: usize = 100;

/// Returns whether a task failed, or `None` if the end of the task is no evidence about its agent.
fn evidence(status: &TaskStatus) -> Option<bool> {
    let own = [
        Reason::ContainerLimitation,
        Reason::ContainerLimitationDisk,
        Reason::ContainerLimitationMemory,
        Reason::MaxCompletionTimeReached,
    ];
    match status.state() {
        TaskState::TaskFinished => Some(false),
        TaskState::TaskFailed if status.reason.is_none() || !own.contains(&status.reason()) => Some(true),
        _ => None,
    }
}

/// Returns the number of a job's tasks that run well on other agents, among the first [`EXAMINED_MAX`].
fn well_elsewhere(record: &Record, agent_id: &str, now: Time) -> u32 {
    let live = record.instances().values().take(EXAMINED_MAX).filter_map(|instance| instance.live());
    let well = live.filter(|live| {
        let is_steady = live.running.is_some_and(|since| now.since(since) >= STEADY);
        live.stage == LiveState::Running && is_steady && live.place.agent_id != agent_id
    });
    u32::try_from(well.count()).unwrap_or(u32::MAX)
}

impl Core {
    /// Returns how many tasks may still be placed on an agent: none while it is avoided, one at a time while it is on
    /// trial, and `None` for no limit.
    pub(super) fn limit_of(&self, agent_id: &str) -> Option<u32> {
        match self.agents.standing(agent_id) {
            Standing::Good => None,
            Standing::OnTrial => Some(u32::from(!self.usage.contains_key(agent_id))),
            Standing::Avoided => Some(0),
        }
    }

    /// Counts the end of a task. Returns whether it is a failure that counts against its agent.
    pub(super) fn counts_against_agent(&mut self, serial: u64, number: u32, status: &TaskStatus, now: Time) -> bool {
        if !self.knobs.avoid_failing_agents {
            return false;
        }
        let Some(failed) = evidence(status) else { return false };
        let Some(record) = self.records.get(&serial) else { return false };
        let Some(live) = record.get(number).and_then(|i| i.live()).filter(|live| live.stopping.is_none()) else {
            return false;
        };
        let agent_id = &live.place.agent_id;
        let well = well_elsewhere(record, agent_id, now);
        self.agents.ended(agent_id, serial, failed, well, now) && failed
    }
}
