//! Avoids agents whose tasks failed while the same jobs succeed elsewhere, if that is wanted.
//!
//! Which these are is decided by `advice::agents`. A task that fails on such an agent is tried again at once, and that
//! counts as no failure of its own.

use std::time::Duration;

use advice::agents::Standing;
use base::Time;
use sdk::v1::task_status::Reason;
use sdk::v1::{TaskState, TaskStatus};

use super::Core;
use super::record::{Record, Stage};

/// A task that runs for so long runs well.
const STEADY: Duration = Duration::from_secs(10);
/// Maximum number of tasks of a job that are examined for that.
const LOOKED_AT: usize = 100;

/// Whether a task has ended by itself and says something of its agent: whether it failed.
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

/// How many of a job's tasks run well on other agents, as far as they are examined.
fn well_elsewhere(record: &Record, agent_id: &str, now: Time) -> u32 {
    let live = record.instances().values().take(LOOKED_AT).filter_map(|instance| instance.live());
    let well = live.filter(|live| {
        let is_steady = live.running.is_some_and(|since| now.since(since) >= STEADY);
        live.stage == Stage::Running && is_steady && live.place.agent_id != agent_id
    });
    u32::try_from(well.count()).unwrap_or(u32::MAX)
}

impl Core {
    /// How many more tasks an agent may be given: none while it is avoided, and one at a time on trial.
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
