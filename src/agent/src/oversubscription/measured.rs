//! Measurements of the machine and the containers, and the view of them that policies have.
//!
//! It decides nothing.

use base::{ExecutorId, FrameworkId, Time};
use protos::mesos as pb;
use resources::Resources;

use crate::agent::Agent;
use crate::state::{ContainerName, Executor, ExecutorState};

/// Load averages of the machine, as the kernel reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Load average over one minute.
    pub one_minute: f64,
    /// Load average over five minutes.
    pub five_minutes: f64,
    /// Load average over fifteen minutes.
    pub fifteen_minutes: f64,
}

/// One measurement of the machine and the containers.
#[derive(Clone, Debug, Default)]
pub struct Measurement {
    /// Load of the machine.
    pub load: Load,
    /// Resource use of containers; those that are missing could not be measured.
    pub containers: Vec<(ContainerName, pb::ResourceStatistics)>,
}

/// Allocation and use of one executor.
#[derive(Clone, Debug)]
pub struct ExecutorUsage {
    /// Framework of the executor.
    pub framework: FrameworkId,
    /// Id of the executor.
    pub executor: ExecutorId,
    /// Container of the executor.
    pub container: ContainerName,
    /// Resources that the executor and its tasks hold.
    pub allocated: Resources,
    /// Resources that its container uses; `None` if that was not measured.
    pub statistics: Option<pb::ResourceStatistics>,
}

/// Allocation and use of an agent's executors at one instant.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// Time of the measurement.
    pub at: Time,
    /// Total resources of the agent, without oversubscribed ones.
    pub total: Resources,
    /// Running executors of the agent.
    pub executors: Vec<ExecutorUsage>,
    /// Load of the machine.
    pub load: Load,
}

impl Usage {
    /// Returns the revocable resources in use, without allocations.
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
    /// Joins the core's allocations with a measurement of their use.
    pub(super) fn usage(&self, measurement: Measurement, now: Time) -> Usage {
        let Measurement { load, mut containers } = measurement;
        let executors = self.frameworks.executors();
        let mut of = |executor: &Executor| ExecutorUsage {
            framework: executor.framework_id.clone(),
            executor: executor.id.clone(),
            container: executor.container.clone(),
            // The resources were parsed when the agent accepted the tasks.
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
