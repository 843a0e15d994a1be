//! Training within this process, shard after shard: for tests, for small models, and for reference results.

use super::algorithm::{Algorithm, Shape};
use super::data::Data;
use super::error::LearnError;
use super::learner::{Learner, Memory, Round, partial};
use super::model::Model;

/// A training of which all shards are here.
#[derive(Debug)]
pub struct Local {
    algorithm: Algorithm,
    shape: Shape,
    shards: Vec<(Data, Memory)>,
    learner: Learner,
}

/// What a training gave.
#[derive(Clone, Debug)]
pub struct Trained {
    /// The loss before each iteration.
    pub losses: Vec<f64>,
    /// The accuracy before the last iteration, for classifiers.
    pub accuracy: Option<f64>,
    /// The model; none if there was no iteration.
    pub model: Option<Model>,
}

impl Local {
    /// A training over these shards.
    ///
    /// # Errors
    /// The hyperparameters or the shape break a rule.
    pub fn new(algorithm: Algorithm, shape: Shape, shards: Vec<Data>) -> Result<Local, LearnError> {
        let learner = Learner::new(&algorithm, shape)?;
        let dense = !algorithm.takes_sparse();
        let prepare = |data: Data| (if dense { data.densified(shape.columns) } else { data }, Memory::default());
        Ok(Local { algorithm, shape, shards: shards.into_iter().map(prepare).collect(), learner })
    }

    /// One iteration: its number, its loss and its accuracy.
    ///
    /// # Errors
    /// The loss is not a number, or the data does not fit.
    pub fn iterate(&mut self) -> Result<(u64, f64, Option<f64>), LearnError> {
        loop {
            let parameters = self.learner.parameters();
            let partials: Result<Vec<_>, _> = self
                .shards
                .iter_mut()
                .map(|(data, memory)| partial(&self.algorithm, &self.shape, &parameters, data, memory))
                .collect();
            if let Round::Iteration { iteration, loss, accuracy, .. } = self.learner.fold(&partials?)? {
                return Ok((iteration, loss, accuracy));
            }
        }
    }

    /// So many iterations.
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

    /// Goes on from another state of the learner.
    pub fn resume(&mut self, learner: Learner) {
        self.learner = learner;
    }

    /// The learner as it is now.
    pub fn learner(&self) -> &Learner {
        &self.learner
    }
}
