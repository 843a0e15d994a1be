//! Reports the agents to the scheduler: their total resources while a gang waits, and the abilities that they lack
//! while a job with a container waits. Asks the leading master and the agents.
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
use crate::core::{Ability, AgentTotals, Reply, Request, RequiredCapacity};
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
    answers: Mutex<Answers>,
}

/// The agents' answers to questions for their abilities.
#[derive(Debug, Default)]
struct Answers {
    /// Whether the agent with this id has the ability, and the round in which it was asked.
    known: BTreeMap<(Ability, String), (bool, u64)>,
    /// Number of rounds of questions so far.
    round: u64,
}

impl Answers {
    /// Starts a round of questions. Returns the agents to ask with their ids, at most [`AGENTS_MAX`]: first those
    /// without an answer, then those that lacked the ability, since they may have been started with other flags.
    fn next_round<'a>(&mut self, agents: &'a [Agent], ability: Ability) -> Vec<(String, &'a Agent)> {
        self.round += 1;
        let there: BTreeSet<String> = agents.iter().filter_map(id).collect();
        self.known.retain(|(_, id), _| there.contains(id));
        let mut to_ask = Vec::new();
        for agent in agents {
            let Some(id) = id(agent) else { continue };
            match self.known.get(&(ability, id.clone())) {
                None => to_ask.push((0, id, agent)),
                Some((false, round)) => to_ask.push((*round, id, agent)),
                Some((true, _)) => {}
            }
        }
        to_ask.sort_by_key(|(round, ..)| *round);
        to_ask.into_iter().take(AGENTS_MAX).map(|(_, id, agent)| (id, agent)).collect()
    }

    /// Returns the abilities that an agent is known to lack.
    fn lacks(&self, agent_id: &str) -> BTreeSet<Ability> {
        let lacks = |ability: &Ability| matches!(self.known.get(&(*ability, agent_id.to_owned())), Some((false, _)));
        [Ability::Docker, Ability::Images].into_iter().filter(lacks).collect()
    }
}

/// Returns the id of an agent.
fn id(agent: &Agent) -> Option<String> {
    agent.agent_info.id.as_ref().map(|id| id.value.to_string())
}

impl Source {
    pub(super) fn new(options: &driver::Options) -> Source {
        let role = options.settings.framework.roles.first().and_then(|role| Role::parse(role).ok());
        Source { cluster: options.cluster(), role, answers: Mutex::default() }
    }

    /// Passes the master's report of the agents to the scheduler, with the abilities that agents lack if they are
    /// required.
    async fn refresh(&self, required: RequiredCapacity, handle: &Handle) -> Result<(), AgentsError> {
        let agents = self.cluster.agents(REQUEST_TIMEOUT).await?;
        for ability in required.abilities() {
            self.ask_agents(&agents, ability).await;
        }
        let total = |agent: &Agent| {
            let mut total = AgentTotals::of(agent, self.role.as_ref())?;
            total.lacks = base::lock(&self.answers).lacks(&total.agent_id);
            Some(total)
        };
        let totals = agents.iter().filter_map(total).collect();
        // A scheduler that has ended needs no report.
        let _ = handle.ask_unchanged(Request::Agents(totals)).await;
        Ok(())
    }

    /// Asks agents for an ability, by their flags.
    async fn ask_agents(&self, agents: &[Agent], ability: Ability) {
        let mut questions = JoinSet::new();
        let round = {
            let mut answers = base::lock(&self.answers);
            for (id, agent) in answers.next_round(agents, ability) {
                let (cluster, agent) = (self.cluster.clone(), agent.clone());
                questions.spawn(async move { (id, cluster.agent_flag(&agent, ability.flag(), REQUEST_TIMEOUT).await) });
            }
            answers.round
        };
        while let Some(answer) = questions.join_next().await {
            if let Ok((id, Ok(value))) = answer
                && let Some(has) = ability.is_given_by(value.as_deref())
            {
                base::lock(&self.answers).known.insert((ability, id), (has, round));
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
