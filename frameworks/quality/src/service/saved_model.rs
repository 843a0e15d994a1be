//! Reads and writes trained models as files, with their job, their data and their training.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::clock;
use super::common::DataDescription;
use super::error::Error;
use super::files::replace;
use crate::evaluate::{EvaluateError, Evaluation};
use crate::input::{self, Format, Input, Label, LabelsToRead, Schema};
use crate::job::Job;
use crate::learn::Model;
use crate::scheduler::{Iteration, Score};

/// Version of models. A change that older programs cannot read raises it.
const VERSION: u32 = 2;
/// Version of models without information about their columns and their training.
const VERSION_WITHOUT_SCHEMA: u32 = 1;

/// A trained model with its job and its scores.
#[derive(Debug, Serialize, Deserialize)]
pub struct SavedModel {
    version: u32,
    /// Name of the job.
    pub name: String,
    /// Name of the algorithm.
    pub kind: String,
    /// Names of the classes; empty if there are none.
    pub classes: Vec<String>,
    /// Columns with which the model was trained.
    #[serde(default)]
    pub schema: Schema,
    /// Number of iterations of the training.
    pub iterations: u64,
    /// Loss on the training data.
    pub loss: Option<f64>,
    /// Accuracy on the training data.
    pub accuracy: Option<f64>,
    /// Loss and accuracy on validation data, if there was some.
    #[serde(default)]
    pub validation: Option<Score>,
    /// Description of the training; `None` for models of version 1.
    #[serde(default)]
    pub training: Option<Training>,
    /// Trained model, with the scaling of its features.
    pub model: Model,
}

/// The description of a training.
#[derive(Debug, Serialize, Deserialize)]
pub struct Training {
    /// Job with its hyperparameters, its data and its target.
    pub job: Job,
    /// Number of rows of the training data.
    pub rows: usize,
    /// Mean share of the rows with which iterations computed, for a job on critical rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_share: Option<f64>,
    /// Date of the training's end, in UTC.
    pub date: String,
}

impl SavedModel {
    pub(super) fn new(job: &Job, description: &DataDescription, last: Option<&Iteration>, model: Model) -> SavedModel {
        let date = UNIX_EPOCH + Duration::from_secs(clock::seconds_since_epoch());
        SavedModel {
            version: VERSION,
            name: job.name.clone(),
            kind: job.algorithm.name().to_owned(),
            classes: description.classes.clone(),
            schema: description.schema.clone(),
            iterations: last.map_or(0, |i| i.number + 1),
            loss: last.map(|i| i.loss),
            accuracy: last.and_then(|i| i.accuracy),
            validation: last.and_then(|i| i.validation),
            training: Some(Training {
                job: job.clone(),
                rows: description.shape.rows,
                row_share: None,
                date: humantime::format_rfc3339_seconds(date).to_string(),
            }),
            model,
        }
    }

    /// Sets the mean share of the rows with which iterations computed.
    pub(super) fn over_rows(mut self, share: Option<f64>) -> SavedModel {
        if let Some(training) = &mut self.training {
            training.row_share = share;
        }
        self
    }

    /// Writes the model to a directory, under the job's name.
    pub(super) fn write(&self, directory: &Path) -> Result<PathBuf, Error> {
        let path = directory.join(format!("{}.json", self.name));
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        replace(&path, &bytes)?;
        Ok(path)
    }

    /// Reads a model from a file.
    ///
    /// # Errors
    /// The file cannot be read, is not a model, or has another version.
    pub fn read(path: &Path) -> Result<SavedModel, Error> {
        let text = fs::read_to_string(path).map_err(Error::io(format!("cannot read {}", path.display())))?;
        let refused = |why: String| Error::Refused(format!("{}: {why}", path.display()));
        let mut model: SavedModel =
            serde_json::from_str(&text).map_err(|error| refused(format!("is not a model of this program: {error}")))?;
        match model.version {
            VERSION => {}
            VERSION_WITHOUT_SCHEMA => model.schema = Schema::unnamed(model.model.width(), Label::Last),
            version => {
                return Err(refused(format!("has version {version}; this program reads versions 1 to {VERSION}")));
            }
        }
        if model.model.width() > model.schema.width {
            let (needs, has) = (model.model.width(), model.schema.width);
            return Err(refused(format!("is damaged: it needs {needs} features, and its columns give {has}")));
        }
        Ok(model)
    }

    /// Reads rows to predict from the text of a data file; `file` is its name in errors.
    ///
    /// # Errors
    /// The file has other columns than the model, or a line breaks a rule.
    pub fn rows(&self, file: &str, format: Format, text: &str) -> Result<Input, Error> {
        Ok(input::read_as(file, text, format, &self.schema, LabelsToRead::Nothing)?)
    }

    /// Returns the model's prediction for an example; a class by its name.
    pub fn predict(&self, row: &[f64]) -> String {
        let answer = self.model.predict(row);
        match self.classes.get(answer as usize) {
            Some(class) => class.clone(),
            None => answer.to_string(),
        }
    }

    /// Returns the probability of each class for an example, in the order of the classes.
    ///
    /// # Errors
    /// The model does not classify, or its outputs are not probabilities.
    pub fn probabilities(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        let known = if self.kind == "linear-svm" { None } else { self.model.probabilities(row) };
        known.filter(|p| p.len() == self.classes.len()).ok_or_else(|| {
            let these = "logistic-regression, perceptron and boosted-trees with classes have";
            Error::Refused(format!("{} gives no probabilities: {these}", self.kind))
        })
    }

    /// Compares predictions with the labels of a data file's rows. `file` is its name in errors, and `label` the column
    /// of the labels, if it is not that of the training.
    ///
    /// # Errors
    /// The model was trained without labels, the file has other columns than the model, or a line breaks a rule.
    pub fn evaluate(&self, file: &str, format: Format, text: &str, label: Option<&Label>) -> Result<Evaluation, Error> {
        if matches!(self.model, Model::Clusters(_) | Model::Topics(_)) {
            return Err(EvaluateError::NoLabels(self.kind.clone()).into());
        }
        let label = match label {
            Some(Label::None) => return Err(EvaluateError::NoLabels(self.kind.clone()).into()),
            // Generated data has no column for its label; in a file it is the last.
            None if self.schema.label == Label::None => Some(&Label::Last),
            other => other,
        };
        let wanted = if self.classes.is_empty() {
            LabelsToRead::Numbers(label)
        } else {
            LabelsToRead::Classes(label, &self.classes)
        };
        let input = input::read_as(file, text, format, &self.schema, wanted)?;
        let pairs = input.data.rows().map(|row| self.model.predict(&row)).zip(input.data.labels.iter().copied());
        Ok(if self.classes.is_empty() {
            Evaluation::of_numbers(pairs)
        } else {
            Evaluation::of_classes(&self.classes, pairs.map(|(predicted, label)| (predicted as usize, label as usize)))?
        })
    }
}
