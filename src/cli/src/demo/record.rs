//! What happened to each task of the demo: where it ran, for how long, and how it ended.

use std::collections::BTreeMap;
use std::time::Duration;

use base::Time;
use resources::Amount;
use sdk::v1::{TaskInfo, TaskState, TaskStatus};

/// One task, launched or ended.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) agent: String,
    pub(super) host: String,
    pub(super) cpus: Amount,
    pub(super) mem: Amount,
    pub(super) launched: Time,
    pub(super) state: TaskState,
    pub(super) message: String,
    pub(super) ended: Option<Time>,
}

impl Record {
    /// From launch to end.
    pub(super) fn took(&self) -> Option<Duration> {
        Some(self.ended?.since(self.launched))
    }

    /// Whether it ended, and well.
    pub(super) fn finished(&self) -> bool {
        self.state == TaskState::TaskFinished
    }
}

/// All tasks of the demo that were launched, by id.
#[derive(Clone, Debug, Default)]
pub(super) struct Records(pub(super) BTreeMap<String, Record>);

impl Records {
    /// A task was placed on an agent.
    pub(super) fn launched(&mut self, task: &TaskInfo, host: &str, now: Time) {
        let resources = sdk::task::from_v1(&task.resources).unwrap_or_default();
        let record = Record {
            agent: task.agent_id.value.clone(),
            host: host.to_owned(),
            cpus: resources.cpus(),
            mem: resources.mem(),
            launched: now,
            state: TaskState::TaskStaging,
            message: String::new(),
            ended: None,
        };
        self.0.insert(task.task_id.value.clone(), record);
    }

    /// A status came; `true` if it is the task's end.
    pub(super) fn update(&mut self, status: &TaskStatus, now: Time) -> bool {
        let Some(record) = self.0.get_mut(&status.task_id.value) else { return false };
        record.state = status.state();
        record.message = status.message().to_owned();
        let ended = sdk::is_terminal(record.state) && record.ended.is_none();
        if ended {
            record.ended = Some(now);
        }
        ended
    }

    /// How many have ended.
    pub(super) fn ended(&self) -> usize {
        self.0.values().filter(|r| r.ended.is_some()).count()
    }

    /// What the tasks that run now hold on an agent: how many they are, processors, memory.
    pub(super) fn held(&self, agent: &str) -> (usize, Amount, Amount) {
        let running = self.0.values().filter(|r| r.ended.is_none() && r.agent == agent);
        running.fold((0, Amount::default(), Amount::default()), |(n, cpus, mem), r| (n + 1, cpus + r.cpus, mem + r.mem))
    }
}
