//! Maintenance: agents that will be unavailable, and inverse offers to the frameworks that hold resources there
//! (docs/mesos/allocator.md).
//!
//! An inverse offer asks a framework to vacate an agent. Each framework has at most one outstanding for each agent; its
//! answer is kept for the operator, and the filter of the answer determines when it is asked again. Only agents with
//! changes cause work. Machines, schedules and ids of offers are elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::{AgentId, FrameworkId, Time};

use crate::Filter;
use crate::allocator::Allocator;

/// Time span in which an agent is unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unavailability {
    /// Start of the maintenance.
    pub start: Time,
    /// Duration of the maintenance; `None` for unlimited.
    pub duration: Option<Duration>,
}

/// Answer of a framework to an inverse offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InverseAnswer {
    /// The framework will have vacated the agent in time.
    Accept,
    /// The framework will not vacate the agent.
    Decline,
}

/// One inverse offer to be sent. It is outstanding from now on.
#[derive(Clone, Debug, PartialEq)]
pub struct InverseOffering {
    /// Framework that receives the inverse offer.
    pub framework: FrameworkId,
    /// Agent to vacate. Inverse offers of maintenance name no resources: all that the framework has there is meant.
    pub agent: AgentId,
    /// Maintenance window of the agent.
    pub unavailability: Unavailability,
}

/// Answer of a framework to the last inverse offer that it has answered.
#[derive(Clone, Debug, PartialEq)]
pub struct InverseAnswerView {
    /// Framework that has answered.
    pub framework: FrameworkId,
    /// Answer of the framework.
    pub answer: InverseAnswer,
    /// Time of the answer.
    pub at: Time,
}

/// Maintenance of an agent. Frameworks are indices here; the entries of a removed framework are removed.
#[derive(Debug)]
struct Window {
    unavailability: Unavailability,
    outstanding: BTreeSet<u32>,
    answers: BTreeMap<u32, (InverseAnswer, Time)>,
    /// Times before which frameworks are sent no further inverse offer.
    filters: BTreeMap<u32, Time>,
}

/// Agents under maintenance, by index.
#[derive(Debug, Default)]
pub(crate) struct Maintenance {
    windows: BTreeMap<u32, Window>,
    /// Agents to check next (`due`), and those that wait for the next interval run (`late`).
    due: BTreeSet<u32>,
    late: BTreeSet<u32>,
    /// Ends of filters: (time, agent, framework).
    filter_ends: BTreeSet<(Time, u32, u32)>,
}

impl Maintenance {
    /// Queues an agent for a check: a framework may hold resources there, or the agent may be offered again.
    pub(crate) fn touch(&mut self, agent: u32) {
        if self.windows.contains_key(&agent) {
            self.due.insert(agent);
        }
    }

    /// Queues the agents that waited for an interval run.
    pub(crate) fn interval(&mut self) {
        self.due.append(&mut self.late);
    }

    /// Returns the time at which the first filter has expired.
    pub(crate) fn next(&self) -> Option<Time> {
        self.filter_ends.first().map(|(until, _, _)| *until + Duration::from_nanos(1))
    }

    /// Removes all data of an agent.
    pub(crate) fn forget_agent(&mut self, agent: u32) {
        self.windows.remove(&agent);
        self.due.remove(&agent);
        self.late.remove(&agent);
        self.filter_ends.retain(|(_, at, _)| *at != agent);
    }

    /// Removes all data of a framework.
    pub(crate) fn forget_framework(&mut self, framework: u32) {
        for window in self.windows.values_mut() {
            window.outstanding.remove(&framework);
            window.answers.remove(&framework);
            window.filters.remove(&framework);
        }
        self.filter_ends.retain(|(_, _, who)| *who != framework);
    }

    /// Removes the outstanding inverse offers and the filters of a framework that is not connected.
    pub(crate) fn disconnect(&mut self, framework: u32) {
        for window in self.windows.values_mut() {
            window.outstanding.remove(&framework);
        }
        self.forget_filters(framework);
    }

    /// Removes the filters of a framework. It is asked again about every agent without an outstanding inverse offer.
    pub(crate) fn forget_filters(&mut self, framework: u32) {
        for (agent, window) in &mut self.windows {
            window.filters.remove(&framework);
            self.due.insert(*agent);
        }
        self.filter_ends.retain(|(_, _, who)| *who != framework);
    }

    fn end_filters(&mut self, now: Time) {
        while let Some((until, agent, framework)) = self.filter_ends.first().copied()
            && until < now
        {
            self.filter_ends.pop_first();
            if let Some(window) = self.windows.get_mut(&agent) {
                window.filters.remove(&framework);
                self.due.insert(agent);
            }
        }
    }
}

impl Allocator {
    /// Sets the maintenance window of an agent, or removes it. Answers and filters of the former window are removed.
    /// Returns the frameworks with outstanding inverse offers, which the caller rescinds. Offers of the agent remain
    /// allocated; the caller rescinds them before, since offers contain the window.
    pub fn set_unavailability(&mut self, id: &AgentId, unavailability: Option<Unavailability>) -> Vec<FrameworkId> {
        let Some(ix) = self.agent(id) else { return Vec::new() };
        let asked = self.inverse_offers_out(id);
        self.maintenance.forget_agent(ix);
        if let Some(unavailability) = unavailability {
            let window = Window {
                unavailability,
                outstanding: BTreeSet::new(),
                answers: BTreeMap::new(),
                filters: BTreeMap::new(),
            };
            self.maintenance.windows.insert(ix, window);
            self.maintenance.due.insert(ix);
        }
        asked
    }

    /// Returns the maintenance window of an agent.
    #[must_use]
    pub fn unavailability(&self, id: &AgentId) -> Option<Unavailability> {
        Some(self.maintenance.windows.get(&self.agent(id)?)?.unavailability)
    }

    /// Returns the inverse offers to send now: to every active framework that is offered or uses resources on an agent
    /// with a maintenance window, unless it has an outstanding inverse offer or an unexpired filter.
    ///
    /// Call it after each [`Allocator::allocate`] and [`Allocator::allocate_all`]; [`Allocator::next_wake`] includes
    /// the filters of inverse offers. Inactive agents are left out until they are active.
    #[must_use]
    pub fn inverse_offers(&mut self, now: Time) -> Vec<InverseOffering> {
        self.maintenance.end_filters(now);
        let mut made = Vec::new();
        for ix in std::mem::take(&mut self.maintenance.due) {
            let agent = &self.agents[ix as usize];
            let Some(window) = self.maintenance.windows.get_mut(&ix).filter(|_| agent.active) else { continue };
            let holders: BTreeSet<u32> = agent.holdings().map(|(c, _)| self.clients.get(c).framework).collect();
            for framework in holders {
                let state = &self.frameworks[framework as usize];
                if state.active && !window.filters.contains_key(&framework) && window.outstanding.insert(framework) {
                    made.push(InverseOffering {
                        framework: state.id.clone(),
                        agent: agent.id.clone(),
                        unavailability: window.unavailability,
                    });
                }
            }
        }
        made
    }

    /// Records that an inverse offer is no longer outstanding: the framework has answered, or (without an answer) it
    /// was rescinded, timed out, or could not be sent. With a filter that is not zero the framework is not asked again
    /// for that time; otherwise it is asked again at the next interval run. An answer to an inverse offer that is not
    /// outstanding is not kept.
    pub fn answer_inverse_offer(
        &mut self,
        framework: &FrameworkId,
        agent: &AgentId,
        answer: Option<InverseAnswer>,
        filter: Option<Filter>,
        now: Time,
    ) {
        let (Some(who), Some(ix)) = (self.framework(framework), self.agent(agent)) else { return };
        let Some(window) = self.maintenance.windows.get_mut(&ix) else { return };
        if window.outstanding.remove(&who)
            && let Some(answer) = answer
        {
            window.answers.insert(who, (answer, now));
        }
        match filter.filter(|filter| !filter.refuse.is_zero()) {
            Some(filter) => {
                let until = now + filter.refuse;
                if let Some(old) = window.filters.insert(who, until) {
                    self.maintenance.filter_ends.remove(&(old, ix, who));
                }
                self.maintenance.filter_ends.insert((until, ix, who));
            }
            None => {
                self.maintenance.late.insert(ix);
                self.await_interval(now);
            }
        }
    }

    /// Returns the answers of frameworks to inverse offers of an agent, by framework.
    #[must_use]
    pub fn inverse_answers(&self, id: &AgentId) -> Vec<InverseAnswerView> {
        let window = self.agent(id).and_then(|ix| self.maintenance.windows.get(&ix));
        let view = |(framework, (answer, at)): (&u32, &(InverseAnswer, Time))| InverseAnswerView {
            framework: self.frameworks[*framework as usize].id.clone(),
            answer: *answer,
            at: *at,
        };
        let mut views: Vec<_> = window.into_iter().flat_map(|w| &w.answers).map(view).collect();
        views.sort_by(|a, b| a.framework.cmp(&b.framework));
        views
    }

    /// Returns the frameworks that have not answered an outstanding inverse offer of an agent.
    #[must_use]
    pub fn inverse_offers_out(&self, id: &AgentId) -> Vec<FrameworkId> {
        let window = self.agent(id).and_then(|ix| self.maintenance.windows.get(&ix));
        let asked = window.into_iter().flat_map(|w| &w.outstanding);
        let mut asked: Vec<_> = asked.map(|who| self.frameworks[*who as usize].id.clone()).collect();
        asked.sort();
        asked
    }
}
