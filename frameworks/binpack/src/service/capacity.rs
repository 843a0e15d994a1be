//! Reports the agents to the scheduler: their total resources while a gang waits, and their containerizers while a job
//! for Docker waits. Asks the leading master and the agents.
//!
//! The core acts on the reports. If master or agents do not answer, or the framework's principal is not authorized to
//! see agents, the core uses only the offers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use resources::Role;
use sdk::AskError;
use sdk::driver::{self, AgentsError, Cluster};
use sdk::v1::master::response::get_agents::Agent;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::{Error, Handle};
use crate::core::{AgentTotals, Reply, Request, RequiredCapacity};
use crate::job::Job;

/// Interval of requests to the master while a report is required.
const EVERY: Duration = Duration::from_secs(10);
/// Maximum time for an answer of the master or an agent.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum number of requests to agents at the same time.
const AGENTS_MAX: usize = 64;

/// Obtains reports of the agents.
#[derive(Debug)]
pub(super) struct Source {
    cluster: Cluster,
    /// Role of the framework.
    role: Option<Role>,
    /// Whether agents have the Docker containerizer, by agent id.
    docker: Mutex<BTreeMap<String, bool>>,
}

impl Source {
    pub(super) fn new(options: &driver::Options) -> Source {
        let role = options.settings.framework.roles.first().and_then(|role| Role::parse(role).ok());
        Source { cluster: options.cluster(), role, docker: Mutex::default() }
    }

    /// Passes the master's report of the agents to the scheduler, with the containerizers of the agents if they are
    /// required.
    async fn refresh(&self, required: RequiredCapacity, handle: &Handle) -> Result<(), AgentsError> {
        let agents = self.cluster.agents(REQUEST_TIMEOUT).await?;
        if required.docker {
            self.ask_agents(&agents).await;
        }
        let known = base::lock(&self.docker).clone();
        let total = |agent: &Agent| {
            let mut total = AgentTotals::of(agent, self.role.as_ref())?;
            total.docker = known.get(&total.agent_id).copied();
            Some(total)
        };
        let totals = agents.iter().filter_map(total).collect();
        // A scheduler that has ended needs no report.
        let _ = handle.ask_unchanged(Request::Agents(totals)).await;
        Ok(())
    }

    /// Asks agents whose containerizers are not known, at most [`AGENTS_MAX`], for their flags.
    async fn ask_agents(&self, agents: &[Agent]) {
        let id = |agent: &Agent| agent.agent_info.id.as_ref().map(|id| id.value.to_string());
        let there: BTreeSet<String> = agents.iter().filter_map(id).collect();
        let mut questions = JoinSet::new();
        {
            let mut known = base::lock(&self.docker);
            known.retain(|id, _| there.contains(id));
            for agent in agents.iter().filter(|a| id(a).is_some_and(|id| !known.contains_key(&id))).take(AGENTS_MAX) {
                let (cluster, id, agent) = (self.cluster.clone(), id(agent).unwrap_or_default(), agent.clone());
                questions
                    .spawn(async move { (id, cluster.agent_flag(&agent, "containerizers", REQUEST_TIMEOUT).await) });
            }
        }
        while let Some(answer) = questions.join_next().await {
            if let Ok((id, Ok(Some(containerizers)))) = answer {
                let has_docker = containerizers.split(',').any(|name| name.trim() == "docker");
                base::lock(&self.docker).insert(id, has_docker);
            }
        }
    }

    /// Reports the agents before jobs are submitted: a gang that cannot form must not hold offers, and no task must be
    /// placed on an agent where it cannot run.
    pub(super) async fn before(&self, jobs: &[Job], handle: &Handle) {
        let required = RequiredCapacity::of(jobs);
        if required.any() {
            // Without an answer the scheduler uses only the offers, and the report follows later.
            let _ = self.refresh(required, handle).await;
        }
    }

    /// Reports the agents at intervals while this is required, until the scheduler ends.
    pub(super) async fn follow(&self, handle: Handle) {
        let mut every = tokio::time::interval(EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = String::new();
        loop {
            every.tick().await;
            let required = match handle.ask_unchanged(Request::RequiredCapacity).await {
                Ok(Reply::RequiredCapacity(required)) if required.any() => required,
                Err(Error::Ask(AskError::Gone)) => return,
                _ => continue,
            };
            let failure = self.refresh(required, &handle).await.err();
            let failure = failure.map(|error| base::error_chain(&error)).unwrap_or_default();
            if failure != last && !failure.is_empty() {
                tracing::warn!("{failure}; whether a job can run is derived from offers only");
            }
            last = failure;
        }
    }
}
