//! The policy that asks the network: one choice after the other until nothing is left to be given. It does not learn.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::network::{Embedded, Network};
use super::round::{Choice, Round, Situation, States};
use super::score::{evaluate, evaluate_limits, pick};
use super::state::JobState;
use crate::order::{Action, Observation, Policy};
use crate::study::random::Random;

/// Embeddings that are kept at most; all are forgotten then.
const EMBEDDED: usize = 4096;

/// Multiplications for a stage's embeddings, a job's part of the whole, a candidate's score, and the scores of limits.
const OF_NODE: usize = 1_300;
const OF_JOB: usize = 350;
const OF_CANDIDATE: usize = 1_800;
const OF_LIMITS: usize = 45_000;

/// How a choice is made.
#[derive(Clone, Debug)]
pub enum Mode {
    /// The likeliest.
    Greedy,
    /// By chance, as likely as the network says.
    Sample(Random),
}

/// A choice that was made, with all that the network saw.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// What could be chosen.
    pub situation: Situation,
    /// What was chosen.
    pub choice: Choice,
    /// The logarithm of the probability of that.
    pub log: f32,
}

/// The learned policy.
#[derive(Debug)]
pub struct Decima {
    network: Arc<Network>,
    mode: Mode,
    states: States,
    /// Embeddings by the address of the state, which each of them holds.
    embedded: BTreeMap<usize, Embedded>,
    /// What was chosen, if it is kept.
    chosen: Option<Vec<Chosen>>,
}

impl Decima {
    /// A policy with this network.
    pub fn new(network: Arc<Network>, mode: Mode) -> Decima {
        Decima { network, mode, states: States::default(), embedded: BTreeMap::new(), chosen: None }
    }

    /// The same, which keeps its choices for [`Decima::take_chosen`].
    pub fn that_keeps(network: Arc<Network>, mode: Mode) -> Decima {
        Decima { chosen: Some(Vec::new()), ..Decima::new(network, mode) }
    }

    /// The choices since the last time.
    pub fn take_chosen(&mut self) -> Vec<Chosen> {
        self.chosen.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Decides, unless `check` refuses a situation on the way. `check` gets the number of multiplications that the
    /// decision takes.
    ///
    /// # Errors
    /// What `check` has returned.
    pub fn decide_if<E>(
        &mut self,
        observation: &Observation,
        check: &mut dyn FnMut(&Situation, u64) -> Result<(), E>,
    ) -> Result<Vec<Action>, E> {
        self.states.keep(observation);
        let mut states = std::mem::take(&mut self.states);
        let mut round = Round::new(observation, &mut states);
        let mut refused = None;
        while let Some(situation) = round.situation() {
            if let Err(why) = check(&situation, self.cost(&situation)) {
                refused = Some(why);
                break;
            }
            let (choice, log) = self.choose(&situation);
            round.give(&situation, choice, &mut states);
            if let Some(kept) = &mut self.chosen {
                kept.push(Chosen { situation, choice, log });
            }
        }
        self.states = states;
        match refused {
            Some(why) => {
                self.take_chosen();
                Err(why)
            }
            None => Ok(round.into_actions()),
        }
    }

    /// What could be chosen first; none if nothing is free or runnable.
    pub fn situation(&mut self, observation: &Observation) -> Option<Situation> {
        Round::new(observation, &mut self.states).situation()
    }

    /// Multiplications that a choice takes, about.
    fn cost(&self, situation: &Situation) -> u64 {
        let is_new = |job: &&Arc<JobState>| !self.embedded.contains_key(&(Arc::as_ptr(job) as usize));
        let nodes: usize = situation.jobs.iter().filter(is_new).map(|job| job.len()).sum();
        (nodes * OF_NODE + situation.jobs.len() * OF_JOB + situation.candidates.len() * OF_CANDIDATE + OF_LIMITS) as u64
    }

    fn choose(&mut self, situation: &Situation) -> (Choice, f32) {
        if self.embedded.len() > EMBEDDED.max(4 * situation.jobs.len()) {
            self.embedded.clear();
        }
        let place = |job: &Arc<JobState>| Arc::as_ptr(job) as usize;
        for job in &situation.jobs {
            let embed = || self.network.embed(job);
            self.embedded.entry(place(job)).or_insert_with(embed);
        }
        let jobs: Vec<&Embedded> = situation.jobs.iter().map(|job| &self.embedded[&place(job)]).collect();
        let (whole, features, stages) = evaluate(&self.network, situation, &jobs);
        let mut random = match &mut self.mode {
            Mode::Greedy => None,
            Mode::Sample(random) => Some(random),
        };
        let candidate = pick(&stages.logs, random.as_deref_mut());
        let job = situation.candidates[candidate].job as usize;
        let limits = evaluate_limits(&self.network, situation, jobs[job], candidate, (&whole, &features[job]));
        let limit = pick(&limits.logs, random);
        (Choice { candidate, limit }, stages.logs[candidate] + limits.logs[limit])
    }
}

impl Policy for Decima {
    fn decide(&mut self, observation: &Observation) -> Vec<Action> {
        let never = &mut |_: &Situation, _| Ok::<(), std::convert::Infallible>(());
        self.decide_if(observation, never).unwrap_or_default()
    }

    fn name(&self) -> String {
        "decima".to_owned()
    }
}

/// The choices that the actions of another policy come to. Actions that cannot be chosen are left out.
#[derive(Debug, Default)]
pub struct Replay {
    states: States,
}

impl Replay {
    /// For a decision.
    pub fn choices(&mut self, observation: &Observation, actions: &[Action]) -> Vec<Chosen> {
        self.states.keep(observation);
        let mut round = Round::new(observation, &mut self.states);
        let mut chosen = Vec::new();
        for action in actions {
            let Some(situation) = round.situation() else { break };
            if let Some(choice) = round.choice_of(&situation, *action) {
                round.give(&situation, choice, &mut self.states);
                chosen.push(Chosen { situation, choice, log: 0.0 });
            }
        }
        chosen
    }
}
