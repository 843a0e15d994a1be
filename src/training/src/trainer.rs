//! The training loop: iterations of rollouts and gradients on several threads, which can be saved and resumed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dag::learned::{Decima, FeatureRanges, Gradient, Mode, Model, ModelError, Network, WEIGHTS};
use dag::order::Heuristic;
use dag::study::StudyError;
use dag::study::random::Random;
use serde::{Deserialize, Serialize};

use crate::adam::Adam;
use crate::episode::{EpisodeSetup, Pool};
use crate::learn::{Goal, Sums, learn};
use crate::returns::{State, advantages};
use crate::rollout::{Rollout, run, run_teacher};
use crate::settings::{Settings, between};

/// Number of consecutive choices that share the embeddings of their jobs.
const CHUNK: usize = 64;
/// Number of parts into which an iteration's choices are divided; each part makes one step of the optimizer.
const PARTS: usize = 4;
/// Number of gradients that are summed in a fixed order. It determines rounding, so it does not depend on the number of
/// threads.
const GROUPS: usize = 8;
/// Weight of an iteration in the average network.
const AVERAGE_WEIGHT: f32 = 0.03;
/// Weight of an iteration in the usual number of jobs.
const MEAN_JOBS_WEIGHT: f64 = 0.02;

/// An error that stops a training.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// An episode that cannot be run.
    #[error("an episode cannot be run")]
    Study(#[from] StudyError),
    /// A checkpoint that cannot be used.
    #[error("the checkpoint cannot be used")]
    Model(#[from] ModelError),
    /// An entry that a checkpoint lacks, or that no training has written.
    #[error("the checkpoint has no valid '{0}'")]
    Missing(&'static str),
    /// A setting that breaks a rule, and the rule.
    #[error("invalid {0}: {1}")]
    Setting(&'static str, &'static str),
}

/// Result of one iteration: a line of the log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Iteration {
    /// Number of the iteration, from 0.
    pub iteration: u64,
    /// What the iteration learned from: `imitation` or `rewards`.
    pub kind: String,
    /// Number of choices of all rollouts.
    pub choices: usize,
    /// Length of the first episode, in seconds.
    pub episode: f64,
    /// Number of executors of the first episode.
    pub executors: u32,
    /// Mean number of jobs in the cluster.
    pub jobs: f64,
    /// Mean entropy of a choice.
    pub entropy: f64,
    /// Mean negative logarithm of the probability of the choices.
    pub surprise: f64,
    /// Fraction of choices that PPO clipped in a pass.
    pub clipped: f64,
    /// Norm of the last gradient before clipping.
    pub norm: f32,
}

/// A training: settings, networks and the state of the optimizer.
#[derive(Clone, Debug)]
pub struct Trainer {
    settings: Settings,
    network: Arc<Network>,
    /// Moving average of the network over the last iterations, which is the model. Single iterations fluctuate.
    average: Arc<Network>,
    adam: Adam,
    iteration: u64,
    /// Mean number of jobs in streams over earlier iterations.
    mean_jobs: f64,
    seen: FeatureRanges,
}

/// Consecutive choices of one rollout.
struct Chunk {
    rollout: usize,
    from: usize,
    to: usize,
}

impl Trainer {
    /// Starts a training with random weights.
    ///
    /// # Errors
    /// A setting is invalid.
    pub fn new(settings: Settings) -> Result<Trainer, TrainError> {
        check(&settings)?;
        let network = Arc::new(Network::new(settings.seed));
        Ok(Trainer {
            average: network.clone(),
            network,
            adam: Adam::new(WEIGHTS),
            iteration: 0,
            mean_jobs: 0.0,
            seen: FeatureRanges::default(),
            settings,
        })
    }

    /// Returns the number of the next iteration.
    pub fn iteration(&self) -> u64 {
        self.iteration
    }

    /// Returns the settings of the training.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the present model: the average of the networks of the last iterations.
    pub fn network(&self) -> Arc<Network> {
        self.average.clone()
    }

    /// Changes the settings of the following iterations.
    ///
    /// # Errors
    /// A setting is invalid.
    pub fn set(&mut self, settings: Settings) -> Result<(), TrainError> {
        check(&settings)?;
        self.settings = settings;
        Ok(())
    }

    /// Returns the trained model with a description.
    pub fn model(&self, about: String) -> Model {
        Model { network: (*self.average).clone(), seen: self.seen.clone(), about }
    }

    /// Returns a checkpoint with all that [`Trainer::resume`] needs.
    ///
    /// # Errors
    /// The library cannot write it.
    pub fn checkpoint(&self, about: String) -> Result<Vec<u8>, TrainError> {
        let words = [
            ("settings", serde_json::to_string(&self.settings).unwrap_or_default()),
            ("iteration", self.iteration.to_string()),
            ("steps", self.adam.steps.to_string()),
            ("usual", self.mean_jobs.to_string()),
        ];
        let more = [
            ("adam.means", self.adam.means.as_slice()),
            ("adam.squares", self.adam.squares.as_slice()),
            ("weights", self.network.weights.as_slice()),
        ];
        Ok(self.model(about).write_with(&more, &words)?)
    }

    /// Resumes a training from a checkpoint.
    ///
    /// # Errors
    /// The bytes are no checkpoint, or one of another network.
    pub fn resume(bytes: &[u8]) -> Result<Trainer, TrainError> {
        let (model, mut more, words) = Model::read_with(bytes, &["adam.means", "adam.squares", "weights"])?;
        let word = |name: &'static str| words.get(name).ok_or(TrainError::Missing(name));
        let number = |name: &'static str| word(name)?.parse::<u64>().map_err(|_| TrainError::Missing(name));
        let settings = serde_json::from_str(word("settings")?).map_err(|_| TrainError::Missing("settings"))?;
        check(&settings)?;
        let weights = more.pop().ok_or(TrainError::Missing("weights"))?;
        let squares = more.pop().ok_or(TrainError::Missing("adam.squares"))?;
        let means = more.pop().ok_or(TrainError::Missing("adam.means"))?;
        Ok(Trainer {
            settings,
            network: Arc::new(Network { weights }),
            average: Arc::new(model.network),
            adam: Adam { means, squares, steps: number("steps")? },
            iteration: number("iteration")?,
            mean_jobs: word("usual")?.parse().map_err(|_| TrainError::Missing("usual"))?,
            seen: model.seen,
        })
    }

    /// Runs one iteration on this many threads.
    ///
    /// # Errors
    /// An episode cannot be run.
    pub fn iterate(&mut self, pool: &Pool, threads: usize) -> Result<Iteration, TrainError> {
        let mut log = if self.iteration < self.settings.imitation {
            self.imitate(pool, threads)?
        } else {
            self.reinforce(pool, threads)?
        };
        log.iteration = self.iteration;
        self.update_average();
        self.iteration += 1;
        Ok(log)
    }

    /// Adds the network to the average. Networks of the imitation are not part of it: until its end the average is a
    /// copy of the network.
    fn update_average(&mut self) {
        if self.iteration < self.settings.imitation {
            self.average = self.network.clone();
            return;
        }
        let average = &mut Arc::make_mut(&mut self.average).weights;
        for (mean, weight) in average.iter_mut().zip(&self.network.weights) {
            *mean += AVERAGE_WEIGHT * (weight - *mean);
        }
    }

    /// Learns the choices of the teacher, on different jobs in each rollout.
    fn imitate(&mut self, pool: &Pool, threads: usize) -> Result<Iteration, TrainError> {
        let teacher: Heuristic =
            self.settings.teacher.parse().map_err(|_| TrainError::Setting("teacher", "must be an order"))?;
        let count = self.settings.rollouts as u64;
        // These lessons have a number that no iteration of rewards uses, and so the last episode length.
        let lessons: Vec<EpisodeSetup> =
            (0..count).map(|n| pool.draw_episode(&self.settings, (1 << 40) + self.iteration, n)).collect();
        let rollouts = gather(parallel(lessons.len(), threads, |n| run_teacher(&lessons[n], teacher)))?;
        self.record_ranges(&rollouts);
        let (sums, norm) = self.pass(&rollouts, &|_, _| Goal::Imitate, self.settings.steps.0, threads);
        Ok(log_of("imitation", &lessons[0], &rollouts, &sums, norm))
    }

    /// Learns from the rewards of the policy's own rollouts.
    fn reinforce(&mut self, pool: &Pool, threads: usize) -> Result<Iteration, TrainError> {
        let learned = self.iteration - self.settings.imitation;
        let (draws, each) = (self.settings.draws, self.settings.rollouts);
        let lessons: Vec<EpisodeSetup> =
            (0..draws as u64).map(|draw| pool.draw_episode(&self.settings, learned, draw)).collect();
        let rollouts = gather(parallel(draws * each, threads, |n| {
            let random = Random::new(self.settings.seed.wrapping_add(self.iteration << 16), &format!("rollout {n}"));
            // Rollouts of a lesson have the same arrivals and different durations.
            let episode_setup = &lessons[n / each];
            let episode_setup = EpisodeSetup { seed: episode_setup.seed + n as u64, ..episode_setup.clone() };
            let mut policy = Decima::recording(self.network.clone(), Mode::Sample(random));
            run(&episode_setup, &mut policy, self.settings.discount)
        }))?;
        self.record_ranges(&rollouts);
        let mut advantages = Vec::new();
        for (episode_setup, own) in lessons.iter().zip(rollouts.chunks(each)) {
            advantages.extend(self.advantages_of(episode_setup, own));
        }
        let ends = (f64::from(self.settings.entropy.0), f64::from(self.settings.entropy.1));
        let entropy = between(ends, learned, self.settings.entropy_until) as f32;
        let (mut sums, mut norm) = (Sums::default(), 0.0);
        for _ in 0..self.settings.passes {
            let clip = self.settings.clip;
            let goal =
                |rollout: usize, step: usize| Goal::Reward { advantage: advantages[rollout][step], clip, entropy };
            let (pass, last) = self.pass(&rollouts, &goal, self.settings.steps.1, threads);
            sums.add(&pass);
            norm = last;
        }
        Ok(log_of("rewards", &lessons[0], &rollouts, &sums, norm))
    }

    /// Returns the scaled advantages of the choices of all rollouts of one lesson.
    fn advantages_of(&mut self, episode_setup: &EpisodeSetup, rollouts: &[Rollout]) -> Vec<Vec<f32>> {
        let points: Vec<&[(f64, f64)]> = rollouts.iter().map(|rollout| rollout.points.as_slice()).collect();
        let states: Vec<&[State]> = rollouts.iter().map(|rollout| rollout.states.as_slice()).collect();
        let mean_jobs = if episode_setup.is_batch { 0.0 } else { self.mean_jobs };
        let advantages = advantages(&points, &states, mean_jobs, self.settings.discount);
        if !episode_setup.is_batch {
            let jobs = rollouts.iter().map(Rollout::mean_jobs).sum::<f64>() / rollouts.len().max(1) as f64;
            self.mean_jobs += (jobs - self.mean_jobs) * if self.mean_jobs == 0.0 { 1.0 } else { MEAN_JOBS_WEIGHT };
        }
        scaled(rollouts, &advantages)
    }

    fn record_ranges(&mut self, rollouts: &[Rollout]) {
        rollouts.iter().for_each(|rollout| self.seen.merge(&rollout.seen));
    }

    /// Learns from all choices once, in [`PARTS`] steps. Returns their sums and the last norm of the gradient.
    fn pass(
        &mut self,
        rollouts: &[Rollout],
        goal: &(dyn Fn(usize, usize) -> Goal + Sync),
        step: f32,
        threads: usize,
    ) -> (Sums, f32) {
        let mut chunks: Vec<Chunk> = Vec::new();
        for (rollout, all) in rollouts.iter().enumerate() {
            let count = all.steps.len();
            chunks.extend((0..count).step_by(CHUNK).map(|from| Chunk { rollout, from, to: (from + CHUNK).min(count) }));
        }
        let mut random = Random::new(self.settings.seed.wrapping_add(self.adam.steps << 24), "order");
        for at in (1..chunks.len()).rev() {
            chunks.swap(at, random.below(at + 1));
        }
        let (mut sums, mut norm) = (Sums::default(), 0.0);
        for part in chunks.chunks(chunks.len().div_ceil(PARTS).max(1)) {
            let count: usize = part.iter().map(|chunk| chunk.to - chunk.from).sum();
            let network = self.network.clone();
            let group = part.len().div_ceil(GROUPS).max(1);
            let groups: Vec<&[Chunk]> = part.chunks(group).collect();
            let gradients = parallel(groups.len(), threads, |n| {
                let (mut gradient, mut sums) = (Gradient::new(&network), Sums::default());
                for chunk in groups[n] {
                    let steps = &rollouts[chunk.rollout].steps[chunk.from..chunk.to];
                    let goal = |at: usize| goal(chunk.rollout, chunk.from + at);
                    sums.add(&learn(&network, steps, &goal, 1.0 / count as f32, &mut gradient));
                }
                (gradient, sums)
            });
            let mut all = vec![0.0; WEIGHTS];
            for (gradient, part) in gradients {
                all.iter_mut().zip(&gradient.weights).for_each(|(sum, slope)| *sum += slope);
                sums.add(&part);
            }
            let weights = &mut Arc::make_mut(&mut self.network).weights;
            norm = self.adam.step(weights, &all, step, self.settings.norm);
        }
        (sums, norm)
    }
}

fn check(settings: &Settings) -> Result<(), TrainError> {
    settings.broken_rule().map_or(Ok(()), |(setting, rule)| Err(TrainError::Setting(setting, rule)))
}

/// Returns the advantages of all choices, scaled to deviation 1 over all of them.
fn scaled(rollouts: &[Rollout], advantages: &[Vec<f64>]) -> Vec<Vec<f32>> {
    let of = |(rollout, advantages): (&Rollout, &Vec<f64>)| -> Vec<f64> {
        rollout.steps.iter().map(|step| advantages[step.point]).collect()
    };
    let all: Vec<Vec<f64>> = rollouts.iter().zip(advantages).map(of).collect();
    let count = all.iter().map(Vec::len).sum::<usize>().max(1) as f64;
    let square = all.iter().flatten().map(|advantages| advantages * advantages).sum::<f64>() / count;
    let deviation = square.sqrt().max(1e-6);
    all.into_iter()
        .map(|of| of.into_iter().map(|advantages| (advantages / deviation).clamp(-5.0, 5.0) as f32).collect())
        .collect()
}

fn log_of(kind: &str, episode_setup: &EpisodeSetup, rollouts: &[Rollout], sums: &Sums, norm: f32) -> Iteration {
    let count = sums.count.max(1.0);
    Iteration {
        iteration: 0,
        kind: kind.to_owned(),
        choices: rollouts.iter().map(|rollout| rollout.steps.len()).sum(),
        episode: episode_setup.horizon as f64 / 1000.0,
        executors: episode_setup.setup.executors,
        jobs: rollouts.iter().map(Rollout::mean_jobs).sum::<f64>() / rollouts.len().max(1) as f64,
        entropy: sums.entropy / count,
        surprise: sums.surprise / count,
        clipped: sums.clipped / count,
        norm,
    }
}

fn gather(rollouts: Vec<Result<Rollout, StudyError>>) -> Result<Vec<Rollout>, TrainError> {
    Ok(rollouts.into_iter().collect::<Result<_, _>>()?)
}

/// Calls `work` with all numbers below `count` on several threads. The results are in the order of the numbers.
pub fn parallel<T: Send>(count: usize, threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::with_capacity(count));
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, count.max(1)) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        return;
                    }
                    let result = work(at);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
