//! A decision as a sequence of choices: what can be chosen now, and what is left after a choice. It prefers nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::state::{JOB, JobState};
use crate::order::{Action, Observation, Plan, Ready};

/// Limit of the number of limits that are scored for a stage; if there are more, they are spaced evenly.
const LIMITS: u32 = 32;

/// The alternatives of a choice.
#[derive(Clone, Debug, PartialEq)]
pub struct Situation {
    /// Jobs with stages that are not done, in the order of their arrival.
    pub jobs: Vec<Arc<JobState>>,
    /// Index in `jobs` of the job that the free executors belong to.
    pub source: Option<u32>,
    /// Number of free executors: the number of tasks that fit, of the stage of which most fit.
    pub free: u32,
    /// Number of all executors.
    pub executors: u32,
    /// Stages that can get executors; at least one.
    pub candidates: Vec<Candidate>,
}

/// A stage that can get executors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Index of the stage's job in [`Situation::jobs`].
    pub job: u32,
    /// Index of the stage in [`JobState::stages`].
    pub node: u32,
    /// Number of executors that the stage can get, at least 1.
    pub most: u32,
}

/// The possible limits of executors for a candidate's job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    held: u32,
    most: u32,
}

/// A choice of a stage and a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Index of the stage in [`Situation::candidates`].
    pub candidate: usize,
    /// Index of the limit in the candidate's [`Limits`].
    pub limit: usize,
}

impl Limits {
    /// Returns the number of limits.
    pub fn count(self) -> usize {
        self.most.min(LIMITS) as usize
    }

    /// Returns the limit at this index.
    pub fn at(self, place: usize) -> u32 {
        let count = self.count() as u64;
        let more = ((place as u64 + 1) * u64::from(self.most)).div_ceil(count.max(1));
        self.held.saturating_add(more as u32)
    }

    /// Returns the index of the first limit that allows `limit` executors, or the last index.
    pub fn place(self, limit: u32) -> usize {
        let first = (0..self.count()).find(|place| self.at(*place) >= limit);
        first.unwrap_or(self.count().saturating_sub(1))
    }
}

impl Situation {
    /// Returns the features of a job.
    pub fn features(&self, job: u32) -> [f32; JOB] {
        self.jobs[job as usize].job(self.source == Some(job), self.free, self.executors)
    }

    /// Returns the limits of a candidate.
    pub fn limits(&self, candidate: usize) -> Limits {
        let Candidate { job, most, .. } = self.candidates[candidate];
        Limits { held: self.jobs[job as usize].held, most }
    }
}

/// States of jobs by their ids. An unchanged state keeps its address.
#[derive(Debug, Default)]
pub(super) struct States(BTreeMap<u64, Arc<JobState>>);

impl States {
    fn intern(&mut self, id: u64, state: JobState) -> Arc<JobState> {
        match self.0.get(&id) {
            Some(known) if **known == state => known.clone(),
            _ => {
                let state = Arc::new(state);
                self.0.insert(id, state.clone());
                state
            }
        }
    }

    /// Forgets jobs that are gone, if there are many of them.
    pub(super) fn keep(&mut self, observation: &Observation) {
        if self.0.len() > 2 * observation.jobs.len() + 64 {
            let ids: BTreeSet<u64> = observation.jobs.iter().map(|job| job.id).collect();
            self.0.retain(|id, _| ids.contains(id));
        }
    }
}

/// A decision in progress.
pub(super) struct Round<'a> {
    plan: Plan<'a>,
    /// Indices in the observation of jobs with stages that are not done.
    places: Vec<usize>,
    jobs: Vec<Arc<JobState>>,
    /// Stages that got no executor although there seemed to be a free one.
    refused: BTreeSet<(usize, u32)>,
}

impl<'a> Round<'a> {
    pub(super) fn new(observation: &'a Observation, states: &mut States) -> Round<'a> {
        let plan = Plan::new(observation);
        let open = |place: &usize| observation.jobs[*place].stages.iter().any(|stage| !stage.is_done());
        let places: Vec<usize> = (0..observation.jobs.len()).filter(open).collect();
        let mut round = Round { plan, places, jobs: Vec::new(), refused: BTreeSet::new() };
        round.jobs = (0..round.places.len()).map(|job| round.state(job, states)).collect();
        round
    }

    fn state(&self, job: usize, states: &mut States) -> Arc<JobState> {
        let place = self.places[job];
        let of = &self.plan.observation.jobs[place];
        let ready = |stage| self.plan.ready(place, stage);
        states.intern(of.id, JobState::of(of, self.plan.tasks(place), self.plan.held(place), ready))
    }

    /// Returns the present situation; `None` if no executor is left to assign.
    pub(super) fn situation(&self) -> Option<Situation> {
        if self.plan.is_exhausted() {
            return None;
        }
        let mut candidates = Vec::new();
        let mut free = 0;
        for (job, state) in self.jobs.iter().enumerate() {
            let place = self.places[job];
            for (node, stage) in state.stages.iter().enumerate() {
                // The last feature is whether the stage can get executors.
                let at = *stage as usize;
                if self.plan.ready(place, at) == Ready::No || self.refused.contains(&(job, *stage)) {
                    continue;
                }
                let room = self.plan.room(self.plan.observation.jobs[place].stages[at].demand);
                let most = room.min(self.plan.tasks(place)[at]);
                if most > 0 {
                    free = free.max(room);
                    candidates.push(Candidate { job: job as u32, node: node as u32, most });
                }
            }
        }
        let source = self.plan.source().and_then(|place| self.places.iter().position(|other| *other == place));
        let executors = self.plan.observation.executors;
        let source = source.map(|source| source as u32);
        (!candidates.is_empty()).then(|| Situation { jobs: self.jobs.clone(), source, free, executors, candidates })
    }

    /// Applies a choice.
    pub(super) fn give(&mut self, situation: &Situation, choice: Choice, states: &mut States) {
        let Candidate { job, node, .. } = situation.candidates[choice.candidate];
        let (job, stage) = (job as usize, situation.jobs[job as usize].stages[node as usize]);
        let place = self.places[job];
        let more = situation.limits(choice.candidate).at(choice.limit).saturating_sub(self.plan.held(place));
        if self.plan.give(place, stage as usize, more) == 0 {
            self.refused.insert((job, stage));
        }
        self.jobs[job] = self.state(job, states);
    }

    /// Returns the choice that an action corresponds to, if it is possible.
    pub(super) fn choice_of(&self, situation: &Situation, action: Action) -> Option<Choice> {
        let is = |candidate: &Candidate| {
            let job = candidate.job as usize;
            let id = self.plan.observation.jobs[self.places[job]].id;
            id == action.job && situation.jobs[job].stages[candidate.node as usize] == action.stage
        };
        let candidate = situation.candidates.iter().position(is)?;
        let limits = situation.limits(candidate);
        (action.limit > limits.held).then(|| Choice { candidate, limit: limits.place(action.limit) })
    }

    pub(super) fn into_actions(self) -> Vec<Action> {
        self.plan.into_actions()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_spaced_and_end_at_the_most() {
        let few = Limits { held: 3, most: 2 };
        assert_eq!((few.count(), few.at(0), few.at(1), few.place(4), few.place(99)), (2, 4, 5, 0, 1));
        let many = Limits { held: 0, most: 500 };
        assert_eq!((many.count(), many.at(0), many.at(31)), (32, 16, 500));
    }
}
