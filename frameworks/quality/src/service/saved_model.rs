//! Trained models as files: with what they were trained for, on and by.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::clock;
use super::common::Looked;
use super::error::Error;
use super::files::replace;
use crate::evaluate::{EvaluateError, Evaluation};
use crate::input::{self, Format, Input, Label, Schema, Wanted};
use crate::job::Job;
use crate::learn::Model;
use crate::scheduler::{Iteration, Score};

/// The version of models. A change that older programs cannot read raises it.
const VERSION: u32 = 2;
/// Models of this version say nothing of their columns and their training.
const VERSION_WITHOUT_SCHEMA: u32 = 1;

/// A trained model with what it was trained for.
#[derive(Debug, Serialize, Deserialize)]
pub struct SavedModel {
    version: u32,
    /// The job's name.
    pub name: String,
    /// The algorithm.
    pub kind: String,
    /// Names of the classes; empty if there are none.
    pub classes: Vec<String>,
    /// The columns that it was trained with.
    #[serde(default)]
    pub schema: Schema,
    /// How many iterations it was trained for.
    pub iterations: u64,
    /// Its loss on the data that it was trained on.
    pub loss: Option<f64>,
    /// Its accuracy there.
    pub accuracy: Option<f64>,
    /// Its loss and accuracy on validation data, if there was some.
    #[serde(default)]
    pub validation: Option<Score>,
    /// How it was trained; unknown of models of version 1.
    #[serde(default)]
    pub training: Option<Training>,
    /// The model, with the scaling of its features.
    pub model: Model,
}

/// How a model was trained.
#[derive(Debug, Serialize, Deserialize)]
pub struct Training {
    /// The job: its hyperparameters, its data, when it was to end.
    pub job: Job,
    /// Number of rows of the data.
    pub rows: usize,
    /// The mean share of these that iterations were over, of a job on critical rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_share: Option<f64>,
    /// When it was done, in UTC.
    pub date: String,
}

impl SavedModel {
    pub(super) fn new(job: &Job, looked: &Looked, last: Option<&Iteration>, model: Model) -> SavedModel {
        let date = UNIX_EPOCH + Duration::from_secs(clock::seconds_since_epoch());
        SavedModel {
            version: VERSION,
            name: job.name.clone(),
            kind: job.algorithm.name().to_owned(),
            classes: looked.classes.clone(),
            schema: looked.schema.clone(),
            iterations: last.map_or(0, |i| i.number + 1),
            loss: last.map(|i| i.loss),
            accuracy: last.and_then(|i| i.accuracy),
            validation: last.and_then(|i| i.validation),
            training: Some(Training {
                job: job.clone(),
                rows: looked.shape.rows,
                row_share: None,
                date: humantime::format_rfc3339_seconds(date).to_string(),
            }),
            model,
        }
    }

    /// The same, with the mean share of the rows that iterations were over.
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

    /// Reads a model.
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

    /// Reads rows to predict from the text of a data file.
    ///
    /// # Errors
    /// The file has other columns than the model, or a line breaks a rule.
    pub fn rows(&self, file: &str, text: &str) -> Result<Input, Error> {
        Ok(input::read_as(file, text, Format::of(file), &self.schema, Wanted::Nothing)?)
    }

    /// The model's prediction for an example, a class by its name.
    pub fn predict(&self, row: &[f64]) -> String {
        let answer = self.model.predict(row);
        match self.classes.get(answer as usize) {
            Some(class) => class.clone(),
            None => answer.to_string(),
        }
    }

    /// The probability of each class for an example, in the order of the classes.
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

    /// Compares predictions with the labels of a data file's rows. `label` is the column of the labels, if it is not
    /// that of the training.
    ///
    /// # Errors
    /// The model learns no labels, the file has other columns than the model, or a line breaks a rule.
    pub fn evaluate(&self, file: &str, text: &str, label: Option<&Label>) -> Result<Evaluation, Error> {
        if matches!(self.model, Model::Clusters(_) | Model::Topics(_)) {
            return Err(EvaluateError::NoLabels(self.kind.clone()).into());
        }
        let label = match label {
            Some(Label::None) => return Err(EvaluateError::NoLabels(self.kind.clone()).into()),
            // Data that was made has no column for its label; in a file it stands last.
            None if self.schema.label == Label::None => Some(&Label::Last),
            other => other,
        };
        let wanted =
            if self.classes.is_empty() { Wanted::Numbers(label) } else { Wanted::Classes(label, &self.classes) };
        let input = input::read_as(file, text, Format::of(file), &self.schema, wanted)?;
        let pairs = input.data.rows().map(|row| self.model.predict(&row)).zip(input.data.labels.iter().copied());
        Ok(if self.classes.is_empty() {
            Evaluation::of_numbers(pairs)
        } else {
            Evaluation::of_classes(&self.classes, pairs.map(|(predicted, label)| (predicted as usize, label as usize)))?
        })
    }
}
