//! The algorithms with their hyperparameters and the rules of these.

use serde::{Deserialize, Serialize};

use super::error::LearnError;
use super::kmeans::KMeansOptions;
use super::linear::LinearOptions;
use super::multiclass;
use super::perceptron::PerceptronOptions;
use super::program::ProgramOptions;
use super::topics::TopicsOptions;
use super::trees::{TREES_MAX, Task, TreesOptions};

/// The most features, classes, clusters and topics; what must be kept of each is sent in every round.
const WIDTH_MAX: usize = 1_000_000;

/// The shape of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Number of examples.
    pub rows: usize,
    /// How many features each has.
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
    /// Classes, logistic loss (softmax for more than two) with an L2 penalty, by gradient descent.
    LogisticRegression(LinearOptions),
    /// Classes, squared hinge loss (each class against the others for more than two) with an L2 penalty, by gradient
    /// descent.
    LinearSvm(LinearOptions),
    /// Clusters around centres, by Lloyd's iterations.
    #[serde(rename = "k-means")]
    KMeans(KMeansOptions),
    /// Several classes, cross-entropy, hidden layers with tanh, by Adam.
    Perceptron(PerceptronOptions),
    /// A sum of trees, each fitted to what the trees before it left over.
    BoostedTrees(TreesOptions),
    /// Topics of documents, by latent Dirichlet allocation.
    #[serde(rename = "lda")]
    Topics(TopicsOptions),
    /// A program of the user's own. It trains by itself, and reports its losses.
    Program(ProgramOptions),
}

impl Algorithm {
    /// The algorithm's name in job files.
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

    /// Whether the labels name classes.
    pub fn classifies(&self) -> bool {
        match self {
            Algorithm::LinearRegression(_) | Algorithm::KMeans(_) | Algorithm::Topics(_) => false,
            Algorithm::Program(_) => false,
            Algorithm::BoostedTrees(o) => o.task == Task::Classification,
            Algorithm::LogisticRegression(_) | Algorithm::LinearSvm(_) | Algorithm::Perceptron(_) => true,
        }
    }

    /// Whether a target may name an accuracy: a program may report one, too.
    pub fn has_accuracy(&self) -> bool {
        self.classifies() || matches!(self, Algorithm::Program(_))
    }

    /// Whether the loss has a single minimum, so that a curve fitted to it can be trusted.
    pub fn is_convex(&self) -> bool {
        match self {
            Algorithm::LinearRegression(_) | Algorithm::LogisticRegression(_) | Algorithm::LinearSvm(_) => true,
            Algorithm::KMeans(_) | Algorithm::Perceptron(_) | Algorithm::BoostedTrees(_) | Algorithm::Topics(_) => {
                false
            }
            Algorithm::Program(_) => false,
        }
    }

    /// After how many iterations it has learnt all that it may.
    pub fn iterations_max(&self) -> u64 {
        match self {
            Algorithm::BoostedTrees(_) => TREES_MAX as u64,
            _ => 1_000_000,
        }
    }

    /// Whether it can work on sparse data as it is.
    pub fn takes_sparse(&self) -> bool {
        match self {
            Algorithm::LinearRegression(_) | Algorithm::LogisticRegression(_) | Algorithm::LinearSvm(_) => true,
            Algorithm::Topics(_) => true,
            Algorithm::KMeans(_) | Algorithm::Perceptron(_) | Algorithm::BoostedTrees(_) => false,
            Algorithm::Program(_) => false,
        }
    }

    /// Whether the hyperparameters keep their rules.
    ///
    /// # Errors
    /// The first that does not, and the rule.
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

    /// Whether data of this shape can be learnt from.
    ///
    /// # Errors
    /// What does not fit, and the rule.
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

/// What is wrong with training a program here.
pub(crate) fn is_a_program() -> LearnError {
    LearnError::invalid("algorithm", "is a program, which trains by itself")
}

/// A hyperparameter that must be a finite number within bounds, both included.
pub(crate) fn within(name: &str, value: f64, least: f64, most: f64) -> Result<(), LearnError> {
    if value.is_finite() && value >= least && value <= most {
        return Ok(());
    }
    Err(LearnError::invalid(name, format!("must be between {least} and {most}, not {value}")))
}
