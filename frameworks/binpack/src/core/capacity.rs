//! Keeps the total resources of the cluster's agents, as the master reports them: a gang that does not fit on all of
//! them together holds no offers.
//!
//! `service::capacity` obtains the report; without one, the offers so far count.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::Time;
use resources::Role;
use sdk::task::from_v1;
use sdk::v1::master::response::get_agents::Agent;

use super::Core;
use super::ability::Ability;
use super::round::count_fitting_ranks;
use crate::Need;
use crate::job::{Job, Kind};
use jobs::offers::{AgentIdentity, attribute_text, usable_amounts};

/// An agent with all resources that it has for this framework's role, in use or not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentTotals {
    /// Id of the agent.
    pub agent_id: String,
    /// Host name of the agent.
    pub host: String,
    /// Attributes of the agent by name, with values in the form that constraints compare.
    pub attributes: BTreeMap<String, String>,
    /// Resources of the agent, without those that are reserved for other roles.
    pub all: Need,
    /// Abilities that the agent is known to lack.
    pub lacks: BTreeSet<Ability>,
}

impl AgentTotals {
    /// Converts the master's report of an agent for a framework of this role. Returns `None` if its resources are
    /// invalid.
    pub fn of(agent: &Agent, role: Option<&Role>) -> Option<AgentTotals> {
        let mut all = from_v1(&agent.total_resources).ok()?;
        if let Some(role) = role {
            all = all.allocatable_to(role);
        }
        let info = &agent.agent_info;
        Some(AgentTotals {
            agent_id: info.id.as_ref().map(|id| id.value.to_string()).unwrap_or_default(),
            host: info.hostname.clone(),
            attributes: info.attributes.iter().map(|a| (a.name.clone(), attribute_text(a))).collect(),
            all: usable_amounts(&all),
            lacks: BTreeSet::new(),
        })
    }
}

/// The last report of the agents.
#[derive(Clone, Debug, Default)]
pub(super) struct Capacity {
    /// Agents and their total resources; `None` before the first report.
    identities: Option<Vec<(Arc<AgentIdentity>, Need)>>,
    /// Abilities that agents lack, with the ids of the agents.
    lacking: BTreeMap<Ability, BTreeSet<String>>,
}

/// Parts of a report on the agents that waiting jobs require.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequiredCapacity {
    /// Whether the total resources are required, because a gang waits.
    pub totals: bool,
    /// Whether it is required which agents have the Docker containerizer, because a job for it waits.
    pub docker: bool,
    /// Whether it is required which agents provide images, because a job with an image for the Mesos containerizer
    /// waits.
    pub images: bool,
}

impl RequiredCapacity {
    /// Returns the parts of a report that these jobs require.
    pub fn of<'a>(jobs: impl IntoIterator<Item = &'a Job>) -> RequiredCapacity {
        jobs.into_iter().fold(RequiredCapacity::default(), |required, job| RequiredCapacity {
            totals: required.totals || job.kind == Kind::Gang,
            docker: required.docker || Ability::of(job) == Some(Ability::Docker),
            images: required.images || Ability::of(job) == Some(Ability::Images),
        })
    }

    /// Returns the abilities of agents that are required.
    pub fn abilities(self) -> impl Iterator<Item = Ability> {
        let required = [(self.docker, Ability::Docker), (self.images, Ability::Images)];
        required.into_iter().filter(|(is_required, _)| *is_required).map(|(_, ability)| ability)
    }

    /// Returns whether any part of a report is required.
    pub fn any(self) -> bool {
        self.totals || self.docker || self.images
    }
}

/// Number of ranks of a gang that fit on the total resources of the agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FittingRanks {
    /// The agents have not been reported.
    #[default]
    Unknown,
    /// Number of ranks by the master's report, counted up to the size of the gang.
    Ranks(u32),
}

impl Core {
    /// Applies a report of the agents: gangs that were too large may become possible, or the reverse.
    pub(super) fn set_capacity(&mut self, totals: Vec<AgentTotals>, now: Time) {
        let mut lacking: BTreeMap<Ability, BTreeSet<String>> = BTreeMap::new();
        for total in &totals {
            for ability in &total.lacks {
                lacking.entry(*ability).or_default().insert(total.agent_id.clone());
            }
        }
        if lacking != self.capacity.lacking {
            self.capacity.lacking = lacking;
            self.dirty = true;
        }
        let identity = |total: AgentTotals| {
            let AgentTotals { agent_id, host, attributes, all, lacks: _ } = total;
            (Arc::new(AgentIdentity::new(agent_id, host, attributes)), all)
        };
        self.capacity.identities = Some(totals.into_iter().map(identity).collect());
        let gangs: Vec<u64> = self.waiting_gangs().collect();
        for serial in gangs {
            self.update_fitting_ranks(serial, now);
        }
    }

    /// Returns the parts of a report that the waiting tasks require.
    pub(super) fn required_capacity(&self) -> RequiredCapacity {
        let waiting = self.records.values().filter(|record| !record.is_over() && record.counts().waiting > 0);
        RequiredCapacity::of(waiting.map(|record| &**record.job()))
    }

    /// Returns whether an agent is known to lack the ability that a job needs.
    pub(super) fn lacks_ability(&self, job: &Job, agent_id: &str) -> bool {
        self.lacking(job).is_some_and(|agents| agents.contains(agent_id))
    }

    /// Returns the agents that are known to lack the ability that a job needs; `None` if there are none.
    pub(super) fn lacking(&self, job: &Job) -> Option<&BTreeSet<String>> {
        Ability::of(job).and_then(|ability| self.capacity.lacking.get(&ability))
    }

    /// Returns the known agents: those of the last report if a waiting job like this requires reports, otherwise those
    /// that have made offers.
    pub(super) fn agents_for(&self, job: &Job) -> Vec<&AgentIdentity> {
        match &self.capacity.identities {
            Some(reported) if RequiredCapacity::of([job]).any() => reported.iter().map(|(agent, _)| &**agent).collect(),
            _ => self.known_agents.agents().map(|agent| &*agent.identity).collect(),
        }
    }

    fn waiting_gangs(&self) -> impl Iterator<Item = u64> {
        let gangs = self.records.iter().filter(|(_, record)| record.kind() == Kind::Gang && !record.is_over());
        gangs.filter(|(_, record)| record.counts().waiting > 0).map(|(serial, _)| *serial)
    }

    /// Counts how many ranks of a gang fit on the total resources of the agents, and ends its gathering of offers if
    /// they are too few.
    pub(super) fn update_fitting_ranks(&mut self, serial: u64, now: Time) {
        let Some(record) = self.records.get(&serial).filter(|record| record.kind() == Kind::Gang) else { return };
        let job = record.sized_job().clone();
        let possible = self.fitting_ranks(serial, &job, now);
        let Some(record) = self.records.get_mut(&serial) else { return };
        record.head.gang.possible = possible;
        if self.gathering == Some(serial) && possible.is_too_few(job.count) {
            record.head.gang.gather_until = None;
            self.gathering = None;
            // The offers that it kept are free for other jobs.
            self.dirty = true;
        }
    }

    fn fitting_ranks(&self, serial: u64, job: &Job, now: Time) -> FittingRanks {
        let Some(identities) = &self.capacity.identities else { return FittingRanks::Unknown };
        let (identities, all): (Vec<_>, Vec<Need>) = identities.iter().cloned().unzip();
        let check = self.check(serial, job, &identities, now);
        FittingRanks::Ranks(count_fitting_ranks(&identities, &all, job, &check, self.knobs.policy))
    }
}

impl FittingRanks {
    /// Returns whether a gang of this size cannot form even when all resources become free.
    pub(super) fn is_too_few(self, size: u32) -> bool {
        matches!(self, FittingRanks::Ranks(ranks) if ranks < size)
    }
}
