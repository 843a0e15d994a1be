//! Chooses the computation of an algorithm for data of some shape: the loss of a linear model depends on the number of
//! classes.

use super::algorithm::{Algorithm, Shape, is_a_program};
use super::error::LearnError;
use super::kmeans::KMeansOptions;
use super::linear::LinearOptions;
use super::perceptron::PerceptronOptions;
use super::topics::TopicsOptions;
use super::trees::TreesOptions;
use super::{linear, multiclass};

/// An algorithm for data of one shape.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Method<'a> {
    /// One output: a number, or one of two classes.
    Linear(linear::Loss, LinearOptions),
    /// One output for each class.
    Classes(multiclass::Loss, LinearOptions),
    KMeans(&'a KMeansOptions),
    Perceptron(&'a PerceptronOptions),
    Trees(&'a TreesOptions),
    Topics(&'a TopicsOptions),
}

impl Algorithm {
    /// Returns the computation of the algorithm for data of this shape.
    ///
    /// # Errors
    /// The algorithm is a user's program.
    pub(crate) fn method(&self, shape: &Shape) -> Result<Method<'_>, LearnError> {
        let many = shape.classes > 2;
        Ok(match self {
            Algorithm::LinearRegression(o) => Method::Linear(linear::Loss::Squared, *o),
            Algorithm::LogisticRegression(o) if many => Method::Classes(multiclass::Loss::Softmax, *o),
            Algorithm::LogisticRegression(o) => Method::Linear(linear::Loss::Logistic, *o),
            Algorithm::LinearSvm(o) if many => Method::Classes(multiclass::Loss::SquaredHinge, *o),
            Algorithm::LinearSvm(o) => Method::Linear(linear::Loss::SquaredHinge, *o),
            Algorithm::KMeans(o) => Method::KMeans(o),
            Algorithm::Perceptron(o) => Method::Perceptron(o),
            Algorithm::BoostedTrees(o) => Method::Trees(o),
            Algorithm::Topics(o) => Method::Topics(o),
            Algorithm::Program(_) => return Err(is_a_program()),
        })
    }
}
