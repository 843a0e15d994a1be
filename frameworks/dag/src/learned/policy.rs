//! The policy of the network: it makes one choice after the other until no executor is left to assign. It does not
//! learn.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::network::{EmbeddedJob, Network};
use super::round::{Choice, Round, Situation, States};
use super::score::{evaluate, evaluate_limits, pick};
use super::state::JobState;
use crate::order::{Action, Observation, Policy};
use crate::study::random::Random;

/// Limit of the number of kept embeddings; when it is exceeded, all are forgotten.
const EMBEDDED: usize = 4096;

/// Numbers of multiplications for a stage's embeddings, a job's part of the whole, a candidate's score, and the scores
/// of limits.
const OF_NODE: usize = 1_300;
const OF_JOB: usize = 350;
const OF_CANDIDATE: usize = 1_800;
const OF_LIMITS: usize = 45_000;

/// How a choice is made from its probabilities.
#[derive(Clone, Debug)]
pub enum Mode {
    /// Takes the most probable choice.
    Greedy,
    /// Draws a choice with the network's probabilities.
    Sample(Random),
}

/// A choice with the situation in which it was made.
#[derive(Clone, Debug)]
pub struct RecordedChoice {
    /// Situation in which the choice was made.
    pub situation: Situation,
    /// Choice that was made.
    pub choice: Choice,
    /// Logarithm of the probability of the choice.
    pub log: f32,
}

/// The learned policy, Decima.
#[derive(Debug)]
pub struct Decima {
    network: Arc<Network>,
    mode: Mode,
    states: States,
    /// Embeddings by the address of the state, which each of them keeps alive.
    embedded: BTreeMap<usize, EmbeddedJob>,
    /// Choices since they were last taken; `None` if they are not recorded.
    chosen: Option<Vec<RecordedChoice>>,
}

impl Decima {
    /// Creates a policy with this network.
    pub fn new(network: Arc<Network>, mode: Mode) -> Decima {
        Decima { network, mode, states: States::default(), embedded: BTreeMap::new(), chosen: None }
    }

    /// Creates a policy that records its choices for [`Decima::take_choices`].
    pub fn recording(network: Arc<Network>, mode: Mode) -> Decima {
        Decima { chosen: Some(Vec::new()), ..Decima::new(network, mode) }
    }

    /// Takes the choices since the last call.
    pub fn take_choices(&mut self) -> Vec<RecordedChoice> {
        self.chosen.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Decides, unless `check` rejects a situation during the decision. `check` receives the number of multiplications
    /// that the next choice takes.
    ///
    /// # Errors
    /// The error of `check`.
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
                kept.push(RecordedChoice { situation, choice, log });
            }
        }
        self.states = states;
        match refused {
            Some(why) => {
                self.take_choices();
                Err(why)
            }
            None => Ok(round.into_actions()),
        }
    }

    /// Returns the first situation of a decision; `None` if nothing is free or runnable.
    pub fn situation(&mut self, observation: &Observation) -> Option<Situation> {
        Round::new(observation, &mut self.states).situation()
    }

    /// Returns about how many multiplications a choice takes.
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
        let jobs: Vec<&EmbeddedJob> = situation.jobs.iter().map(|job| &self.embedded[&place(job)]).collect();
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

/// Converts the actions of another policy to choices. Actions that cannot be chosen are omitted.
#[derive(Debug, Default)]
pub struct Replay {
    states: States,
}

impl Replay {
    /// Returns the choices that the actions of a decision correspond to.
    pub fn choices(&mut self, observation: &Observation, actions: &[Action]) -> Vec<RecordedChoice> {
        self.states.keep(observation);
        let mut round = Round::new(observation, &mut self.states);
        let mut chosen = Vec::new();
        for action in actions {
            let Some(situation) = round.situation() else { break };
            if let Some(choice) = round.choice_of(&situation, *action) {
                round.give(&situation, choice, &mut self.states);
                chosen.push(RecordedChoice { situation, choice, log: 0.0 });
            }
        }
        chosen
    }
}
