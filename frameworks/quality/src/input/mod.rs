//! Data files: converts CSV and LIBSVM text to training data, or rejects it with file, line and rule.
//!
//! It receives text; reading files is the caller's part.

#[cfg(feature = "columnar")]
mod columnar;
mod columns;
mod csv;
mod labels;
mod libsvm;

use serde::{Deserialize, Serialize};

use crate::learn::Data;

pub use columns::{Column, Schema};

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
    /// Apache Parquet, in a program with the feature `columnar`.
    Parquet,
    /// Apache Arrow's files, as Feather 2, in a program with the feature `columnar`.
    Arrow,
}

impl Format {
    /// The format of a file by its name: `.csv`, `.parquet`, `.arrow` and `.feather`, everything else is LIBSVM.
    pub fn of(path: &str) -> Format {
        match path.to_ascii_lowercase().rsplit_once('.').map(|(_, ending)| ending) {
            Some("csv") => Format::Csv,
            Some("parquet") => Format::Parquet,
            Some("arrow" | "feather") => Format::Arrow,
            _ => Format::Libsvm,
        }
    }
}

/// Which column of a CSV file is the label: `last`, `first` or `none`, or a column's name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Label {
    /// The last one.
    #[default]
    Last,
    /// The first one.
    First,
    /// None: all columns are features.
    None,
    /// The one of this name. The file must have a line of names.
    Named(String),
}

impl From<String> for Label {
    fn from(text: String) -> Label {
        match text.as_str() {
            "last" => Label::Last,
            "first" => Label::First,
            "none" => Label::None,
            _ => Label::Named(text),
        }
    }
}

impl From<Label> for String {
    fn from(label: Label) -> String {
        match label {
            Label::Last => "last".to_owned(),
            Label::First => "first".to_owned(),
            Label::None => "none".to_owned(),
            Label::Named(name) => name,
        }
    }
}

/// How a file of training data is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// How it is written.
    pub format: Format,
    /// Which column is the label, in CSV.
    pub label: Label,
    /// Names of columns with categories, in CSV: each of their values becomes a feature that is 0 or 1.
    pub categorical: Vec<String>,
    /// Whether labels are names of classes, rather than numbers to predict.
    pub classify: bool,
}

/// Which labels are wanted of a file whose columns are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// None; a label that is there is passed over.
    Nothing,
    /// Numbers, in the column that is given, or else in that of the training.
    Numbers(Option<&'a Label>),
    /// Names of classes, of which all are known: their places in this list.
    Classes(Option<&'a Label>, &'a [String]),
}

/// A data set with the names of its columns and classes.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Features and labels; a class is its place in `classes`.
    pub data: Data,
    /// Names of the classes, in order; empty if labels are numbers to predict, or missing.
    pub classes: Vec<String>,
    /// What the columns are.
    pub schema: Schema,
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

/// The text of a data file, from its bytes: [`read`] and [`read_as`] take that. Parquet and Arrow become CSV.
///
/// # Errors
/// It is not text, or no file of its format; or this program was built without what reads it.
pub fn text_of(file: &str, format: Format, bytes: Vec<u8>) -> Result<String, InputError> {
    let text = match format {
        Format::Csv | Format::Libsvm => {
            String::from_utf8(bytes).map_err(|error| (1, format!("is not UTF-8: {}", error.utf8_error())))
        }
        #[cfg(feature = "columnar")]
        Format::Parquet | Format::Arrow => columnar::text(format, bytes),
        #[cfg(not(feature = "columnar"))]
        Format::Parquet | Format::Arrow => {
            let rule = "Parquet and Arrow are read by programs that were built with the Cargo feature 'columnar'";
            Err((1, rule.to_owned()))
        }
    };
    text.map_err(|(line, rule)| InputError { file: file.to_owned(), line, rule })
}

/// Reads a file of training data from its `text`; `file` is its name in errors.
///
/// # Errors
/// The first line that breaks a rule.
pub fn read(file: &str, text: &str, reading: &Reading) -> Result<Input, InputError> {
    let result = match reading.format {
        Format::Csv | Format::Parquet | Format::Arrow => csv::read(text, reading),
        Format::Libsvm if !reading.categorical.is_empty() => {
            Err((1, "`categorical` is for CSV: the columns of LIBSVM are numbers".to_owned()))
        }
        Format::Libsvm => libsvm::read(text, reading.classify),
    };
    result.map_err(|(line, rule)| InputError { file: file.to_owned(), line, rule })
}

/// Reads a file with the columns of a model: to predict with it, or to evaluate it.
///
/// A line of names decides which column is which feature. Without one, and if the model was trained without one,
/// columns count in their order.
///
/// # Errors
/// The first line that breaks a rule; one with other columns than the model's does.
pub fn read_as(
    file: &str,
    text: &str,
    format: Format,
    schema: &Schema,
    wanted: Wanted<'_>,
) -> Result<Input, InputError> {
    let result = match format {
        Format::Csv | Format::Parquet | Format::Arrow => csv::read_as(text, schema, wanted),
        Format::Libsvm => libsvm::read_as(text, schema, wanted),
    };
    result.map_err(|(line, rule)| InputError { file: file.to_owned(), line, rule })
}

/// A line and the rule that it breaks.
type Breach = (u64, String);

/// A finite number.
fn number(text: &str, line: u64, what: &str) -> Result<f64, Breach> {
    match text.trim() {
        "" => Err((line, format!("{what} is missing: fill it in, or leave the row out"))),
        text => match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err((line, format!("{what} is '{}', and must be a finite number", shortened(text)))),
        },
    }
}

/// The beginning of a text that may be long.
fn shortened(text: &str) -> String {
    if text.chars().count() <= 40 { text.to_owned() } else { text.chars().take(40).chain(['…']).collect() }
}

#[cfg(test)]
mod tests;
