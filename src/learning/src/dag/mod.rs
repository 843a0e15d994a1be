//! The environment for jobs of stages on a cluster: chooses the stage that gets free executors, and how many its job
//! may have. The cluster is that of `dag`'s `study::cluster`. The decisions are Decima's (SIGCOMM 2019): a stage and a
//! limit of parallelism, repeated until no executor of the question is free.

mod features;
mod pending;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use ::dag::order::{Heuristic, History, Policy};
use ::dag::study::cluster::{Episode, Setup};
use ::dag::study::job::{Arrival, JobModel};
use ::dag::study::orders::arrivals;
use ::dag::study::tpch::{Queries, SIX, SIZES};
use ::dag::study::{StudyError, generated};
use serde::Deserialize;

use crate::environment::{ChosenAction, roll_out};
use crate::error::rules;
use crate::files::Files;
use crate::random::Random;
use crate::space::{Actions, Row, Spaces};
use crate::{Action, Environment, LearningError, Rollout, Step};
use features::Layout;
use pending::PendingDecision;

/// Reward of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reward {
    /// −Δt · jobs in the cluster, divided by all jobs: the return is minus the mean completion time in seconds.
    Completion,
    /// −Δt: the return is minus the makespan in seconds.
    Makespan,
}

/// Settings of the environment; the default is a batch of 20 queries on 50 executors, as in Decima's paper.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Number of jobs of an episode.
    pub jobs: usize,
    /// Number of executors.
    pub executors: u32,
    /// Mean time between two arrivals, in seconds; `None` if all jobs arrive at the beginning.
    pub gap: Option<f64>,
    /// Sizes of the queries' inputs, of 2g, 5g, 10g, 20g, 50g, 80g and 100g; empty for the paper's six.
    pub sizes: Vec<String>,
    /// Directory of the public TPC-H traces; `None` for generated queries.
    pub tpch: Option<String>,
    /// Seed of generated queries, which are the same in all episodes.
    pub queries: u64,
    /// Time that an executor needs to move to another job, in seconds.
    pub moving_delay: f64,
    /// Reward of a step.
    pub reward: Reward,
    /// Time in seconds after which an episode is truncated; `None` for never.
    pub horizon: Option<f64>,
    /// Number of jobs in an observation, the first ones in the cluster; `None` for all jobs, up to 50. Executors that
    /// these leave go to the other jobs in the order of their arrival.
    pub visible: Option<usize>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            jobs: 20,
            executors: 50,
            gap: None,
            sizes: Vec::new(),
            tpch: None,
            queries: 1,
            moving_delay: 2.0,
            reward: Reward::Completion,
            horizon: None,
            visible: None,
        }
    }
}

/// Maximum number of visible jobs if the settings do not say it.
const VISIBLE: usize = 50;

/// Names of the policies of [`Environment::baseline`].
const POLICIES: &str = "random, fifo, fair, 'weighted ALPHA' with -5 to 5, sjf-cp, remaining, tetris or graphene";

/// State shared by all environments of a batch.
#[derive(Clone)]
pub struct Shared {
    known: Arc<[Arc<JobModel>]>,
    settings: Settings,
    setup: Setup,
    layout: Layout,
}

impl Shared {
    /// Reads or generates the queries.
    ///
    /// # Errors
    /// Returns the first invalid setting, or a file of the traces that is invalid.
    pub fn new(settings: Settings, files: &dyn Files) -> Result<Shared, LearningError> {
        let seconds = |value: Option<f64>| value.is_none_or(|value| (1e-3..=1e7).contains(&value));
        rules([
            ("jobs", (1..=10_000).contains(&settings.jobs), "must be 1 to 10,000"),
            ("executors", (1..=10_000).contains(&settings.executors), "must be 1 to 10,000"),
            ("gap", seconds(settings.gap), "must be 0.001 to 10^7 seconds"),
            ("horizon", seconds(settings.horizon), "must be 0.001 to 10^7 seconds"),
            ("moving_delay", (0.0..=3600.0).contains(&settings.moving_delay), "must be 0 to 3600 seconds"),
            ("visible", settings.visible.is_none_or(|jobs| (1..=200).contains(&jobs)), "must be 1 to 200"),
            ("sizes", settings.sizes.iter().all(|size| SIZES.contains(&size.as_str())), "must be of 2g to 100g"),
        ])?;
        let queries = match &settings.tpch {
            None => generated::queries(settings.queries),
            Some(directory) => {
                let unusable = |why: StudyError| LearningError::File { name: directory.clone(), why: why.into() };
                Queries::read(&|name| files.read(&format!("{directory}/{name}"))).map_err(unusable)?
            }
        };
        let sizes: Vec<&str> = settings.sizes.iter().map(String::as_str).collect();
        let known = queries.of_sizes(if sizes.is_empty() { &SIX } else { &sizes });
        let setup = Setup {
            executors: settings.executors,
            moving_delay: (settings.moving_delay * 1000.0) as u64,
            ..Setup::default()
        };
        let visible = settings.visible.unwrap_or(settings.jobs.min(VISIBLE)).min(settings.jobs);
        let layout = Layout::new(&known, visible)?;
        Ok(Shared { known: known.into(), settings, setup, layout })
    }
}

/// The environment for jobs of stages.
pub struct DagScheduling {
    shared: Shared,
    spaces: Spaces,
    episode: Option<Episode>,
    pending: Option<PendingDecision>,
    /// Job-milliseconds, or milliseconds, that are already in rewards.
    paid: u64,
    decisions: u64,
    /// Number of actions that were corrected.
    corrected: u64,
}

impl DagScheduling {
    /// Creates an environment.
    pub fn new(shared: Shared) -> DagScheduling {
        let spaces = Spaces {
            observation: shared.layout.fields(),
            action: Actions::Choices(vec![shared.layout.nodes as u32, shared.settings.executors]),
            info: vec!["mean_completion", "makespan", "decisions", "corrected", "jobs_left"],
            reward: (f64::NEG_INFINITY, 0.0),
        };
        DagScheduling { shared, spaces, episode: None, pending: None, paid: 0, decisions: 0, corrected: 0 }
    }

    fn begin(&self, seed: u64) -> Result<Episode, LearningError> {
        let Settings { jobs, gap, .. } = self.shared.settings;
        let jobs: Vec<Arrival> = arrivals(&self.shared.known, jobs, gap.map(|gap| gap * 1000.0), seed);
        let refused = |why: StudyError| LearningError::setting("jobs", why.to_string());
        Episode::new(self.shared.setup, jobs, History::default(), seed).map_err(refused)
    }

    /// Advances the time until there is a choice.
    fn ask(&mut self) {
        let Some(episode) = &mut self.episode else { return };
        self.pending = None;
        while let Some(observation) = episode.observation() {
            let pending = PendingDecision::new(observation, &self.shared.layout);
            if pending.has_choice() {
                self.pending = Some(pending);
                return;
            }
            // Without a choice there is no decision for the learner.
            episode.act(pending.observation(), &pending.with_rest());
        }
    }

    /// Returns the total since the start of the episode, in the unit of the reward.
    fn due(&self, episode: &Episode) -> u64 {
        match self.shared.settings.reward {
            Reward::Completion => episode.waited(),
            Reward::Makespan => episode.now(),
        }
    }

    /// Returns the reward for this many milliseconds of the measure that the settings choose.
    fn reward(&self, milliseconds: u64) -> f64 {
        let parts = if self.shared.settings.reward == Reward::Completion { self.shared.settings.jobs } else { 1 };
        -(milliseconds as f64) / 1000.0 / parts as f64
    }

    /// Draws a random stage with a random limit.
    fn draw(&self, random: &mut Random) -> ChosenAction {
        let Some(pending) = &self.pending else { return ChosenAction::Choices(vec![0, 0]) };
        let (node, least) = pending.draw(random);
        let most = self.shared.settings.executors;
        let limit = least + random.below((most + 1).saturating_sub(least) as usize) as u32;
        ChosenAction::Choices(vec![node as i32, limit.clamp(1, most) as i32 - 1])
    }
}

impl Environment for DagScheduling {
    fn spaces(&self) -> &Spaces {
        &self.spaces
    }

    fn reset(&mut self, seed: u64) -> Result<(), LearningError> {
        self.episode = Some(self.begin(seed)?);
        (self.paid, self.decisions, self.corrected) = (0, 0, 0);
        self.ask();
        Ok(())
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, LearningError> {
        let (Some(episode), Some(pending)) = (&mut self.episode, &mut self.pending) else {
            return Err(LearningError::NoEpisode(0));
        };
        self.decisions += 1;
        self.corrected += u64::from(!pending.choose(action.choice(0), action.choice(1) as u32 + 1));
        if !pending.has_choice() {
            episode.act(pending.observation(), &pending.with_rest());
            self.ask();
        }
        let Some(episode) = &self.episode else { return Err(LearningError::NoEpisode(0)) };
        let due = self.due(episode);
        let reward = self.reward(due - self.paid);
        let late = self.shared.settings.horizon.is_some_and(|horizon| episode.now() as f64 >= horizon * 1000.0);
        let terminated = self.pending.is_none();
        self.paid = due;
        Ok(Step { reward, terminated, truncated: late && !terminated })
    }

    fn observe(&self, row: &mut Row<'_>) {
        match (&self.pending, &self.episode) {
            (Some(pending), _) => self.shared.layout.write(pending, row),
            // At the end there is no choice.
            (None, Some(episode)) => {
                self.shared.layout.write_end(self.shared.setup.executors, episode.active(), episode.now(), row);
            }
            (None, None) => {}
        }
    }

    fn info(&self, values: &mut [f64]) {
        let Some(episode) = &self.episode else { return };
        let mean = episode.waited() as f64 / 1000.0 / self.shared.settings.jobs as f64;
        let left = episode.active() as f64;
        let counts = [self.decisions as f64, self.corrected as f64, left];
        values.copy_from_slice(&[mean, episode.now() as f64 / 1000.0, counts[0], counts[1], counts[2]]);
    }

    fn policies(&self) -> &'static str {
        POLICIES
    }

    fn baseline(&mut self, policy: &str, seed: u64) -> Result<Rollout, LearningError> {
        if policy == "random" {
            let mut random = Random::new(seed, "policy");
            return roll_out(self, seed, |env| env.draw(&mut random));
        }
        let unknown = |_| LearningError::Policy { policy: policy.to_owned(), known: POLICIES };
        let mut heuristic: Heuristic = policy.parse().map_err(unknown)?;
        let mut episode = self.begin(seed)?;
        (self.decisions, self.corrected, self.pending) = (0, 0, None);
        let late = |episode: &Episode| {
            self.shared.settings.horizon.is_some_and(|horizon| episode.now() as f64 >= horizon * 1000.0)
        };
        while let Some(observation) = episode.observation().filter(|_| !late(&episode)) {
            let actions = heuristic.decide(&observation);
            self.decisions += 1;
            episode.act(&observation, &actions);
        }
        let total = self.reward(self.due(&episode));
        self.episode = Some(episode);
        let mut info = vec![0.0; self.spaces.info.len()];
        self.info(&mut info);
        Ok(Rollout { total, info })
    }
}
