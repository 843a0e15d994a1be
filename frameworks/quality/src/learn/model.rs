//! Trained models in their stored form: JSON with a version.

use serde::{Deserialize, Serialize};

use super::error::LearnError;
use super::kmeans::ClusterModel;
use super::linear::LinearModel;
use super::multiclass::ClassesModel;
use super::perceptron::Perceptron;
use super::topics::TopicModel;
use super::trees::ForestModel;

/// Version of the stored form of models. A change that older programs cannot read raises it.
const VERSION: u32 = 1;

/// A trained model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Model {
    /// Linear regression, logistic regression or a support vector machine.
    Linear(LinearModel),
    /// Logistic regression or a support vector machine of several classes.
    LinearClasses(ClassesModel),
    /// Centres of clusters.
    Clusters(ClusterModel),
    /// A multi-layer perceptron.
    Perceptron(Perceptron),
    /// Boosted trees.
    Forest(ForestModel),
    /// Topics of documents.
    Topics(TopicModel),
}

#[derive(Serialize, Deserialize)]
struct File<M> {
    version: u32,
    model: M,
}

impl Model {
    /// Returns the model's prediction for an example: a number, or the number of a class.
    pub fn predict(&self, row: &[f64]) -> f64 {
        match self {
            Model::Linear(model) => model.predict(row),
            Model::LinearClasses(model) => model.predict(row) as f64,
            Model::Clusters(model) => model.predict(row),
            Model::Perceptron(model) => model.predict(row) as f64,
            Model::Forest(model) => model.predict(row),
            Model::Topics(model) => model.predict(row),
        }
    }

    /// Returns the probability of each class for an example; `None` if the model does not classify. Those of a linear
    /// model are those of logistic loss.
    pub fn probabilities(&self, row: &[f64]) -> Option<Vec<f64>> {
        match self {
            Model::Linear(model) => model.probabilities(row),
            Model::LinearClasses(model) => Some(model.probabilities(row)),
            Model::Perceptron(model) => Some(model.probabilities(row)),
            Model::Forest(model) => model.probabilities(row),
            Model::Clusters(_) | Model::Topics(_) => None,
        }
    }

    /// Returns the number of features of an example that the model uses.
    pub fn width(&self) -> usize {
        match self {
            Model::Linear(model) => model.weights.len(),
            Model::LinearClasses(model) => model.weights.iter().map(Vec::len).max().unwrap_or(0),
            Model::Clusters(model) => model.centres.first().map_or(0, Vec::len),
            Model::Perceptron(model) => model.features(),
            Model::Forest(model) => model.width(),
            Model::Topics(model) => model.topics.first().map_or(0, Vec::len),
        }
    }

    /// Serializes the model as JSON.
    pub fn to_json(&self) -> String {
        // Serialization fails only for maps with keys that are not texts and for failing writers; there are none.
        serde_json::to_string(&File { version: VERSION, model: self }).unwrap_or_default()
    }

    /// Parses a model from JSON.
    ///
    /// # Errors
    /// The text is not a model, or one of another version.
    pub fn from_json(text: &str) -> Result<Model, LearnError> {
        let file: File<serde_json::Value> = serde_json::from_str(text).map_err(LearnError::Format)?;
        if file.version != VERSION {
            return Err(LearnError::Version(file.version, VERSION));
        }
        serde_json::from_value(file.model).map_err(LearnError::Format)
    }
}
