//! The fields of a master's documents (LEG-60 to LEG-64) that the commands show.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// The document `/frameworks`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Frameworks {
    pub(crate) frameworks: Vec<Framework>,
    pub(crate) completed_frameworks: Vec<Framework>,
}

/// A framework with its tasks and offers.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Framework {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) user: String,
    pub(crate) active: bool,
    pub(crate) connected: bool,
    pub(crate) recovered: bool,
    pub(crate) role: Option<String>,
    pub(crate) roles: Vec<String>,
    pub(crate) used_resources: Amounts,
    pub(crate) offered_resources: Amounts,
    pub(crate) executors: Vec<Executor>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) unreachable_tasks: Vec<Task>,
    pub(crate) completed_tasks: Vec<Task>,
    pub(crate) offers: Vec<Offer>,
}

/// An executor that a framework provides.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Executor {
    pub(crate) executor_id: String,
    pub(crate) slave_id: String,
    pub(crate) resources: Amounts,
}

/// A task of a framework.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Id of the executor; empty for tasks that the agent's own executor runs.
    pub(crate) executor_id: String,
    /// Role to which the task's resources are allocated.
    pub(crate) role: String,
    pub(crate) slave_id: String,
    pub(crate) state: String,
    pub(crate) resources: Amounts,
    pub(crate) statuses: Vec<Status>,
}

/// A status of a task.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Status {
    pub(crate) timestamp: f64,
}

/// An offer that a framework holds.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Offer {
    pub(crate) id: String,
    pub(crate) slave_id: String,
    pub(crate) resources: Amounts,
    pub(crate) allocation_info: Allocation,
}

/// The role for which an offer is made.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Allocation {
    pub(crate) role: String,
}

/// The document `/slaves`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Agents {
    pub(crate) slaves: Vec<Agent>,
    /// Agents of the registry that have not reregistered since the master started.
    pub(crate) recovered_slaves: Vec<Agent>,
}

/// An agent of the cluster.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Agent {
    pub(crate) id: String,
    pub(crate) hostname: String,
    pub(crate) pid: String,
    pub(crate) active: bool,
    pub(crate) deactivated: bool,
    pub(crate) drain_info: DrainInfo,
    pub(crate) version: String,
    pub(crate) attributes: BTreeMap<String, Value>,
    pub(crate) resources: Amounts,
    pub(crate) used_resources: Amounts,
    pub(crate) offered_resources: Amounts,
    /// Reserved resources by role.
    pub(crate) reserved_resources: BTreeMap<String, Amounts>,
}

impl Agents {
    /// Returns the name of each agent in lists, by id: its host's name, with the port if several agents share it.
    pub(crate) fn names(&self) -> BTreeMap<&str, String> {
        let mut shared: BTreeMap<&str, usize> = BTreeMap::new();
        self.slaves.iter().for_each(|agent| *shared.entry(&agent.hostname).or_default() += 1);
        let name = |agent: &Agent| match agent.address().rsplit_once(':') {
            Some((_, port)) if shared.get(agent.hostname.as_str()).is_some_and(|agents| *agents > 1) => {
                format!("{}:{port}", agent.hostname)
            }
            _ => agent.hostname.clone(),
        };
        self.slaves.iter().map(|agent| (agent.id.as_str(), name(agent))).collect()
    }
}

/// The progress of an agent's draining.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct DrainInfo {
    pub(crate) state: String,
}

impl Agent {
    /// Returns the address of the agent's HTTP API, which is the part of the pid after `@`.
    pub(crate) fn address(&self) -> &str {
        self.pid.split_once('@').map_or("", |(_, address)| address)
    }

    /// Returns the IP address of the agent's HTTP API.
    pub(crate) fn ip(&self) -> &str {
        self.address().rsplit_once(':').map_or("", |(ip, _)| ip)
    }

    /// Returns whether `text` is the agent's id or the id's last part, such as S3.
    pub(crate) fn has_id(&self, text: &str) -> bool {
        self.id == text || self.id.rsplit_once('-').is_some_and(|(_, end)| end == text)
    }
}

/// A resource object: numbers for amounts, texts for ranges and sets.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Amounts(BTreeMap<String, Value>);

impl Amounts {
    /// Returns the amount of a resource; 0 if it is not named or has no amount.
    pub(crate) fn get(&self, name: &str) -> f64 {
        self.0.get(name).and_then(Value::as_f64).unwrap_or(0.0)
    }

    /// Iterates over the resources that are amounts.
    #[cfg(feature = "lab")]
    pub(crate) fn scalars(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_f64()?)))
    }

    /// Formats all resources that are not empty in the text form of resources.
    pub(crate) fn text(&self) -> String {
        let one = |(name, value): (&String, &Value)| match value {
            Value::Number(number) if number.as_f64() == Some(0.0) => None,
            Value::Number(number) => number.as_f64().map(|n| format!("{name}:{}", super::table::number(n))),
            Value::String(text) => Some(format!("{name}:{text}")),
            _ => None,
        };
        self.0.iter().filter_map(one).collect::<Vec<_>>().join("; ")
    }
}
