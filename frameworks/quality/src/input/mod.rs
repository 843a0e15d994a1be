//! Data files: converts CSV and LIBSVM text to training data, or rejects it with file, line and rule.
//!
//! It receives text; reading files is the caller's part.

mod csv;
mod labels;
mod libsvm;

use serde::{Deserialize, Serialize};

use crate::learn::Data;

/// The most numbers of a data set: 4 GB.
const CELLS_MAX: usize = 500_000_000;
/// The most features that sparse data may name.
const COLUMNS_MAX: u32 = 1_000_000;

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Numbers between commas, a row a line, with or without a line of names above.
    Csv,
    /// `label column:value column:value`, columns from 1.
    Libsvm,
}

/// Which column of a CSV file is the label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Label {
    /// The last one.
    #[default]
    Last,
    /// The first one.
    First,
    /// None: all columns are features.
    None,
}

/// A data set with the names of its classes.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Features and labels; a class is its place in `classes`.
    pub data: Data,
    /// Names of the classes, in order; empty if labels are numbers to predict, or missing.
    pub classes: Vec<String>,
}

/// What is wrong with a data file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {rule}")]
pub struct InputError {
    /// Its name.
    pub file: String,
    /// Which line, from 1.
    pub line: u64,
    /// What the line breaks.
    pub rule: String,
}

/// Reads a data file's `text`. With `classify`, labels are names of classes; `file` is its name in errors.
///
/// # Errors
/// The first line that breaks a rule.
pub fn read(file: &str, text: &str, format: Format, label: Label, classify: bool) -> Result<Input, InputError> {
    let result = match format {
        Format::Csv => csv::read(text, label, classify),
        Format::Libsvm => libsvm::read(text, classify),
    };
    result.map_err(|(line, rule)| InputError { file: file.to_owned(), line, rule })
}

/// A line and the rule that it breaks.
type Breach = (u64, String);

/// A finite number.
fn number(text: &str, line: u64, what: &str) -> Result<f64, Breach> {
    match text.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err((line, format!("{what} is '{}', and must be a finite number", shortened(text)))),
    }
}

/// The beginning of a text that may be long.
fn shortened(text: &str) -> String {
    if text.chars().count() <= 40 { text.to_owned() } else { text.chars().take(40).chain(['…']).collect() }
}

#[cfg(test)]
mod tests;
