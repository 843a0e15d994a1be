//! Explanations for operators why a framework has no offers, and which agents its own settings exclude. The allocator
//! computes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use allocator::{AgentExplanation, Explanation, Inactivity, Obstacle};
use base::{AgentId, FrameworkId};
use protos::mesos::DrainState;
use protos::mesos::machine_info::Mode;
use resources::{Quantities, Role, RoleError};

use crate::master::Master;
use crate::state::Framework;

/// Reasons why a question about offers cannot be answered. `Display` is the whole text of the response, so no variant
/// has a source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExplainError {
    /// The role (its text comes first) is invalid.
    #[error("Invalid role '{0}': {1}")]
    Role(String, RoleError),
    /// No framework has this id or name.
    #[error("No framework has the id or the name '{0}'")]
    Unknown(String),
    /// Several frameworks have this name.
    #[error("Several frameworks have the name '{0}'; use an id")]
    Ambiguous(String),
}

/// Roles and agents that a framework's own settings exclude from its offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExcludedAgents {
    /// Id of the framework.
    pub framework: FrameworkId,
    /// Roles that the framework suppresses.
    pub suppressed: Vec<String>,
    /// Agents that the framework's offer constraints exclude, in each of its roles that has constraints.
    pub excluded: BTreeMap<Role, Vec<AgentId>>,
}

/// Maximum number of roles of a framework that are explained at once.
const MOST_ROLES: usize = 16;

impl Master {
    /// Explains why a framework has no or few offers, in one role or in each of its roles. The framework is named by
    /// its id, or by a name that no other framework has. Without `role`, at most 16 roles are explained. Offers smaller
    /// than `need`, such as the resources of a task, do not count. Takes time in proportion to the number of agents.
    ///
    /// # Errors
    /// The role is invalid, or no single framework has that id or name.
    pub fn explain(
        &self,
        framework: &str,
        role: Option<&str>,
        need: &Quantities,
    ) -> Result<Vec<Explanation>, ExplainError> {
        let id = self.framework_named(framework)?;
        let roles: Vec<Role> = match role {
            Some(role) => vec![Role::parse(role).map_err(|why| ExplainError::Role(role.to_owned(), why))?],
            None => self.allocation.allocator().framework_roles(&id).into_keys().take(MOST_ROLES).collect(),
        };
        let down = self.machines_down();
        let explain = |role: &Role| {
            let mut explanation = self.allocation.allocator().explain(&id, role, need, self.now);
            self.add_ports_to_names(&mut explanation.agents);
            for verdict in &mut explanation.agents {
                if let Obstacle::Inactive(why) = &mut verdict.obstacle {
                    *why = self.inactivity(&verdict.agent);
                }
            }
            explanation.down.clone_from(&down);
            explanation
        };
        Ok(roles.iter().map(explain).collect())
    }

    /// Adds ports to the names of agents that share a hostname.
    fn add_ports_to_names(&self, verdicts: &mut [AgentExplanation]) {
        let mut shared: BTreeMap<String, usize> = BTreeMap::new();
        verdicts.iter().for_each(|verdict| *shared.entry(verdict.hostname.clone()).or_default() += 1);
        for verdict in verdicts.iter_mut().filter(|verdict| shared.get(&verdict.hostname).is_some_and(|n| *n > 1)) {
            if let Some(agent) = self.agent_by_id(verdict.agent.as_str()).and_then(|key| self.agent(key)) {
                verdict.name = format!("{}:{}", verdict.hostname, agent.pid.address().port());
            }
        }
    }

    /// Returns the names of the machines that are down for maintenance.
    fn machines_down(&self) -> Vec<String> {
        let down = self.maintenance.machines.values().filter(|machine| machine.mode == Mode::Down);
        down.map(|machine| {
            let named = machine.id.hostname.clone().filter(|name| !name.is_empty());
            named.or_else(|| machine.id.ip.clone()).unwrap_or_default()
        })
        .collect()
    }

    fn inactivity(&self, agent: &AgentId) -> Inactivity {
        let Some(agent) = self.agent_by_id(agent.as_str()).and_then(|key| self.agent(key)) else {
            return Inactivity::Any;
        };
        match &agent.drain {
            _ if !agent.connected => Inactivity::Disconnected,
            Some(drain) if drain.state() == DrainState::Drained => Inactivity::Drained,
            Some(_) => Inactivity::Draining,
            None if agent.deactivated => Inactivity::Deactivated,
            None => Inactivity::Any,
        }
    }

    /// Returns the suppressed roles of each framework, and the agents that its offer constraints exclude
    /// (`/allocator/offer_constraints_debug`).
    pub fn constraints(&self) -> Vec<ExcludedAgents> {
        let kept = |framework: &Arc<Framework>| ExcludedAgents {
            framework: framework.id.clone(),
            suppressed: framework.suppressed.iter().cloned().collect(),
            excluded: self.allocation.allocator().excluded_by_constraints(&framework.id),
        };
        self.frameworks.values().map(kept).collect()
    }

    fn framework_named(&self, text: &str) -> Result<FrameworkId, ExplainError> {
        if let Some(known) = self.framework_by_id(text).and_then(|key| self.framework(key)) {
            return Ok(known.id.clone());
        }
        let mut named = self.frameworks.values().filter(|framework| framework.info.name == text);
        match (named.next(), named.next()) {
            (Some(only), None) => Ok(only.id.clone()),
            (None, _) => Err(ExplainError::Unknown(text.to_owned())),
            (Some(_), Some(_)) => Err(ExplainError::Ambiguous(text.to_owned())),
        }
    }
}
