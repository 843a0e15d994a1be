//! Parameters of the modelled parts of a world: networks, disks, processes, and the cost of the master's work.

use std::time::Duration;

use crate::dist::Dist;

/// The parts of an agent that are real rather than modelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fidelity {
    /// The agent's core and its checkpoints are real; executors are modelled, and use the executor API.
    #[default]
    Full,
    /// Only the messages of an agent with the master are modelled: registration, and the updates of its tasks. It needs
    /// a tenth of the time, for worlds with millions of tasks in which no agent fails.
    Light,
}

/// Parameters of the modelled networks, disks and processes.
#[derive(Clone, Debug)]
pub struct Model {
    /// Distribution of the one-way latency of a message.
    pub latency: Dist,
    /// The master's CPU time for each input. Inputs that arrive meanwhile wait, and are handled together.
    pub master_cost: Duration,
    /// Distribution of the duration of a durable write of the registry.
    pub registry_write: Dist,
    /// Distribution of the duration of a durable write of an agent's checkpoints.
    pub agent_write: Dist,
    /// Distribution of the time from the launch of a container until its process runs.
    pub container_start: Dist,
    /// Share of tasks that fail at a random time of their run, 0 to 1.
    pub failures: f64,
    /// Share of tasks that take `straggling` times as long, 0 to 1.
    pub stragglers: f64,
    /// Factor by which slow tasks take longer; at least 1.
    pub straggling: f64,
    /// The parts of each agent that are real.
    pub fidelity: Fidelity,
    /// Whether agents are restarted after they have ended.
    ///
    /// If not, their writes take time but are not kept, since only a start reads them. (An agent that ends on its own
    /// nevertheless restarts, with an empty disk.)
    pub restarts: bool,
}

impl Default for Model {
    /// Returns the model of a data centre without faults.
    fn default() -> Model {
        Model {
            latency: Dist::Constant(Duration::from_micros(250)),
            master_cost: Duration::ZERO,
            registry_write: Dist::Constant(Duration::from_millis(2)),
            agent_write: Dist::Constant(Duration::from_millis(1)),
            container_start: Dist::Constant(Duration::from_millis(5)),
            failures: 0.0,
            stragglers: 0.0,
            straggling: 5.0,
            fidelity: Fidelity::Full,
            restarts: true,
        }
    }
}
