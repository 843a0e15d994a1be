//! What the shell measures, and what the policies see of it.
//!
//! It decides nothing.

use base::{ExecutorId, FrameworkId, Time};
use protos::mesos as pb;
use resources::Resources;

use crate::agent::Agent;
use crate::state::{ContainerName, Executor, ExecutorState};

/// Load averages, as the kernel gives them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Over a minute.
    pub one_minute: f64,
    /// Over five minutes.
    pub five_minutes: f64,
    /// Over fifteen minutes.
    pub fifteen_minutes: f64,
}

/// One measurement of the machine and the containers.
#[derive(Clone, Debug, Default)]
pub struct Measurement {
    /// Load of the machine.
    pub load: Load,
    /// What containers use; those that are missing could not be measured.
    pub containers: Vec<(ContainerName, pb::ResourceStatistics)>,
}

/// What one executor holds and uses.
#[derive(Clone, Debug)]
pub struct ExecutorUsage {
    /// Its framework.
    pub framework: FrameworkId,
    /// The executor.
    pub executor: ExecutorId,
    /// Its container.
    pub container: ContainerName,
    /// What it and its tasks hold.
    pub allocated: Resources,
    /// What its container uses, if that was measured.
    pub statistics: Option<pb::ResourceStatistics>,
}

/// What an agent's executors hold and use at one instant.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// When it was measured.
    pub at: Time,
    /// The agent's resources, without those that are offered a second time.
    pub total: Resources,
    /// Its executors that run.
    pub executors: Vec<ExecutorUsage>,
    /// Load of the machine.
    pub load: Load,
}

impl Usage {
    /// The revocable resources in use, without allocation.
    pub fn revocable(&self) -> Resources {
        let mut used = Resources::default();
        for executor in &self.executors {
            used += &executor.allocated.revocable();
        }
        used.unallocated()
    }

    #[cfg(test)]
    pub(crate) fn of(allocated: Resources) -> Usage {
        let executor = ExecutorUsage {
            framework: FrameworkId::new("f").unwrap(),
            executor: ExecutorId::new("e").unwrap(),
            container: ContainerName::top(&base::ContainerId::new("c").unwrap()),
            allocated,
            statistics: None,
        };
        Usage { executors: vec![executor], ..Usage::default() }
    }
}

impl Agent {
    /// The core's allocations with their measured use.
    pub(super) fn usage(&self, measurement: Measurement, now: Time) -> Usage {
        let Measurement { load, mut containers } = measurement;
        let executors = self.frameworks.executors();
        let mut of = |executor: &Executor| ExecutorUsage {
            framework: executor.framework_id.clone(),
            executor: executor.id.clone(),
            container: executor.container.clone(),
            // What the agent has taken can be read.
            allocated: resources::from_proto(&executor.resources()).unwrap_or_default(),
            statistics: containers
                .iter()
                .position(|(name, _)| *name == executor.container)
                .map(|index| containers.swap_remove(index).1),
        };
        let running = executors.filter(|executor| executor.state != ExecutorState::Terminated);
        let executors = running.map(|executor| of(executor)).collect();
        Usage { at: now, total: Resources::clone(&self.total), executors, load }
    }
}
