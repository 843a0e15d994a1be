//! What an environment does. It is not an environment itself.

use crate::LearningError;
use crate::space::{Row, Spaces};

/// An action: as many numbers as [`Actions`](crate::space::Actions) says, within their bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action<'a> {
    /// Whole numbers.
    Choices(&'a [i32]),
    /// Numbers.
    Amounts(&'a [f32]),
}

impl Action<'_> {
    /// A whole number of the action; 0 if it has none there.
    pub fn choice(&self, at: usize) -> usize {
        match self {
            Action::Choices(all) => all.get(at).map_or(0, |one| usize::try_from(*one).unwrap_or(0)),
            Action::Amounts(_) => 0,
        }
    }

    /// A number of the action; 0 if it has none there.
    pub fn amount(&self, at: usize) -> f32 {
        match self {
            Action::Amounts(all) => all.get(at).copied().unwrap_or(0.0),
            Action::Choices(_) => 0.0,
        }
    }
}

/// What came of an action.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Step {
    /// What it was worth.
    pub reward: f64,
    /// The episode has ended.
    pub terminated: bool,
    /// The episode was cut off.
    pub truncated: bool,
}

/// An episode that a policy of the environment's own has decided.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rollout {
    /// The rewards of all steps, together.
    pub total: f64,
    /// What was measured, as in [`Environment::info`].
    pub info: Vec<f64>,
}

/// Episodes of decisions. The same seed and the same actions lead to the same episode.
pub trait Environment {
    /// The spaces of observations, actions and measurements.
    fn spaces(&self) -> &Spaces;

    /// Begins the episode of this seed.
    ///
    /// # Errors
    /// The episode cannot begin: a file that it needs has changed, for example.
    fn reset(&mut self, seed: u64) -> Result<(), LearningError>;

    /// Carries out an action and lets time pass until the next decision. Not before [`Environment::reset`], and not
    /// after the episode's end.
    ///
    /// # Errors
    /// The action cannot be carried out.
    fn step(&mut self, action: Action<'_>) -> Result<Step, LearningError>;

    /// Writes what the next decision is about into a row that is all 0.
    fn observe(&self, row: &mut Row<'_>);

    /// Measurements of the episode until now, one for each name in [`Spaces::info`].
    fn info(&self, values: &mut [f64]);

    /// The policies that [`Environment::baseline`] knows.
    fn policies(&self) -> &'static str;

    /// Lets a policy by name decide the whole episode of this seed. The environment needs a reset afterwards.
    ///
    /// # Errors
    /// An unknown policy, or as [`Environment::reset`].
    fn baseline(&mut self, policy: &str, seed: u64) -> Result<Rollout, LearningError>;
}

/// Lets `choose` decide the whole episode of a seed.
pub(crate) fn roll_out<E: Environment>(
    environment: &mut E,
    seed: u64,
    mut choose: impl FnMut(&mut E) -> Chosen,
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

/// An action that is kept.
pub(crate) enum Chosen {
    Choices(Vec<i32>),
    Amounts(Vec<f32>),
}

impl Chosen {
    pub fn action(&self) -> Action<'_> {
        match self {
            Chosen::Choices(all) => Action::Choices(all),
            Chosen::Amounts(all) => Action::Amounts(all),
        }
    }
}
