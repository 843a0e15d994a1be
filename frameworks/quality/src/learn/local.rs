//! Training within this process, shard after shard: for tests, for small models, and for reference results.

use super::algorithm::{Algorithm, Shape};
use super::critical::CriticalRows;
use super::data::Data;
use super::error::LearnError;
use super::learner::{Learner, Memory, Round, partial};
use super::model::Model;
use super::skipping::partial as partial_of_critical;

/// A training of which all shards are here.
#[derive(Debug)]
pub struct Local {
    algorithm: Algorithm,
    shape: Shape,
    shards: Vec<(Data, Memory)>,
    learner: Learner,
    critical: bool,
    /// How many rows were computed with so far.
    worked: u64,
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
        let shards = shards.into_iter().map(prepare).collect();
        Ok(Local { algorithm, shape, shards, learner, critical: false, worked: 0 })
    }

    /// The same on critical rows.
    ///
    /// # Errors
    /// The algorithm learns from all rows, or an option breaks a rule.
    pub fn on_critical_rows(self, options: CriticalRows) -> Result<Local, LearnError> {
        let learner = self.learner.on_critical_rows(Some(options), &self.algorithm, &self.shape)?;
        Ok(Local { learner, critical: true, ..self })
    }

    /// The next iteration is over all rows: as the last one of a training on critical rows should be.
    pub fn measure(&mut self) {
        self.learner.measure();
    }

    /// How many rows all rounds so far have computed with, the means of groups counted.
    pub fn worked(&self) -> u64 {
        self.worked
    }

    /// One iteration: its number, its loss and its accuracy.
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
            let worked = |(data, memory): &(Data, Memory)| if self.critical { memory.worked } else { data.len() };
            self.worked += self.shards.iter().map(worked).sum::<usize>() as u64;
            if let Round::Iteration { iteration, loss, accuracy, .. } = self.learner.fold(&partials?)? {
                return Ok((iteration, loss, accuracy));
            }
        }
    }

    /// This many iterations.
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
