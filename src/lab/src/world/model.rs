//! Parameters of the modelled parts of a world: networks, disks, processes, and the cost of the master's work.

use std::time::Duration;

use crate::dist::Dist;

/// How much of an agent is real.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fidelity {
    /// The agent's core and its checkpoints, with modelled executors that speak the executor API.
    #[default]
    Full,
    /// Only what a master sees of an agent: registration, and the updates of its tasks. A tenth of the cost; for
    /// worlds with millions of tasks in which no agent fails.
    Light,
}

/// The modelled parts.
#[derive(Clone, Debug)]
pub struct Model {
    /// One way through the network, for each message.
    pub latency: Dist,
    /// The master's CPU time for each input. Inputs that come meanwhile wait, and are handled together.
    pub master_cost: Duration,
    /// A durable write of the registry.
    pub registry_write: Dist,
    /// A durable write of an agent's checkpoints.
    pub agent_write: Dist,
    /// From the order to start a container until its process runs.
    pub container_start: Dist,
    /// The share of tasks that fail, at a random moment of their run. 0 to 1.
    pub failures: f64,
    /// The share of tasks that take `straggling` times as long. 0 to 1.
    pub stragglers: f64,
    /// See `stragglers`; at least 1.
    pub straggling: f64,
    /// How much of an agent is real.
    pub fidelity: Fidelity,
    /// Whether agents are restarted after they have ended. If not, their writes take time and are not kept, since only
    /// a start reads them. (An agent that ends on its own nevertheless restarts, with an empty disk.)
    pub restarts: bool,
}

impl Default for Model {
    /// A quiet data centre.
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
