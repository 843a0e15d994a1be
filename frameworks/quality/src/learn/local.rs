//! Trains within this process, shard after shard: for tests, for small models, and for reference results.

use super::algorithm::{Algorithm, Shape};
use super::critical::CriticalRows;
use super::data::Data;
use super::error::LearnError;
use super::learner::{Learner, Round, ShardCache, partial};
use super::model::Model;
use super::skipping::partial as partial_of_critical;

/// A training whose shards are all in this process.
#[derive(Debug)]
pub struct LocalTraining {
    algorithm: Algorithm,
    shape: Shape,
    shards: Vec<(Data, ShardCache)>,
    learner: Learner,
    critical: bool,
    /// Number of rows that rounds have computed with so far.
    worked: u64,
}

/// The result of a training.
#[derive(Clone, Debug)]
pub struct Trained {
    /// Loss before each iteration.
    pub losses: Vec<f64>,
    /// Accuracy before the last iteration, for classifiers.
    pub accuracy: Option<f64>,
    /// Trained model; `None` if there was no iteration.
    pub model: Option<Model>,
}

impl LocalTraining {
    /// Creates a training over these shards.
    ///
    /// # Errors
    /// The hyperparameters or the shape break a rule.
    pub fn new(algorithm: Algorithm, shape: Shape, shards: Vec<Data>) -> Result<LocalTraining, LearnError> {
        let learner = Learner::new(&algorithm, shape)?;
        let dense = !algorithm.takes_sparse();
        let prepare = |data: Data| (if dense { data.densified(shape.columns) } else { data }, ShardCache::default());
        let shards = shards.into_iter().map(prepare).collect();
        Ok(LocalTraining { algorithm, shape, shards, learner, critical: false, worked: 0 })
    }

    /// Turns this into a training on critical rows.
    ///
    /// # Errors
    /// The algorithm learns from all rows, or an option breaks a rule.
    pub fn on_critical_rows(self, options: CriticalRows) -> Result<LocalTraining, LearnError> {
        let learner = self.learner.on_critical_rows(Some(options), &self.algorithm, &self.shape)?;
        Ok(LocalTraining { learner, critical: true, ..self })
    }

    /// Makes the next iteration one over all rows, as the last one of a training on critical rows should be.
    pub fn use_all_rows_next(&mut self) {
        self.learner.use_all_rows_next();
    }

    /// Returns the number of rows that all rounds so far have computed with, the means of groups included.
    pub fn worked(&self) -> u64 {
        self.worked
    }

    /// Runs one iteration, and returns its number, its loss and its accuracy.
    ///
    /// # Errors
    /// The loss is not a number, or the data does not fit.
    pub fn iterate(&mut self) -> Result<(u64, f64, Option<f64>), LearnError> {
        loop {
            let parameters = self.learner.parameters();
            let compute = if self.critical { partial_of_critical } else { partial };
            let partials: Result<Vec<_>, _> = self
                .shards
                .iter_mut()
                .map(|(data, memory)| compute(&self.algorithm, &self.shape, &parameters, data, memory))
                .collect();
            let worked = |(data, memory): &(Data, ShardCache)| if self.critical { memory.worked } else { data.len() };
            self.worked += self.shards.iter().map(worked).sum::<usize>() as u64;
            if let Round::Iteration { iteration, loss, accuracy, .. } = self.learner.fold(&partials?)? {
                return Ok((iteration, loss, accuracy));
            }
        }
    }

    /// Runs this many iterations.
    ///
    /// # Errors
    /// The loss is not a number, or the data does not fit.
    pub fn run(mut self, iterations: u64) -> Result<Trained, LearnError> {
        let mut trained = Trained { losses: Vec::new(), accuracy: None, model: None };
        for _ in 0..iterations {
            let (_, loss, accuracy) = self.iterate()?;
            trained.losses.push(loss);
            trained.accuracy = accuracy;
        }
        trained.model = self.learner.model();
        Ok(trained)
    }

    /// Continues from another state of the learner.
    pub fn resume(&mut self, learner: Learner) {
        self.learner = learner;
    }

    /// Returns the current learner.
    pub fn learner(&self) -> &Learner {
        &self.learner
    }
}
