//! Explains why two masters with different policies lead to different outcomes: where their decisions differ, what each
//! offered to which framework and why the other did not, and which tasks only the recorded one launched.
//!
//! The reasons are the allocator's own explanations, by the master that did not make the decision, after that batch.

use std::collections::{BTreeMap, BTreeSet};

use allocator::policies::Policies;
use base::{AgentId, Time};
use master::{Master, Outbox, Output};
use protos::mesos::scheduler::Call;
use resources::Quantities;
use serde::Serialize;

use super::decisions::{Decision, DecisionKind, Reader, agent_of, only};

/// The most decisions and the most tasks that are listed; all are counted.
const KEPT: usize = 200;

/// The two masters of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// The recorded master.
    Recorded,
    /// The master with other policies.
    Other,
}

/// A decision that only one of the masters made in a batch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DifferingDecision {
    /// Number of the batch, from 0.
    pub batch: u64,
    /// Time of the batch, in seconds from the start.
    pub seconds: f64,
    /// The master that made the decision.
    pub by: By,
    /// Kind of the decision.
    pub what: DecisionKind,
    /// Name of the framework.
    pub framework: String,
    /// Role of an offer; empty for tasks.
    pub role: String,
    /// Host of the agent.
    pub agent: String,
    /// Scalar resources, such as `cpus:4; mem:1024`.
    pub resources: String,
    /// Id of the launched task; empty for offers.
    pub task: String,
    /// Why the other master did not make the decision; empty if unknown.
    pub why: String,
}

/// Counts for the recorded master, and for the other one.
pub type Counts = (u64, u64);

/// Decisions about a framework that only one of the masters made.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OneSided {
    /// Number of offers that only one of them made in a batch.
    pub offers: Counts,
    /// Number of offers that only one of them rescinded in a batch.
    pub taken_back: Counts,
    /// Number of all tasks that each of them launched.
    pub launched: Counts,
    /// Number of tasks that the recorded master launched and the other one never did.
    pub missing: u64,
}

/// The differences that explain the outcomes of two masters.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Differences {
    /// Settings of the policies that differ: name, recorded value, other value.
    pub policies: Vec<(String, String, String)>,
    /// First batch with different decisions, with its time in seconds; `None` if there is none.
    #[serde(rename = "parted")]
    pub first_difference: Option<(u64, f64)>,
    /// Number of batches with different decisions.
    pub batches: u64,
    /// Decisions that differ, in the order of time; only the first ones if there are many.
    pub decisions: Vec<DifferingDecision>,
    /// Tasks that only the recorded master launched, with the reason why the other did not; only the first ones if
    /// there are many.
    pub tasks: Vec<DifferingDecision>,
    /// Differences by framework.
    pub frameworks: BTreeMap<String, OneSided>,
}

/// Collects the differences, batch by batch.
#[derive(Debug, Default)]
pub(super) struct Finder {
    found: Differences,
    first: Reader,
    second: Reader,
    /// Framework and task of launches that only one master has made so far: the recorded one, the other.
    pending: [BTreeSet<(String, String)>; 2],
    /// Why calls with these tasks were not passed to the other master.
    refused: BTreeMap<(String, String), String>,
    /// Messages of the other master's status updates in this batch, by task.
    messages: BTreeMap<String, String>,
}

/// The most tasks that are stored until the other master launches them, too.
const TASKS: usize = 500_000;

impl Finder {
    pub fn new(recorded: &Policies, other: &Policies) -> Finder {
        let found = Differences { policies: settings(recorded, other), ..Differences::default() };
        Finder { found, ..Finder::default() }
    }

    /// Records that a call is not passed to the other master, which has no such offer, with the reason of its
    /// allocator.
    pub fn dropped(&mut self, call: &Call, offer: (&str, &AgentId, &str), second: &Master) {
        let Some(accept) = &call.accept else { return };
        let groups = accept.operations.iter().flat_map(|operation| {
            let single = operation.launch.iter().flat_map(|launch| &launch.task_infos);
            single.chain(operation.launch_group.iter().flat_map(|launch| &launch.task_group.tasks))
        });
        let tasks: Vec<String> = groups.map(|task| task.task_id.value.to_string()).collect();
        if tasks.is_empty() || self.refused.len() >= KEPT {
            return;
        }
        let (framework, agent, role) = offer;
        let why = why(second, framework, role, agent);
        self.refused.extend(tasks.into_iter().map(|task| ((framework.to_owned(), task), why.clone())));
    }

    /// Compares the outcomes of a batch in both masters.
    pub fn batch(&mut self, (batch, at, seconds): (u64, Time, f64), masters: [(&Master, &Outbox); 2]) {
        let [(first, out), (second, other)] = masters;
        let (own, others) = (self.first.read(out, at), self.second.read(other, at));
        for (decisions, is_recorded) in [(&own, true), (&others, false)] {
            for (decision, _) in decisions.iter().filter(|(decision, _)| decision.what == DecisionKind::Launches) {
                let counts = &mut self.found.frameworks.entry(decision.framework.clone()).or_default().launched;
                *(if is_recorded { &mut counts.0 } else { &mut counts.1 }) += 1;
            }
        }
        let (own, others) = only(own, others);
        if own.is_empty() && others.is_empty() {
            return;
        }
        self.found.batches += 1;
        self.found.first_difference.get_or_insert((batch, seconds));
        let launches = own.iter().any(|(decision, _)| decision.what == DecisionKind::Launches);
        self.messages = if launches { messages(other) } else { BTreeMap::new() };
        let sides = [(By::Recorded, own, second), (By::Other, others, first)];
        for (by, decisions, absent) in sides {
            for (decision, out_for) in decisions {
                self.count(by, &decision);
                self.keep((batch, seconds), by, &decision, out_for, absent);
            }
        }
    }

    /// Adds a decision that only one master made to the list, with the reason, unless the list is full.
    fn keep(&mut self, at: (u64, f64), by: By, decision: &Decision, out_for: Option<f64>, absent: &Master) {
        let is_missing = by == By::Recorded && decision.what == DecisionKind::Launches;
        let full = if is_missing { self.found.tasks.len() } else { self.found.decisions.len() } >= KEPT;
        if full {
            return;
        }
        let why = match (decision.what, out_for) {
            (DecisionKind::Offers, _) => {
                let reason = |agent| why(absent, &decision.framework, &decision.role, &agent);
                agent_of(decision).map(reason).unwrap_or_default()
            }
            (DecisionKind::TakesBack, Some(seconds)) => format!("the offer was not answered for {seconds:.1} s"),
            (DecisionKind::TakesBack, None) => String::new(),
            (DecisionKind::Launches, _) => {
                let known = self.refused.get(&task_of(decision)).or_else(|| self.messages.get(&decision.task));
                known.cloned().unwrap_or_default()
            }
        };
        let differing = DifferingDecision { why, ..self.difference(at, by, decision) };
        if is_missing { self.found.tasks.push(differing) } else { self.found.decisions.push(differing) }
    }

    fn count(&mut self, by: By, decision: &Decision) {
        let only = self.found.frameworks.entry(decision.framework.clone()).or_default();
        let counts = match decision.what {
            DecisionKind::Offers => &mut only.offers,
            DecisionKind::TakesBack => &mut only.taken_back,
            DecisionKind::Launches => {
                let (own, other) = if by == By::Recorded { (0, 1) } else { (1, 0) };
                if !self.pending[other].remove(&task_of(decision)) && self.pending[own].len() < TASKS {
                    self.pending[own].insert(task_of(decision));
                }
                return;
            }
        };
        *(if by == By::Recorded { &mut counts.0 } else { &mut counts.1 }) += 1;
    }

    fn difference(&self, (batch, seconds): (u64, f64), by: By, decision: &Decision) -> DifferingDecision {
        let Decision { what, framework, agent, role, resources, task } = decision.clone();
        let hosts = if by == By::Recorded { &self.first } else { &self.second };
        let agent = hosts.host(&agent);
        DifferingDecision { batch, seconds, by, what, framework, role, agent, resources, task, why: String::new() }
    }

    /// Returns the result, with these names of frameworks.
    pub fn end(mut self, names: &BTreeMap<String, String>) -> Differences {
        for (framework, _) in &self.pending[0] {
            self.found.frameworks.entry(framework.clone()).or_default().missing += 1;
        }
        let Differences { decisions, tasks, frameworks, .. } = &mut self.found;
        // A task that the other master launched later is not missing.
        tasks.retain(|one| self.pending[0].contains(&(one.framework.clone(), one.task.clone())));
        let name = |id: &String| names.get(id).unwrap_or(id).clone();
        decisions.iter_mut().chain(tasks).for_each(|one| one.framework = name(&one.framework));
        *frameworks = std::mem::take(frameworks).into_iter().map(|(id, only)| (name(&id), only)).collect();
        self.found
    }
}

/// Returns the messages of a master's status updates in a batch, by task.
fn messages(outbox: &Outbox) -> BTreeMap<String, String> {
    let events = outbox.outputs.iter().chain(&outbox.at_once).filter_map(|output| match output {
        Output::SchedulerEvent { event, .. } => event.update.as_ref(),
        _ => None,
    });
    let message = |update: &protos::mesos::scheduler::event::Update| {
        let status = &update.status;
        Some((status.task_id.value.to_string(), status.message.as_ref()?.to_string()))
    };
    events.filter_map(message).collect()
}

/// Returns framework and task of a decision.
fn task_of(decision: &Decision) -> (String, String) {
    (decision.framework.clone(), decision.task.clone())
}

/// Returns why a master does not offer an agent to a framework in a role, according to its allocator; empty if it has
/// no explanation. Offers to frameworks of a single role do not name it.
fn why(master: &Master, framework: &str, role: &str, agent: &AgentId) -> String {
    let role = Some(role).filter(|role| !role.is_empty());
    let explanations = master.explain(framework, role, &Quantities::default()).unwrap_or_default();
    explanations.iter().find_map(|explanation| explanation.about(agent)).unwrap_or_default()
}

/// Returns the settings of policies that differ, by their paths such as `refusal.max`.
fn settings(recorded: &Policies, other: &Policies) -> Vec<(String, String, String)> {
    let leaves = |policies: &Policies| {
        let mut all = BTreeMap::new();
        flatten("", &serde_json::to_value(policies).unwrap_or_default(), &mut all);
        all
    };
    let (recorded, other) = (leaves(recorded), leaves(other));
    let paths: BTreeSet<&String> = recorded.keys().chain(other.keys()).collect();
    let value = |all: &BTreeMap<String, String>, path| all.get(path).cloned().unwrap_or_else(|| "not set".to_owned());
    let differing = paths.into_iter().filter(|path| recorded.get(*path) != other.get(*path));
    differing.map(|path| (path.clone(), value(&recorded, path), value(&other, path))).collect()
}

fn flatten(path: &str, value: &serde_json::Value, all: &mut BTreeMap<String, String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                flatten(&if path.is_empty() { name.clone() } else { format!("{path}.{name}") }, value, all);
            }
        }
        serde_json::Value::Null => {}
        serde_json::Value::String(text) => drop(all.insert(path.to_owned(), text.clone())),
        other => drop(all.insert(path.to_owned(), other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_differ_are_named_by_their_paths() {
        let mut other = Policies { max_offered_share: Some(0.3), ..Policies::default() };
        other.refusal.max = Some(std::time::Duration::from_secs(5));
        let rows: Vec<_> = settings(&Policies::default(), &other);
        let row = |path: &str, value: &str| (path.to_owned(), "not set".to_owned(), value.to_owned());
        assert_eq!(rows, [row("max_offered_share", "0.3"), row("refusal.max", "5secs")]);
        assert!(settings(&other, &other).is_empty());
    }
}
