//! Explains why tasks wait: which resource is missing where, which constraint excludes agents, or which time must pass.

use std::collections::{BTreeMap, BTreeSet};

use base::Time;
use serde::Serialize;

use super::Core;
use super::ability::Ability;
use super::capacity::FittingRanks;
use super::record::{Phase, Record};
use crate::Need;
use crate::constraint::{Checker, Constraint, Place};
use crate::job::Kind;
use crate::need::NAMES;
use jobs::offers::AgentIdentity;

/// Maximum number of values of an attribute that are listed.
const VALUES: usize = 5;

/// A constraint of a job that no known agent satisfies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unsatisfied {
    /// Text of the constraint.
    pub constraint: String,
    /// Values of the attribute on the known agents, at most a few.
    pub values: Vec<String>,
    /// Number of known agents.
    pub agents: usize,
}

/// The reason why none of the known agents can ever run a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Impossible {
    /// The reason in words.
    pub reason: String,
    /// Number of known agents.
    pub agents: usize,
}

/// Reason why a task cannot be placed on an agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Obstacle {
    Lacks(usize),
    Rule(String),
    Ability(Ability),
    Failing,
}

impl Core {
    /// Returns the reasons why tasks of a job wait; empty if none waits.
    pub(super) fn why(&self, record: &Record, now: Time) -> Vec<String> {
        let waiting = record.counts().waiting;
        if waiting == 0 {
            return Vec::new();
        }
        let mut why = Vec::new();
        let later: Vec<Time> = record.instances().values().filter_map(|i| later(&i.phase, now)).collect();
        if let Some(first) = later.iter().min() {
            let seconds = first.since(now).as_secs_f64();
            why.push(format!("{} of its tasks start again after a wait, the first in {seconds:.1} s", later.len()));
        }
        let ready = waiting as usize - later.len().min(waiting as usize);
        if ready == 0 {
            return why;
        }
        if !self.offer_state.subscribed {
            why.push("there is no connection to a master".to_owned());
        } else if self.known_agents.agents().next().is_none() {
            why.push("no offers have arrived yet".to_owned());
        }
        why.extend(self.gang_waits(record, now));
        why.extend(self.obstacles(record, now));
        if why.is_empty() {
            why.push("it waits for the next offers".to_owned());
        }
        why
    }

    fn gang_waits(&self, record: &Record, now: Time) -> Option<String> {
        if record.kind() != Kind::Gang {
            return None;
        }
        let (gang, size) = (&record.head.gang, record.job().count);
        if let Some(ranks) = too_few_ranks(record) {
            return Some(format!(
                "warning: the gang cannot form: all agents together have room for {ranks} of {size} ranks ({}), {} is \
                 missing; it holds no offers",
                record.sized_job().need.times(ranks),
                record.sized_job().need.times(size - ranks),
            ));
        }
        if let Some(until) = gang.gather_until {
            let seconds = until.since(now).as_secs_f64();
            return Some(format!(
                "the gang gathers: {} of {size} ranks have room on the offers held; they are declined in {seconds:.1} \
                 s",
                gang.found
            ));
        }
        if let Some(rest) = gang.rest_until.filter(|rest| *rest > now) {
            let seconds = rest.since(now).as_secs_f64();
            return Some(format!(
                "the gang could not form ({} of {size} ranks had room) and yields to other jobs for {seconds:.1} s",
                gang.found
            ));
        }
        let other = self.gathering.filter(|other| *other != record.head.serial);
        let other = other.and_then(|serial| self.records.get(&serial))?;
        Some(format!("another gang gathers offers: '{}'", other.name()))
    }

    /// Returns the reasons why a job's tasks cannot be placed on the agents that have made offers.
    fn obstacles(&self, record: &Record, now: Time) -> Vec<String> {
        let job = record.sized_job();
        let mut checker = Checker::new(&job.constraints);
        self.count_in(record.head.serial, &mut checker, now);
        let mut obstacles: BTreeMap<Obstacle, (usize, Need)> = BTreeMap::new();
        let (mut agents, mut possible, mut most) = (0, 0, Need::default());
        for agent in self.known_agents.agents() {
            agents += 1;
            most = most.upper(&agent.most);
            let lacks = self.lacks_ability(job, &agent.identity.agent_id);
            possible += usize::from(job.need.fits(&agent.most) && checker.broken_by_agent(agent).is_none() && !lacks);
            let rule = checker.broken_by(agent).map(|rule| Obstacle::Rule(rule.to_string()));
            let ability = Ability::of(job).filter(|_| lacks);
            let obstacle = ability
                .map(Obstacle::Ability)
                .or(self.agents.is_avoided(&agent.identity.agent_id).then_some(Obstacle::Failing))
                .or(rule)
                .or_else(|| job.need.lacks(&agent.left).map(Obstacle::Lacks));
            if let Some(obstacle) = obstacle {
                let (count, largest) = obstacles.entry(obstacle).or_default();
                *count += 1;
                *largest = largest.upper(&agent.left);
            }
        }
        let mut why: Vec<String> = Vec::new();
        if let Some(Unsatisfied { constraint, values, .. }) = self.unsatisfied(record) {
            let field = constraint.split(' ').next().unwrap_or_default();
            let values = match values.len() {
                0 => format!("none has the attribute '{field}'"),
                _ => format!("they have {}", values.join(", ")),
            };
            why.push(format!(
                "warning: no agent that was seen so far satisfies the constraint '{constraint}': {values}"
            ));
        } else if agents > 0 && possible == 0 {
            why.push(match job.need.lacks(&most) {
                Some(k) => format!(
                    "warning: a task needs {} {}, and no agent has offered more than {} so far",
                    NAMES[k],
                    job.need.amount(k),
                    most.amount(k)
                ),
                None => "warning: no agent that was seen so far could ever run a task of it".to_owned(),
            });
        }
        why.extend(obstacles.into_iter().map(|(obstacle, (count, largest))| {
            let on = if count == 1 { "1 agent".to_owned() } else { format!("{count} agents") };
            match obstacle {
                Obstacle::Lacks(k) => format!(
                    "{on}: offers of too little {} (a task needs {}, the most is {})",
                    NAMES[k],
                    job.need.amount(k),
                    largest.amount(k)
                ),
                Obstacle::Ability(ability) => {
                    let (name, flag) = ability.text();
                    format!("{on}: no {name}; start agents with {flag}")
                }
                Obstacle::Failing => {
                    format!("{on}: avoided for a while, because tasks failed there that succeed elsewhere")
                }
                Obstacle::Rule(rule) => format!("{on}: the constraint '{rule}' excludes it"),
            }
        }));
        why
    }
}

impl Core {
    /// Returns the first constraint of a job, among those on the agent alone, that no known agent satisfies.
    pub(super) fn unsatisfied(&self, record: &Record) -> Option<Unsatisfied> {
        let job = record.sized_job();
        let agents = self.known_agents.agents().count();
        let unsatisfied = |rule: &&Constraint| {
            let alone = Checker::new(std::slice::from_ref(*rule));
            agents > 0 && self.known_agents.agents().all(|agent| alone.broken_by_agent(agent).is_some())
        };
        let rule = job.constraints.iter().find(unsatisfied)?;
        let values: BTreeSet<&str> = self.known_agents.agents().filter_map(|agent| agent.value(&rule.field)).collect();
        let values = values.into_iter().take(VALUES).map(str::to_owned).collect();
        Some(Unsatisfied { constraint: rule.to_string(), values, agents })
    }

    /// Returns why none of the known agents can ever run a job: constraints exclude them, they lack an ability that it
    /// needs, or all of them together are too small for a gang. It does not compare a task with the size of agents,
    /// which the master knows: offers so far may have been smaller.
    pub(super) fn impossible(&self, record: &Record) -> Option<Impossible> {
        let job = record.sized_job();
        let known = self.agents_for(job);
        if known.is_empty() {
            return None;
        }
        let excludes_all = |rule: &&Constraint| {
            let alone = Checker::new(std::slice::from_ref(*rule));
            known.iter().all(|agent| alone.broken_by_agent(*agent).is_some())
        };
        let checker = Checker::new(&job.constraints);
        let lacks = |agent: &AgentIdentity| self.lacks_ability(job, &agent.agent_id);
        let lacking = known.iter().filter(|agent| lacks(agent)).count();
        let excluded = known.iter().filter(|agent| lacks(agent) || checker.broken_by_agent(**agent).is_some()).count();
        let (name, flag) = Ability::of(job).map(Ability::text).unwrap_or_default();
        let reason = if let Some(rule) = job.constraints.iter().find(excludes_all) {
            format!("no agent satisfies the constraint '{rule}'")
        } else if lacking == known.len() {
            format!("no agent has a {name}; start agents with {flag}")
        } else if excluded == known.len() {
            match lacking {
                0 => "no agent satisfies all of its constraints".to_owned(),
                _ => format!("no agent that satisfies its constraints has a {name}; start agents with {flag}"),
            }
        } else {
            let (ranks, size) = (too_few_ranks(record)?, record.job().count);
            format!("the gang cannot form: all agents together have room for {ranks} of {size} ranks")
        };
        Some(Impossible { reason, agents: known.len() })
    }
}

/// Returns how many ranks of a gang fit on all agents together, if they are known to be too few.
fn too_few_ranks(record: &Record) -> Option<u32> {
    match record.head.gang.possible {
        FittingRanks::Ranks(ranks) if record.kind() == Kind::Gang && ranks < record.job().count => Some(ranks),
        _ => None,
    }
}

/// Returns the time before which a waiting task may not be placed, if it is in the future.
fn later(phase: &Phase, now: Time) -> Option<Time> {
    match phase {
        Phase::Waiting { not_before, .. } if *not_before > now => Some(*not_before),
        _ => None,
    }
}
