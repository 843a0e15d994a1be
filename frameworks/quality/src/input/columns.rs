//! Columns of a data file: which of them are features, and the features that categories become.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Breach, Label, in_brackets, is_missing, shortened};

/// Maximum number of different values of a column with categories.
const CATEGORIES_MAX: usize = 1_000;

/// The columns with which a model was trained.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Schema {
    /// Number of features: one for each column of numbers, and one for each value of a column with categories.
    pub width: usize,
    /// Columns of features, in the order of the features; empty for columns of numbers without names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Column>,
    /// Column that was the label.
    pub label: Label,
}

/// A column of features in a data file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Column {
    /// Name of the column; `None` if the file had no line of names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Categories of the column in alphabetical order; empty for a column of numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

impl Schema {
    /// Creates the schema of data without names and categories.
    pub fn unnamed(width: usize, label: Label) -> Schema {
        Schema { width, columns: Vec::new(), label }
    }

    /// Returns whether all columns have names.
    pub(super) fn is_named(&self) -> bool {
        !self.columns.is_empty() && self.columns.iter().all(|c| c.name.is_some())
    }

    /// Returns the number of columns of a file that are features.
    pub(super) fn count(&self) -> usize {
        if self.columns.is_empty() { self.width } else { self.columns.len() }
    }
}

/// The values of a column with categories.
#[derive(Debug)]
pub(super) enum Categories {
    /// The column has numbers, and no categories.
    None,
    /// Categories that are collected, each with its index in the order of first occurrence.
    Collected(BTreeMap<String, usize>),
    /// Categories that are known from training.
    Known(Vec<String>),
}

impl Categories {
    /// Returns the index of a value: among the known categories, or among those collected so far.
    pub(super) fn place(&mut self, text: &str, line: u64, what: &str) -> Result<f64, Breach> {
        let text = text.trim();
        // A model that was trained by an earlier version may have such a category.
        let is_known = matches!(self, Categories::Known(values) if values.iter().any(|value| value == text));
        if !is_known && is_missing(text) {
            return Err((
                line,
                format!("{what} is missing{}: name a category, or leave the row out", in_brackets(text)),
            ));
        }
        let place = match self {
            Categories::None => None,
            Categories::Known(values) => values.binary_search_by(|v| v.as_str().cmp(text)).ok(),
            Categories::Collected(values) => {
                let next = values.len();
                if next >= CATEGORIES_MAX && !values.contains_key(text) {
                    let rule = format!("{what} has more than {CATEGORIES_MAX} different values; is it a category?");
                    return Err((line, rule));
                }
                Some(*values.entry(text.to_owned()).or_insert(next))
            }
        };
        place.map(|place| place as f64).ok_or_else(|| {
            let known = if let Categories::Known(values) = self { some_of(values) } else { String::new() };
            (line, format!("{what} is '{}', which is not in the training data: it has {known}", shortened(text)))
        })
    }

    /// Returns the categories in alphabetical order, and for each index that [`place`](Categories::place) returned its
    /// index in that order.
    pub(super) fn finish(self) -> (Vec<String>, Vec<usize>) {
        match self {
            Categories::None => (Vec::new(), Vec::new()),
            Categories::Known(values) => {
                let order = (0..values.len()).collect();
                (values, order)
            }
            Categories::Collected(values) => {
                let mut order = vec![0; values.len()];
                values.values().enumerate().for_each(|(place, first)| order[*first] = place);
                (values.into_keys().collect(), order)
            }
        }
    }
}

/// Formats the first names of a list, for messages.
pub(super) fn some_of(names: &[String]) -> String {
    let more = if names.len() > 8 { ", …" } else { "" };
    let shown: Vec<String> = names.iter().take(8).map(|n| format!("'{}'", shortened(n))).collect();
    format!("{}{more}", shown.join(", "))
}
