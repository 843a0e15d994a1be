//! The training algorithms with their hyperparameters, and the rules for these.

use serde::{Deserialize, Serialize};

use super::error::LearnError;
use super::kmeans::KMeansOptions;
use super::linear::LinearOptions;
use super::multiclass;
use super::perceptron::PerceptronOptions;
use super::program::ProgramOptions;
use super::topics::TopicsOptions;
use super::trees::{TREES_MAX, Task, TreesOptions};

/// Maximum number of features, classes, clusters and topics each; state for each of them is sent in every round.
const WIDTH_MAX: usize = 1_000_000;

/// The numbers of rows, columns and classes of a data set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Number of examples of the data set.
    pub rows: usize,
    /// Number of features of an example.
    pub columns: usize,
    /// Number of classes; 0 if labels are numbers to predict, or missing.
    pub classes: usize,
}

/// An algorithm with its hyperparameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Algorithm {
    /// Least squares with an L2 penalty, by gradient descent.
    LinearRegression(LinearOptions),
    /// Classification with logistic loss (softmax for more than two classes) with an L2 penalty, by gradient descent.
    LogisticRegression(LinearOptions),
    /// Classification with squared hinge loss (each class against the others for more than two) with an L2 penalty, by
    /// gradient descent.
    LinearSvm(LinearOptions),
    /// Clusters around centres, by Lloyd's iterations.
    #[serde(rename = "k-means")]
    KMeans(KMeansOptions),
    /// Classification with cross-entropy and hidden layers with tanh, by Adam.
    Perceptron(PerceptronOptions),
    /// Sum of trees, each fitted to the residuals of the trees before it.
    BoostedTrees(TreesOptions),
    /// Topics of documents, by latent Dirichlet allocation.
    #[serde(rename = "lda")]
    Topics(TopicsOptions),
    /// Program of the user. It trains by itself, and reports its losses.
    Program(ProgramOptions),
}

impl Algorithm {
    /// Returns the algorithm's name in job files.
    pub fn name(&self) -> &'static str {
        match self {
            Algorithm::LinearRegression(_) => "linear-regression",
            Algorithm::LogisticRegression(_) => "logistic-regression",
            Algorithm::LinearSvm(_) => "linear-svm",
            Algorithm::KMeans(_) => "k-means",
            Algorithm::Perceptron(_) => "perceptron",
            Algorithm::BoostedTrees(_) => "boosted-trees",
            Algorithm::Topics(_) => "lda",
            Algorithm::Program(_) => "program",
        }
    }

    /// Returns whether the labels name classes.
    pub fn classifies(&self) -> bool {
        match self {
            Algorithm::LinearRegression(_) | Algorithm::KMeans(_) | Algorithm::Topics(_) => false,
            Algorithm::Program(_) => false,
            Algorithm::BoostedTrees(o) => o.task == Task::Classification,
            Algorithm::LogisticRegression(_) | Algorithm::LinearSvm(_) | Algorithm::Perceptron(_) => true,
        }
    }

    /// Returns whether a target may name an accuracy. It may for a program, which can report one.
    pub fn has_accuracy(&self) -> bool {
        self.classifies() || matches!(self, Algorithm::Program(_))
    }

    /// Returns whether the loss has a single minimum, so that a curve fitted to it can be trusted.
    pub fn is_convex(&self) -> bool {
        match self {
            Algorithm::LinearRegression(_) | Algorithm::LogisticRegression(_) | Algorithm::LinearSvm(_) => true,
            Algorithm::KMeans(_) | Algorithm::Perceptron(_) | Algorithm::BoostedTrees(_) | Algorithm::Topics(_) => {
                false
            }
            Algorithm::Program(_) => false,
        }
    }

    /// Returns the maximum number of iterations of a job.
    pub fn iterations_max(&self) -> u64 {
        match self {
            Algorithm::BoostedTrees(_) => TREES_MAX as u64,
            _ => 1_000_000,
        }
    }

    /// Returns whether the algorithm computes with sparse data directly.
    pub fn takes_sparse(&self) -> bool {
        match self {
            Algorithm::LinearRegression(_) | Algorithm::LogisticRegression(_) | Algorithm::LinearSvm(_) => true,
            Algorithm::Topics(_) => true,
            Algorithm::KMeans(_) | Algorithm::Perceptron(_) | Algorithm::BoostedTrees(_) => false,
            Algorithm::Program(_) => false,
        }
    }

    /// Checks the hyperparameters.
    ///
    /// # Errors
    /// Returns the first hyperparameter that breaks a rule, and the rule.
    pub fn check(&self) -> Result<(), LearnError> {
        match self {
            Algorithm::LinearRegression(o) | Algorithm::LogisticRegression(o) | Algorithm::LinearSvm(o) => o.check(),
            Algorithm::KMeans(o) => o.check(),
            Algorithm::Perceptron(o) => o.check(),
            Algorithm::BoostedTrees(o) => o.check(),
            Algorithm::Topics(o) => o.check(),
            Algorithm::Program(o) => o.check(),
        }
    }

    /// Checks whether the algorithm can learn from data of this shape.
    ///
    /// # Errors
    /// Returns what does not fit, and the rule.
    pub fn check_shape(&self, shape: &Shape) -> Result<(), LearnError> {
        if shape.rows == 0 {
            return Err(LearnError::invalid("rows", "there must be at least one"));
        }
        if shape.columns == 0 || shape.columns > WIDTH_MAX {
            return Err(LearnError::invalid("columns", format!("there must be between 1 and {WIDTH_MAX}")));
        }
        match self {
            Algorithm::LogisticRegression(_) | Algorithm::LinearSvm(_) if shape.classes < 2 => {
                let rule = format!("{} needs at least 2, and the labels name {}", self.name(), shape.classes);
                Err(LearnError::invalid("classes", rule))
            }
            Algorithm::LogisticRegression(_) | Algorithm::LinearSvm(_) => multiclass::check_shape(shape),
            Algorithm::KMeans(o) => o.check_shape(shape),
            Algorithm::Perceptron(o) => o.check_shape(shape),
            Algorithm::BoostedTrees(o) => o.check_shape(shape),
            Algorithm::Topics(o) => o.check_shape(shape),
            Algorithm::Program(_) => Err(is_a_program()),
            _ => Ok(()),
        }
    }
}

/// Returns the error for training a user's program in this process.
pub(crate) fn is_a_program() -> LearnError {
    LearnError::invalid("algorithm", "is a program, which trains by itself")
}

/// Checks that a hyperparameter is a finite number within bounds, both included.
pub(crate) fn within(name: &str, value: f64, least: f64, most: f64) -> Result<(), LearnError> {
    if value.is_finite() && value >= least && value <= most {
        return Ok(());
    }
    Err(LearnError::invalid(name, format!("must be between {least} and {most}, not {value}")))
}
