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

/// Maximum number of numbers of a data set: 4 GB.
const CELLS_MAX: usize = 500_000_000;
/// Maximum number of features of sparse data.
const COLUMNS_MAX: u32 = 1_000_000;

/// Spellings of a missing value, besides an empty cell: those that pandas, R, SQL and Weka write.
const MISSING: [&str; 9] = ["?", "NA", "N/A", "n/a", "<NA>", "nan", "NaN", "null", "NULL"];

/// The format of a data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Numbers separated by commas, one row in a line, with or without a line of names.
    Csv,
    /// Lines of `label column:value column:value`, with columns counted from 1.
    Libsvm,
    /// Apache Parquet, if built with the feature `columnar`.
    Parquet,
    /// Apache Arrow files, such as Feather 2, if built with the feature `columnar`.
    Arrow,
}

impl Format {
    /// Returns the format of a file by its extension: `.csv`, `.parquet`, `.arrow` or `.feather`; all other files are
    /// LIBSVM.
    pub fn of(path: &str) -> Format {
        match path.to_ascii_lowercase().rsplit_once('.').map(|(_, ending)| ending) {
            Some("csv") => Format::Csv,
            Some("parquet") => Format::Parquet,
            Some("arrow" | "feather") => Format::Arrow,
            _ => Format::Libsvm,
        }
    }
}

/// An error for a text that names no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a format: csv, libsvm, parquet or arrow")]
pub struct UnknownFormat(String);

impl std::str::FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Format, UnknownFormat> {
        match text {
            "csv" => Ok(Format::Csv),
            "libsvm" => Ok(Format::Libsvm),
            "parquet" => Ok(Format::Parquet),
            "arrow" => Ok(Format::Arrow),
            _ => Err(UnknownFormat(text.to_owned())),
        }
    }
}

/// The column of a CSV file that is the label: `last`, `first` or `none`, or a column's name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Label {
    /// The last column.
    #[default]
    Last,
    /// The first column.
    First,
    /// No column: all columns are features.
    None,
    /// The column of this name. The file must have a line of names.
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

/// The rules for reading a file of training data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Format of the file.
    pub format: Format,
    /// Column that is the label, in CSV.
    pub label: Label,
    /// Names of columns with categories, in CSV: each of their values becomes a feature that is 0 or 1.
    pub categorical: Vec<String>,
    /// Whether labels are names of classes, instead of numbers to predict.
    pub classify: bool,
}

/// The labels to read from a file whose columns are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelsToRead<'a> {
    /// No labels; a label column is ignored.
    Nothing,
    /// Numbers, from the given column, or else from that of the training.
    Numbers(Option<&'a Label>),
    /// Indices into this list of all classes, from the given column, or else from that of the training.
    Classes(Option<&'a Label>, &'a [String]),
}

/// A data set with the names of its columns and classes.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Features and labels; the label of a class is its index in `classes`.
    pub data: Data,
    /// Names of the classes, in order; empty if labels are numbers to predict, or missing.
    pub classes: Vec<String>,
    /// Names and categories of the columns.
    pub schema: Schema,
}

/// An error in a data file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {rule}")]
pub struct InputError {
    /// Name of the file.
    pub file: String,
    /// Number of the line, from 1.
    pub line: u64,
    /// Rule that the line breaks.
    pub rule: String,
}

/// Converts the bytes of a data file to the text that [`read`] and [`read_as`] take. Parquet and Arrow become CSV.
///
/// # Errors
/// The bytes are not text or not a file of this format, or the program was built without support for the format.
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
/// Returns the first line that breaks a rule.
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
/// A line of names decides which column is which feature. If the file has none, or the model was trained without one,
/// columns count in their order.
///
/// # Errors
/// Returns the first line that breaks a rule. A file with other columns than the model's breaks one.
pub fn read_as(
    file: &str,
    text: &str,
    format: Format,
    schema: &Schema,
    wanted: LabelsToRead<'_>,
) -> Result<Input, InputError> {
    let result = match format {
        Format::Csv | Format::Parquet | Format::Arrow => csv::read_as(text, schema, wanted),
        Format::Libsvm => libsvm::read_as(text, schema, wanted),
    };
    result.map_err(|(line, rule)| InputError { file: file.to_owned(), line, rule })
}

/// A line and the rule that it breaks.
type Breach = (u64, String);

/// Returns whether the text of a cell stands for a missing value.
fn is_missing(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || MISSING.contains(&text)
}

/// Parses a finite number.
fn number(text: &str, line: u64, what: &str) -> Result<f64, Breach> {
    if is_missing(text) {
        return Err((line, format!("{what} is missing{}: fill it in, or leave the row out", in_brackets(text))));
    }
    match text.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err((line, format!("{what} is '{}', and must be a finite number", shortened(text.trim())))),
    }
}

/// Formats the spelling of a missing value for a message; nothing for an empty cell.
fn in_brackets(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() { String::new() } else { format!(" ('{text}')") }
}

/// Returns the beginning of a text that may be long.
fn shortened(text: &str) -> String {
    if text.chars().count() <= 40 { text.to_owned() } else { text.chars().take(40).chain(['…']).collect() }
}

#[cfg(test)]
mod tests;
