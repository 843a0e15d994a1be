//! The decisions of a master in a batch, in a form that can be compared with those of another master: offers that it
//! makes and rescinds, and tasks that it sends to agents. Ids of offers are omitted, because each master assigns its
//! own.

use std::collections::BTreeMap;

use base::{AgentId, Time};
use master::{Outbox, Outgoing, Output};
use protos::mesos;
use rustc_hash::FxHashMap;
use serde::Serialize;

/// The kinds of decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecisionKind {
    /// Makes an offer.
    Offers,
    /// Rescinds an offer that was not answered.
    TakesBack,
    /// Sends a task to its agent.
    Launches,
}

/// A decision of a master, which is comparable with those of another master.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Decision {
    pub what: DecisionKind,
    /// Id of the framework.
    pub framework: String,
    /// Id of the agent.
    pub agent: String,
    pub role: String,
    /// Scalar resources, such as `cpus:4; mem:1024`.
    pub resources: String,
    /// Id of the task; empty for offers.
    pub task: String,
}

/// An offer that was made and not rescinded.
#[derive(Clone, Debug)]
struct OpenOffer {
    decision: Decision,
    since: Time,
}

/// Reads the decisions of one master from its outputs.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// Offers that were made and not rescinded, by id. Answered ones stay until there are too many.
    out: FxHashMap<String, OpenOffer>,
    /// Hosts of agents, by agent id.
    pub hosts: BTreeMap<String, String>,
}

/// The most offers that are stored. A master has fewer unanswered ones; only the time of further ones is unknown.
const OFFERS_MAX: usize = 1_000_000;

impl Reader {
    /// Returns the decisions of a batch, sorted; each rescinded offer with the time since it was made, in seconds.
    pub fn read(&mut self, outbox: &Outbox, now: Time) -> Vec<(Decision, Option<f64>)> {
        let mut all = Vec::new();
        for output in outbox.outputs.iter().chain(&outbox.at_once) {
            match output {
                Output::SchedulerEvent { event, .. } => {
                    let offers = event.offers.iter().flat_map(|offers| &offers.offers);
                    offers.for_each(|offer| all.push((self.offered(offer, now), None)));
                    all.extend(event.rescind.iter().filter_map(|one| self.rescinded(&one.offer_id.value, now)));
                }
                Output::Send { message, .. } => self.message(message, now, &mut all),
                _ => {}
            }
        }
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    fn message(&mut self, message: &Outgoing, now: Time, all: &mut Vec<(Decision, Option<f64>)>) {
        match message {
            Outgoing::ResourceOffers(sent) => {
                sent.offers.iter().for_each(|offer| all.push((self.offered(offer, now), None)));
            }
            Outgoing::RescindResourceOffer(sent) => all.extend(self.rescinded(&sent.offer_id.value, now)),
            Outgoing::RunTask(sent) => all.push((launched(&sent.framework, &sent.task), None)),
            Outgoing::RunTaskGroup(sent) => {
                all.extend(sent.task_group.tasks.iter().map(|task| (launched(&sent.framework, task), None)));
            }
            _ => {}
        }
    }

    fn offered(&mut self, offer: &mesos::Offer, now: Time) -> Decision {
        let decision = Decision {
            what: DecisionKind::Offers,
            framework: offer.framework_id.value.to_string(),
            agent: offer.slave_id.value.to_string(),
            role: offer.allocation_info.as_ref().and_then(|info| info.role.clone()).unwrap_or_default().to_string(),
            resources: amounts(&offer.resources),
            task: String::new(),
        };
        self.hosts.entry(decision.agent.clone()).or_insert_with(|| offer.hostname.to_string());
        if self.out.len() >= OFFERS_MAX {
            self.out.clear();
        }
        self.out.insert(offer.id.value.to_string(), OpenOffer { decision: decision.clone(), since: now });
        decision
    }

    fn rescinded(&mut self, id: &str, now: Time) -> Option<(Decision, Option<f64>)> {
        let OpenOffer { decision, since } = self.out.remove(id)?;
        Some((Decision { what: DecisionKind::TakesBack, ..decision }, Some(now.since(since).as_secs_f64())))
    }

    /// Returns an agent's host, or its id if that is unknown. If several agents have this host, the end of the id is
    /// added.
    pub fn host(&self, agent: &str) -> String {
        let Some(host) = self.hosts.get(agent).filter(|host| !host.is_empty()) else { return agent.to_owned() };
        match self.hosts.values().filter(|other| *other == host).nth(1) {
            Some(_) => format!("{host} ({})", agent.rsplit('-').next().unwrap_or(agent)),
            None => host.clone(),
        }
    }
}

fn launched(framework: &mesos::FrameworkInfo, task: &mesos::TaskInfo) -> Decision {
    Decision {
        what: DecisionKind::Launches,
        framework: framework.id.as_ref().map(|id| id.value.to_string()).unwrap_or_default(),
        agent: task.slave_id.value.to_string(),
        role: String::new(),
        resources: amounts(&task.resources),
        task: task.task_id.value.to_string(),
    }
}

/// Returns the scalars of resources as text; empty if they are invalid, which those that the master has accepted are
/// not.
fn amounts(resources: &[mesos::Resource]) -> String {
    resources::from_proto(resources).map(|resources| resources.quantities().to_string()).unwrap_or_default()
}

/// Returns the agent id of a decision.
pub(super) fn agent_of(decision: &Decision) -> Option<AgentId> {
    AgentId::new(decision.agent.as_str()).ok()
}

/// Decisions, each with a value.
type Decided<T> = Vec<(Decision, T)>;

/// Returns the decisions that are only in the first sorted list, and those that are only in the second.
pub(super) fn only<T>(one: Decided<T>, other: Decided<T>) -> (Decided<T>, Decided<T>) {
    let (mut a, mut b) = (one.into_iter().peekable(), other.into_iter().peekable());
    let (mut first, mut second) = (Vec::new(), Vec::new());
    loop {
        let order = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) => x.0.cmp(&y.0),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (None, None) => return (first, second),
        };
        match order {
            std::cmp::Ordering::Less => first.extend(a.next()),
            std::cmp::Ordering::Greater => second.extend(b.next()),
            std::cmp::Ordering::Equal => {
                a.next();
                b.next();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_decisions_are_left_out_once_each() {
        let decision = |agent: &str| {
            let (framework, agent, text) = ("f".to_owned(), agent.to_owned(), String::new);
            (
                Decision {
                    what: DecisionKind::Offers,
                    framework,
                    agent,
                    role: text(),
                    resources: text(),
                    task: text(),
                },
                (),
            )
        };
        let (first, second) =
            only(vec![decision("a"), decision("b"), decision("b")], vec![decision("b"), decision("c")]);
        assert_eq!((first, second), (vec![decision("a"), decision("b")], vec![decision("c")]));
    }
}
