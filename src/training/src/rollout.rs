//! Runs an episode and records the policy's choices with the instants at which they were made. It learns nothing.

use dag::learned::{Decima, FeatureRanges, RecordedChoice, Replay};
use dag::order::{Heuristic, History, Policy};
use dag::study::StudyError;
use dag::study::cluster::Episode;

use crate::episode::EpisodeSetup;
use crate::returns::{State, state};

/// The record of an episode.
#[derive(Clone, Debug, Default)]
pub struct Rollout {
    /// Choices in the order in which they were made.
    pub steps: Vec<Step>,
    /// Seconds, and job-seconds waited until then, at each decision and at the end.
    pub points: Vec<(f64, f64)>,
    /// State of the cluster at each point, for a better baseline.
    pub states: Vec<State>,
    /// Ranges of the features that occurred.
    pub seen: FeatureRanges,
}

/// One choice of the policy.
#[derive(Clone, Debug)]
pub struct Step {
    /// The choice with the situation in which it was made.
    pub chosen: RecordedChoice,
    /// Index of the choice's decision in [`Rollout::points`].
    pub point: usize,
}

impl Rollout {
    /// Returns the mean number of jobs in the cluster.
    pub fn mean_jobs(&self) -> f64 {
        self.points.last().map_or(0.0, |(end, waited)| waited / end.max(1e-9))
    }
}

/// Runs an episode under the policy, which must record its choices.
///
/// # Errors
/// The cluster refuses the lesson.
pub fn run(episode_setup: &EpisodeSetup, policy: &mut Decima, discount: f64) -> Result<Rollout, StudyError> {
    run_episode(episode_setup, discount, &mut |observation| {
        let actions = policy.decide(observation);
        (actions, policy.take_choices())
    })
}

/// Runs an episode under a heuristic and records its actions as choices.
///
/// # Errors
/// As [`run`].
pub fn run_teacher(episode_setup: &EpisodeSetup, mut teacher: Heuristic) -> Result<Rollout, StudyError> {
    let mut replay = Replay::default();
    run_episode(episode_setup, 0.0, &mut |observation| {
        let actions = teacher.decide(observation);
        let chosen = replay.choices(observation, &actions);
        (actions, chosen)
    })
}

type Decide<'a> = dyn FnMut(&dag::order::Observation) -> (Vec<dag::order::Action>, Vec<RecordedChoice>) + 'a;

fn run_episode(episode_setup: &EpisodeSetup, discount: f64, decide: &mut Decide<'_>) -> Result<Rollout, StudyError> {
    let mut episode =
        Episode::new(episode_setup.setup, episode_setup.arrivals.clone(), History::default(), episode_setup.seed)?;
    let mut rollout = Rollout::default();
    let seconds = |millis: u64| millis as f64 / 1000.0;
    loop {
        let observation = episode.observation();
        let here = (seconds(episode.now()), seconds(episode.waited()));
        let Some(observation) = observation.filter(|observation| observation.now < episode_setup.horizon) else {
            let end = seconds(episode_setup.horizon);
            // Between two decisions, waiting is taken to grow linearly, which is accurate enough.
            let last = rollout.points.last().copied().unwrap_or((0.0, 0.0));
            let part = if here.0 > end { (end - last.0) / (here.0 - last.0) } else { 1.0 };
            rollout.points.push((here.0.min(end), last.1 + (here.1 - last.1) * part));
            rollout.states.push(State::default());
            return Ok(rollout);
        };
        let (actions, chosen) = decide(&observation);
        let point = rollout.points.len();
        rollout.points.push(here);
        rollout.states.push(state(&observation, seconds(episode_setup.horizon) - here.0, discount));
        for chosen in chosen {
            rollout.seen.add(&chosen.situation);
            rollout.steps.push(Step { chosen, point });
        }
        episode.act(&observation, &actions);
    }
}
