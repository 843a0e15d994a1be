//! Batches of environments that step together, on threads. The results do not depend on the number of threads.
//!
//! An environment whose episode has ended starts the next one at its next step, and ignores the action of that step:
//! the mode `NEXT_STEP` of Gymnasium. Without autoreset it waits for a reset.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use crate::kinds::EnvironmentFactory;
use crate::space::{Actions, Buffers, Spaces};
use crate::{Action, Environment, LearningError, Rollout};

/// Maximum number of environments of a batch.
pub const MOST_ENVIRONMENTS: usize = 4096;

/// Maximum number of threads of a batch.
const MOST_THREADS: usize = 256;

/// Maximum size of the observations of a batch, in bytes.
const MOST_BYTES: usize = 256 << 20;

/// Results of a reset or a step for some environments of a batch, in order.
#[derive(Clone, Debug, Default)]
pub struct BatchResults {
    /// Observations, by field.
    pub observations: Buffers,
    /// Reward of each environment.
    pub rewards: Vec<f64>,
    /// Whether the episode of each environment has ended.
    pub terminated: Vec<bool>,
    /// Whether the episode of each environment was truncated.
    pub truncated: Vec<bool>,
    /// Seed of the episode of each environment.
    pub seeds: Vec<u64>,
    /// Measurements: all of the first environment, then all of the second, and so on.
    pub info: Vec<f64>,
}

/// A request to a thread.
enum Work {
    /// Reset the environments of the thread that have an entry.
    Reset(Vec<Option<EpisodeStart>>),
    /// Step all environments with these actions.
    Step(Vec<u8>),
    /// Play the episodes of these seeds with the policy of this name.
    Baseline(String, Vec<u64>),
}

/// Seed with which an environment is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpisodeStart {
    /// Reset with this seed.
    Seed(u64),
    /// Start the next episode after the one with the last seed.
    Next,
}

/// Result of a request to a thread.
enum WorkResult {
    BatchResults(Result<BatchResults, LearningError>),
    Rollouts(Result<Vec<Rollout>, LearningError>),
}

/// A batch of environments that step together.
pub struct Batch {
    spaces: Spaces,
    count: usize,
    workers: Vec<Worker>,
    ready: Ready,
}

/// Whether each environment of a batch can step: it has an episode, or autoreset starts one. Groups write it before
/// they answer. The batch reads it when all have answered.
type Ready = Arc<[AtomicBool]>;

/// A part of the environments, in the caller's thread or in one of its own.
enum Worker {
    CallerThread(Box<Group>),
    Thread { range: Range<usize>, work: Sender<Work>, done: Receiver<WorkResult>, thread: Option<JoinHandle<()>> },
}

impl Batch {
    /// Creates `count` environments on `threads` threads. With one thread they run in the caller's.
    ///
    /// # Errors
    /// Returns an error for too many environments or threads, observations that are too large, or an environment that
    /// cannot be made.
    pub fn new(
        factory: &EnvironmentFactory,
        count: usize,
        threads: usize,
        autoreset: bool,
    ) -> Result<Batch, LearningError> {
        let spaces = factory.make()?.spaces().clone();
        if !(1..=MOST_ENVIRONMENTS).contains(&count) {
            return Err(LearningError::setting("count", format!("must be 1 to {MOST_ENVIRONMENTS}")));
        }
        if !(1..=MOST_THREADS).contains(&threads) {
            return Err(LearningError::setting("threads", format!("must be 1 to {MOST_THREADS}")));
        }
        if spaces.bytes() * count > MOST_BYTES {
            let rule = format!("observations of {} bytes each must be 256 MiB or less together", spaces.bytes());
            return Err(LearningError::setting("count", rule));
        }
        let threads = threads.min(count);
        let range = |at: usize| count * at / threads..count * (at + 1) / threads;
        let ready: Ready = (0..count).map(|_| AtomicBool::new(false)).collect();
        let workers = match threads {
            1 => vec![Worker::CallerThread(Box::new(Group::new(factory, 0..count, autoreset, ready.clone())?))],
            _ => (0..threads).map(|at| Worker::thread(factory.clone(), range(at), autoreset, ready.clone())).collect(),
        };
        Ok(Batch { spaces, count, workers, ready })
    }

    /// Returns the spaces of observations, actions and measurements.
    pub fn spaces(&self) -> &Spaces {
        &self.spaces
    }

    /// Returns the number of environments.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Resets the environments that have an entry. Those without one keep their episodes.
    ///
    /// # Errors
    /// Returns an error if an episode cannot begin.
    pub fn reset(&mut self, begin: &[Option<EpisodeStart>]) -> Result<Vec<BatchResults>, LearningError> {
        if begin.len() != self.count {
            return Err(LearningError::frame("seeds", format!("must be for {} environments", self.count)));
        }
        self.parts(|range| Work::Reset(begin[range].to_vec()))
    }

    /// Steps all environments with these actions, four bytes for each number.
    ///
    /// # Errors
    /// Returns the first invalid action, or the first environment without an episode; no environment has stepped then.
    pub fn step(&mut self, actions: &[u8]) -> Result<Vec<BatchResults>, LearningError> {
        check(&self.spaces.action, self.count, actions)?;
        if let Some(environment) = self.ready.iter().position(|ready| !ready.load(Ordering::Relaxed)) {
            return Err(LearningError::NoEpisode(environment));
        }
        let each = 4 * self.spaces.action.numbers();
        self.parts(|range| Work::Step(actions[range.start * each..range.end * each].to_vec()))
    }

    /// Plays the episodes of these seeds with the policy of this name. All environments need a reset afterwards.
    ///
    /// # Errors
    /// Returns an error for an unknown policy, or an episode that cannot begin.
    pub fn baseline(&mut self, policy: &str, seeds: &[u64]) -> Result<Vec<Rollout>, LearningError> {
        let threads = self.workers.len();
        let share = |at: usize| seeds[seeds.len() * at / threads..seeds.len() * (at + 1) / threads].to_vec();
        let work = (0..threads).map(|at| Work::Baseline(policy.to_owned(), share(at))).collect();
        let mut all = Vec::with_capacity(seeds.len());
        let mut failed = None;
        for done in self.all(work) {
            match done? {
                WorkResult::Rollouts(Ok(rollouts)) => all.extend(rollouts),
                WorkResult::Rollouts(Err(why)) | WorkResult::BatchResults(Err(why)) => failed = failed.or(Some(why)),
                WorkResult::BatchResults(Ok(_)) => {}
            }
        }
        failed.map_or(Ok(all), Err)
    }

    fn parts(&mut self, work: impl Fn(Range<usize>) -> Work) -> Result<Vec<BatchResults>, LearningError> {
        let work = self.workers.iter().map(|worker| work(worker.range())).collect();
        let (mut all, mut failed) = (Vec::with_capacity(self.workers.len()), None);
        // All threads have answered before an error is returned, so that no answer is left for the next call.
        for done in self.all(work) {
            match done {
                Ok(WorkResult::BatchResults(Ok(part))) => all.push(part),
                Ok(WorkResult::BatchResults(Err(why)) | WorkResult::Rollouts(Err(why))) | Err(why) => {
                    failed = failed.or(Some(why))
                }
                Ok(WorkResult::Rollouts(Ok(_))) => {}
            }
        }
        failed.map_or(Ok(all), Err)
    }

    fn all(&mut self, work: Vec<Work>) -> Vec<Result<WorkResult, LearningError>> {
        for (worker, work) in self.workers.iter_mut().zip(work) {
            worker.begin(work);
        }
        self.workers.iter_mut().map(Worker::end).collect()
    }
}

impl Worker {
    fn thread(factory: EnvironmentFactory, range: Range<usize>, autoreset: bool, ready: Ready) -> Worker {
        let (work, todo) = channel::<Work>();
        let (finished, done) = channel::<WorkResult>();
        let own = range.clone();
        let thread = std::thread::spawn(move || {
            // Environments are made in their thread, since those of scenarios are not `Send`.
            let mut group = match Group::new(&factory, own, autoreset, ready) {
                Ok(group) => group,
                Err(why) => {
                    let _ = todo.recv();
                    // The batch may have been dropped.
                    let _ = finished.send(WorkResult::BatchResults(Err(why)));
                    return;
                }
            };
            for work in todo {
                if finished.send(group.carry_out(work)).is_err() {
                    return;
                }
            }
        });
        Worker::Thread { range, work, done, thread: Some(thread) }
    }

    fn range(&self) -> Range<usize> {
        match self {
            Worker::CallerThread(group) => group.range.clone(),
            Worker::Thread { range, .. } => range.clone(),
        }
    }

    fn begin(&mut self, todo: Work) {
        match self {
            Worker::CallerThread(group) => group.todo = Some(todo),
            // A thread that has ended is detected when its answer is received.
            Worker::Thread { work, .. } => drop(work.send(todo)),
        }
    }

    fn end(&mut self) -> Result<WorkResult, LearningError> {
        match self {
            Worker::CallerThread(group) => {
                let todo = group.todo.take().ok_or(LearningError::Thread)?;
                Ok(group.carry_out(todo))
            }
            Worker::Thread { done, .. } => done.recv().map_err(|_| LearningError::Thread),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Worker::Thread { work, thread, .. } = self {
            // The thread ends when its sender is dropped.
            drop(std::mem::replace(work, channel().0));
            if let Some(thread) = thread.take() {
                // A panic of the thread was already reported.
                let _ = thread.join();
            }
        }
    }
}

/// An environment with the seeds of its episodes.
struct Slot {
    environment: Box<dyn Environment>,
    /// Seed of the last reset.
    root: u64,
    /// Number of episodes since that reset.
    episode: u64,
    running: bool,
    was_reset: bool,
}

impl Slot {
    /// Returns the seed of the episode: that of the reset, and for later episodes a number below 2^53, which every
    /// language can represent.
    fn seed(&self) -> u64 {
        match self.episode {
            0 => self.root,
            episode => base::scramble(self.root.wrapping_add(episode.wrapping_mul(base::GAMMA))) >> 11,
        }
    }

    fn begin(&mut self, begin: EpisodeStart) -> Result<(), LearningError> {
        match begin {
            EpisodeStart::Seed(seed) => (self.root, self.episode) = (seed, 0),
            EpisodeStart::Next if self.was_reset => self.episode += 1,
            EpisodeStart::Next => {}
        }
        self.environment.reset(self.seed())?;
        (self.running, self.was_reset) = (true, true);
        Ok(())
    }
}

/// A part of the environments of a batch, processed one after the other.
struct Group {
    range: Range<usize>,
    spaces: Spaces,
    slots: Vec<Slot>,
    autoreset: bool,
    todo: Option<Work>,
    ready: Ready,
}

impl Group {
    fn new(
        factory: &EnvironmentFactory,
        range: Range<usize>,
        autoreset: bool,
        ready: Ready,
    ) -> Result<Group, LearningError> {
        let slot = |_| {
            let environment = factory.make()?;
            Ok(Slot { environment, root: 0, episode: 0, running: false, was_reset: false })
        };
        let slots = range.clone().map(slot).collect::<Result<Vec<Slot>, LearningError>>()?;
        let spaces = factory.make()?.spaces().clone();
        Ok(Group { range, spaces, slots, autoreset, todo: None, ready })
    }

    fn carry_out(&mut self, work: Work) -> WorkResult {
        let result = match work {
            Work::Reset(begin) => WorkResult::BatchResults(self.reset(&begin)),
            Work::Step(actions) => WorkResult::BatchResults(self.step(&actions)),
            Work::Baseline(policy, seeds) => WorkResult::Rollouts(self.baseline(&policy, &seeds)),
        };
        for (slot, ready) in self.slots.iter().zip(&self.ready[self.range.clone()]) {
            ready.store(slot.running || (self.autoreset && slot.was_reset), Ordering::Relaxed);
        }
        result
    }

    fn reset(&mut self, begin: &[Option<EpisodeStart>]) -> Result<BatchResults, LearningError> {
        for (slot, begin) in self.slots.iter_mut().zip(begin) {
            if let Some(begin) = begin {
                slot.begin(*begin)?;
            }
        }
        let mut part = self.part();
        self.observe(&mut part);
        Ok(part)
    }

    fn step(&mut self, actions: &[u8]) -> Result<BatchResults, LearningError> {
        let mut part = self.part();
        let numbers = self.spaces.action.numbers();
        let (mut choices, mut amounts) = (Vec::with_capacity(numbers), Vec::with_capacity(numbers));
        for (at, (slot, bytes)) in self.slots.iter_mut().zip(actions.chunks_exact(4 * numbers)).enumerate() {
            if !slot.running {
                slot.begin(EpisodeStart::Next)?;
                continue;
            }
            let cells = bytes.as_chunks::<4>().0;
            let step = match &self.spaces.action {
                Actions::Choices(_) => {
                    choices.clear();
                    choices.extend(cells.iter().map(|cell| i32::from_le_bytes(*cell)));
                    slot.environment.step(Action::Choices(&choices))
                }
                Actions::Amounts(_) => {
                    amounts.clear();
                    amounts.extend(cells.iter().map(|cell| f32::from_le_bytes(*cell)));
                    slot.environment.step(Action::Amounts(&amounts))
                }
            }?;
            (part.rewards[at], part.terminated[at], part.truncated[at]) =
                (step.reward, step.terminated, step.truncated);
            slot.running = !step.terminated && !step.truncated;
        }
        self.observe(&mut part);
        Ok(part)
    }

    fn baseline(&mut self, policy: &str, seeds: &[u64]) -> Result<Vec<Rollout>, LearningError> {
        self.slots.iter_mut().for_each(|slot| (slot.running, slot.was_reset) = (false, false));
        let Some(slot) = self.slots.first_mut() else { return Err(LearningError::Thread) };
        seeds.iter().map(|seed| slot.environment.baseline(policy, *seed)).collect()
    }

    fn part(&self) -> BatchResults {
        let count = self.slots.len();
        BatchResults {
            observations: Buffers::new(&self.spaces, count),
            rewards: vec![0.0; count],
            terminated: vec![false; count],
            truncated: vec![false; count],
            seeds: vec![0; count],
            info: vec![0.0; count * self.spaces.info.len()],
        }
    }

    fn observe(&self, part: &mut BatchResults) {
        let measured = self.spaces.info.len();
        for (at, slot) in self.slots.iter().enumerate() {
            if slot.was_reset {
                slot.environment.observe(&mut part.observations.row(&self.spaces, at));
                slot.environment.info(&mut part.info[at * measured..(at + 1) * measured]);
                part.seeds[at] = slot.seed();
            }
        }
    }
}

/// Checks the actions of a batch.
fn check(space: &Actions, count: usize, actions: &[u8]) -> Result<(), LearningError> {
    let numbers = space.numbers();
    if actions.len() != 4 * numbers * count {
        let rule = format!("must have 4 bytes for each of {numbers} numbers of {count} environments");
        return Err(LearningError::frame("actions", rule));
    }
    for (at, cell) in actions.as_chunks::<4>().0.iter().enumerate() {
        let (environment, item) = (at / numbers, at % numbers);
        let rule = match space {
            Actions::Choices(counts) => {
                let given = i32::from_le_bytes(*cell);
                let fits = u32::try_from(given).is_ok_and(|given| given < counts[item]);
                (!fits).then(|| format!("{given} must be 0 to {}", counts[item] - 1))
            }
            Actions::Amounts(bounds) => {
                let (given, (low, high)) = (f32::from_le_bytes(*cell), bounds[item]);
                (!(low..=high).contains(&given)).then(|| format!("{given} must be {low} to {high}"))
            }
        };
        if let Some(rule) = rule {
            return Err(LearningError::Action { environment, item, rule });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
