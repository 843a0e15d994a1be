//! Maintenance: agents that will be unavailable, and inverse offers to the frameworks that hold resources there
//! (docs/mesos/allocator.md).
//!
//! An inverse offer asks a framework to vacate an agent. Each framework has at most one outstanding for each agent; its
//! answer is kept for the operator, and the filter of the answer determines when it is asked again. Only agents on
//! which something has changed cause work. Machines, schedules and ids of offers are elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::{AgentId, FrameworkId, Time};

use crate::Filter;
use crate::allocator::Allocator;

/// When an agent will be away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unavailability {
    /// From when on.
    pub start: Time,
    /// For how long; none: for good.
    pub duration: Option<Duration>,
}

/// A framework's answer to an inverse offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InverseAnswer {
    /// It will be off the agent in time.
    Accept,
    /// It will not.
    Decline,
}

/// One inverse offer to be made. It is outstanding from now on.
#[derive(Clone, Debug, PartialEq)]
pub struct InverseOffering {
    /// The framework.
    pub framework: FrameworkId,
    /// What it is to leave. Inverse offers of maintenance name no resources: it is all that the framework has there.
    pub agent: AgentId,
    /// The interval of the maintenance.
    pub unavailability: Unavailability,
}

/// What a framework has answered to the last inverse offer that it answered.
#[derive(Clone, Debug, PartialEq)]
pub struct InverseAnswerView {
    /// The framework.
    pub framework: FrameworkId,
    /// The answer.
    pub answer: InverseAnswer,
    /// The time.
    pub at: Time,
}

/// An agent under maintenance. Frameworks are numbers here; a framework that goes is forgotten.
#[derive(Debug)]
struct Window {
    unavailability: Unavailability,
    outstanding: BTreeSet<u32>,
    answers: BTreeMap<u32, (InverseAnswer, Time)>,
    /// No inverse offer before that has passed.
    filters: BTreeMap<u32, Time>,
}

/// All agents under maintenance, by number.
#[derive(Debug, Default)]
pub(crate) struct Maintenance {
    windows: BTreeMap<u32, Window>,
    /// Agents to check next, and those that wait for the next interval run.
    due: BTreeSet<u32>,
    late: BTreeSet<u32>,
    /// When filters end: (time, agent, framework).
    endings: BTreeSet<(Time, u32, u32)>,
}

impl Maintenance {
    /// Something has changed on an agent: a framework may hold resources there, or the agent may be offered again.
    pub(crate) fn touch(&mut self, agent: u32) {
        if self.windows.contains_key(&agent) {
            self.due.insert(agent);
        }
    }

    /// What waits for an interval run has waited long enough.
    pub(crate) fn interval(&mut self) {
        self.due.append(&mut self.late);
    }

    /// When the first filter has ended.
    pub(crate) fn next(&self) -> Option<Time> {
        self.endings.first().map(|(until, _, _)| *until + Duration::from_nanos(1))
    }

    /// An agent is gone.
    pub(crate) fn forget_agent(&mut self, agent: u32) {
        self.windows.remove(&agent);
        self.due.remove(&agent);
        self.late.remove(&agent);
        self.endings.retain(|(_, at, _)| *at != agent);
    }

    /// A framework is gone.
    pub(crate) fn forget_framework(&mut self, framework: u32) {
        for window in self.windows.values_mut() {
            window.outstanding.remove(&framework);
            window.answers.remove(&framework);
            window.filters.remove(&framework);
        }
        self.endings.retain(|(_, _, who)| *who != framework);
    }

    /// A framework is not connected: its inverse offers and its filters are void.
    pub(crate) fn disconnect(&mut self, framework: u32) {
        for window in self.windows.values_mut() {
            window.outstanding.remove(&framework);
        }
        self.forget_filters(framework);
    }

    /// A framework is to be asked again everywhere, except where it is being asked.
    pub(crate) fn forget_filters(&mut self, framework: u32) {
        for (agent, window) in &mut self.windows {
            window.filters.remove(&framework);
            self.due.insert(*agent);
        }
        self.endings.retain(|(_, _, who)| *who != framework);
    }

    fn end_filters(&mut self, now: Time) {
        while let Some((until, agent, framework)) = self.endings.first().copied()
            && until < now
        {
            self.endings.pop_first();
            if let Some(window) = self.windows.get_mut(&agent) {
                window.filters.remove(&framework);
                self.due.insert(agent);
            }
        }
    }
}

impl Allocator {
    /// Sets when an agent will be away; none: it will not. Answers and filters of the former window are forgotten. The
    /// frameworks whose inverse offers were outstanding are returned: the caller rescinds them. What is offered on
    /// the agent stays; the caller takes it back before, since offers name the window.
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

    /// When an agent will be away, if it will.
    #[must_use]
    pub fn unavailability(&self, id: &AgentId) -> Option<Unavailability> {
        Some(self.maintenance.windows.get(&self.agent(id)?)?.unavailability)
    }

    /// The inverse offers to be made now: to every active framework to which something is offered, or that uses
    /// something, on an agent that will be away, unless it is being asked or has answered with a filter that has not
    /// ended.
    ///
    /// To be called after each [`Allocator::allocate`] and [`Allocator::allocate_all`]; [`Allocator::next_wake`] minds
    /// filters of inverse offers, too. Agents that may not be offered are left out until they may.
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

    /// An inverse offer is no longer outstanding: the framework has answered, or (without an answer) it was rescinded,
    /// timed out, or could not be sent. With a filter that is not zero the framework is not asked again for that time;
    /// else it is asked again at the next interval run. An answer to what is not outstanding is not kept.
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
                    self.maintenance.endings.remove(&(old, ix, who));
                }
                self.maintenance.endings.insert((until, ix, who));
            }
            None => {
                self.maintenance.late.insert(ix);
                self.await_interval(now);
            }
        }
    }

    /// What frameworks have answered to inverse offers of an agent, by framework.
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

    /// The frameworks that are being asked to leave an agent and have not answered.
    #[must_use]
    pub fn inverse_offers_out(&self, id: &AgentId) -> Vec<FrameworkId> {
        let window = self.agent(id).and_then(|ix| self.maintenance.windows.get(&ix));
        let asked = window.into_iter().flat_map(|w| &w.outstanding);
        let mut asked: Vec<_> = asked.map(|who| self.frameworks[*who as usize].id.clone()).collect();
        asked.sort();
        asked
    }
}
