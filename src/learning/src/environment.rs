//! The interface of environments.

use crate::LearningError;
use crate::space::{Row, Spaces};

/// An action: as many numbers as the environment's [`Actions`](crate::space::Actions) has, within their bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action<'a> {
    /// An action of whole numbers.
    Choices(&'a [i32]),
    /// An action of real numbers.
    Amounts(&'a [f32]),
}

impl Action<'_> {
    /// Returns a whole number of the action; 0 if it has none there.
    pub fn choice(&self, at: usize) -> usize {
        match self {
            Action::Choices(all) => all.get(at).map_or(0, |one| usize::try_from(*one).unwrap_or(0)),
            Action::Amounts(_) => 0,
        }
    }

    /// Returns a number of the action; 0 if it has none there.
    pub fn amount(&self, at: usize) -> f32 {
        match self {
            Action::Amounts(all) => all.get(at).copied().unwrap_or(0.0),
            Action::Choices(_) => 0.0,
        }
    }
}

/// Result of an action.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Step {
    /// Reward of the action.
    pub reward: f64,
    /// Whether the episode has ended.
    pub terminated: bool,
    /// Whether the episode was truncated.
    pub truncated: bool,
}

/// Result of an episode that was played by one of the environment's policies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rollout {
    /// Sum of the rewards of all steps.
    pub total: f64,
    /// Measurements, as in [`Environment::info`].
    pub info: Vec<f64>,
}

/// An environment: episodes of decisions. The same seed and the same actions lead to the same episode.
pub trait Environment {
    /// Returns the spaces of observations, actions and measurements.
    fn spaces(&self) -> &Spaces;

    /// Starts the episode of this seed.
    ///
    /// # Errors
    /// Returns an error if the episode cannot begin, for example because a file that it needs has changed.
    fn reset(&mut self, seed: u64) -> Result<(), LearningError>;

    /// Carries out an action and advances the time to the next decision. It must not be called before
    /// [`Environment::reset`], nor after the episode's end.
    ///
    /// # Errors
    /// Returns an error if the action cannot be carried out.
    fn step(&mut self, action: Action<'_>) -> Result<Step, LearningError>;

    /// Writes the observation for the next decision into a row that is all 0.
    fn observe(&self, row: &mut Row<'_>);

    /// Writes the measurements of the episode so far, one for each name in [`Spaces::info`].
    fn info(&self, values: &mut [f64]);

    /// Returns the names of the policies of [`Environment::baseline`].
    fn policies(&self) -> &'static str;

    /// Plays the whole episode of this seed with the policy of this name. The environment needs a reset afterwards.
    ///
    /// # Errors
    /// Returns an error for an unknown policy, and those of [`Environment::reset`].
    fn baseline(&mut self, policy: &str, seed: u64) -> Result<Rollout, LearningError>;
}

/// Plays the whole episode of a seed with the actions that `choose` returns.
pub(crate) fn roll_out<E: Environment>(
    environment: &mut E,
    seed: u64,
    mut choose: impl FnMut(&mut E) -> ChosenAction,
) -> Result<Rollout, LearningError> {
    environment.reset(seed)?;
    let mut total = 0.0;
    loop {
        let chosen = choose(environment);
        let step = environment.step(chosen.action())?;
        total += step.reward;
        if step.terminated || step.truncated {
            let mut info = vec![0.0; environment.spaces().info.len()];
            environment.info(&mut info);
            return Ok(Rollout { total, info });
        }
    }
}

/// An owned action.
pub(crate) enum ChosenAction {
    Choices(Vec<i32>),
    Amounts(Vec<f32>),
}

impl ChosenAction {
    pub fn action(&self) -> Action<'_> {
        match self {
            ChosenAction::Choices(all) => Action::Choices(all),
            ChosenAction::Amounts(all) => Action::Amounts(all),
        }
    }
}
