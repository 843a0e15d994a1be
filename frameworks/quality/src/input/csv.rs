//! Reads CSV files: one row in a line, all rows of the same length.

use ::csv::{Position, Reader, ReaderBuilder, StringRecord};
use ndarray::Array2;

use super::columns::{Categories, some_of};
use super::labels::Labels;
use super::{Breach, CELLS_MAX, Column, Input, Label, LabelsToRead, Reading, Schema, is_missing, number};
use crate::learn::Data;

/// The role of a column of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Column with the features of this index.
    Feature(usize),
    Label,
    /// Column that is ignored.
    Other,
}

/// The role of each column of a file, and the features that result.
struct Plan {
    roles: Vec<Role>,
    /// Name and categories of each column of features.
    features: Vec<(Option<String>, Categories)>,
    label: Label,
}

/// Reads training data. A first line without any number is a line of names. If `reading` refers to columns by name, the
/// first line is always one.
pub(super) fn read(text: &str, reading: &Reading) -> Result<Input, Breach> {
    let mut reader = reader(text);
    let first = first(&mut reader)?;
    let by_name = matches!(reading.label, Label::Named(_)) || !reading.categorical.is_empty();
    let names = (by_name || has_no_number(&first)).then(|| names(&first)).transpose()?;
    let plan = Plan::of_training(reading, first.len(), names.as_deref(), line(&first))?;
    let labels = Labels::new(reading.classify);
    rows(reader, names.is_none().then_some(first), plan, labels)
}

/// Reads rows for a model with these columns.
pub(super) fn read_as(text: &str, schema: &Schema, wanted: LabelsToRead<'_>) -> Result<Input, Breach> {
    let mut reader = reader(text);
    let first = first(&mut reader)?;
    let known = |name: &str| schema.columns.iter().any(|c| c.name.as_deref() == Some(name));
    let is_named = has_no_number(&first) || schema.is_named() && first.iter().any(|text| known(text.trim()));
    let names = is_named.then(|| names(&first)).transpose()?;
    let (label, labels) = match wanted {
        LabelsToRead::Nothing => (None, Labels::new(false)),
        LabelsToRead::Numbers(label) => (Some(label.unwrap_or(&schema.label)), Labels::new(false)),
        LabelsToRead::Classes(label, classes) => (Some(label.unwrap_or(&schema.label)), Labels::known(classes)),
    };
    let plan = Plan::of_schema(schema, first.len(), names.as_deref(), label, line(&first))?;
    rows(reader, names.is_none().then_some(first), plan, labels)
}

fn reader(text: &str) -> Reader<&[u8]> {
    ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes())
}

fn line(record: &StringRecord) -> u64 {
    record.position().map_or(0, Position::line)
}

fn not_csv(error: &::csv::Error) -> Breach {
    (error.position().map_or(0, Position::line), "is not CSV".to_owned())
}

fn first(reader: &mut Reader<&[u8]>) -> Result<StringRecord, Breach> {
    let mut first = StringRecord::new();
    match reader.read_record(&mut first) {
        Ok(true) => Ok(first),
        Ok(false) => Err((1, "there are no rows".to_owned())),
        Err(error) => Err(not_csv(&error)),
    }
}

/// Returns whether the first line has no number. A single cell that is not a number does not make a line of names: it
/// is rejected as a number.
fn has_no_number(first: &StringRecord) -> bool {
    first.iter().all(|text| text.trim().parse::<f64>().is_err())
}

/// Returns the names of the columns, which must differ.
fn names(first: &StringRecord) -> Result<Vec<String>, Breach> {
    let names: Vec<String> = first.iter().map(|n| n.trim().trim_start_matches('\u{feff}').to_owned()).collect();
    let twice = (1..names.len()).find(|place| names[..*place].contains(&names[*place]));
    match twice {
        Some(place) => Err((line(first), format!("two columns have the name '{}'", names[place]))),
        None => Ok(names),
    }
}

fn place(names: &[String], name: &str, line: u64) -> Result<usize, Breach> {
    let unknown = || (line, format!("there is no column '{name}'; the columns are {}", some_of(names)));
    names.iter().position(|n| n == name).ok_or_else(unknown)
}

impl Plan {
    fn of_training(reading: &Reading, width: usize, names: Option<&[String]>, line: u64) -> Result<Plan, Breach> {
        let at = match (&reading.label, names) {
            (Label::None, _) => None,
            (Label::First, _) => Some(0),
            (Label::Last, _) => width.checked_sub(1),
            (Label::Named(name), names) => Some(place(names.unwrap_or_default(), name, line)?),
        };
        for name in &reading.categorical {
            let place = place(names.unwrap_or_default(), name, line)?;
            if Some(place) == at {
                return Err((line, format!("column '{name}' is the label, and cannot be `categorical`")));
            }
        }
        let mut plan = Plan { roles: Vec::with_capacity(width), features: Vec::new(), label: reading.label.clone() };
        for column in 0..width {
            if Some(column) == at {
                plan.roles.push(Role::Label);
                continue;
            }
            let name = names.map(|names| names[column].clone());
            let is_category = name.as_ref().is_some_and(|name| reading.categorical.contains(name));
            let categories =
                if is_category { Categories::Collected(std::collections::BTreeMap::new()) } else { Categories::None };
            plan.roles.push(Role::Feature(plan.features.len()));
            plan.features.push((name, categories));
        }
        // The name is more specific than the position, for files with another order of columns.
        if let (Some(at), Some(names)) = (at, names) {
            plan.label = Label::Named(names[at].clone());
        }
        if plan.features.is_empty() {
            return Err((line, "has no features: a row is numbers between commas".to_owned()));
        }
        Ok(plan)
    }

    fn of_schema(
        schema: &Schema,
        width: usize,
        names: Option<&[String]>,
        label: Option<&Label>,
        line: u64,
    ) -> Result<Plan, Breach> {
        let count = schema.count();
        let feature = |column: usize| {
            let column = schema.columns.get(column).cloned().unwrap_or_default();
            let categories = if column.values.is_empty() { Categories::None } else { Categories::Known(column.values) };
            (column.name, categories)
        };
        let features = (0..count).map(feature).collect();
        let label = label.unwrap_or(&Label::None).clone();
        let roles = match names {
            Some(names) if schema.is_named() => by_name(schema, names, &label, line)?,
            _ => {
                let at = match &label {
                    Label::None => None,
                    Label::First => Some(0),
                    Label::Last => width.checked_sub(1),
                    // The file has no names, so the training's name of the label does not help: the label is the last
                    // column.
                    Label::Named(_) if names.is_none() => width.checked_sub(1),
                    Label::Named(name) => Some(place(names.unwrap_or_default(), name, line)?),
                };
                if width != count + usize::from(at.is_some()) {
                    let with = if at.is_some() { " and the label" } else { "" };
                    let rule = format!("has {width} columns, and the model was trained with {count}{with}");
                    return Err((line, rule));
                }
                let before = |column: usize| column - usize::from(at.is_some_and(|at| at < column));
                let role = |column| if Some(column) == at { Role::Label } else { Role::Feature(before(column)) };
                (0..width).map(role).collect()
            }
        };
        Ok(Plan { roles, features, label })
    }

    /// Formats a column for a message.
    fn name(&self, column: usize, feature: usize) -> String {
        match &self.features[feature].0 {
            Some(name) => format!("column {} ('{name}')", column + 1),
            None => format!("column {}", column + 1),
        }
    }
}

/// Finds each column of the model by its name. Columns that the model does not know are rejected.
fn by_name(schema: &Schema, names: &[String], label: &Label, line: u64) -> Result<Vec<Role>, Breach> {
    let at = match label {
        Label::None => None,
        Label::First => Some(0),
        Label::Last => names.len().checked_sub(1),
        Label::Named(name) => Some(place(names, name, line)?),
    };
    let feature = |name: &String| schema.columns.iter().position(|c| c.name.as_ref() == Some(name));
    let missing = schema.columns.iter().filter_map(|c| c.name.as_ref()).find(|name| !names.contains(name));
    if let Some(name) = missing {
        let rule = format!("there is no column '{name}', with which the model was trained; the columns are");
        return Err((line, format!("{rule} {}", some_of(names))));
    }
    let role = |(column, name): (usize, &String)| match feature(name) {
        _ if Some(column) == at => Ok(Role::Label),
        Some(feature) => Ok(Role::Feature(feature)),
        // The label of the training, in a file whose labels are not requested.
        None if at.is_none() && schema.label == Label::Named(name.clone()) => Ok(Role::Other),
        None => Err((line, format!("column {} ('{name}') is not one of the model's", column + 1))),
    };
    names.iter().enumerate().map(role).collect()
}

/// Reads all rows: `first`, if it is a row, and the rest of the file.
fn rows(
    mut reader: Reader<&[u8]>,
    first: Option<StringRecord>,
    mut plan: Plan,
    mut labels: Labels,
) -> Result<Input, Breach> {
    let width = plan.roles.len();
    let (mut values, mut count) = (Vec::new(), 0_usize);
    for record in first.map(Ok).into_iter().chain(reader.records()) {
        let record = record.map_err(|error| not_csv(&error))?;
        let line = line(&record);
        if record.len() != width {
            return Err((line, format!("has {} columns, and the first line has {width}", record.len())));
        }
        let start = values.len();
        values.resize(start + plan.features.len(), 0.0);
        for (column, text) in record.iter().enumerate() {
            match plan.roles[column] {
                Role::Feature(feature) => values[start + feature] = plan.value(column, feature, text, line)?,
                Role::Label => labels.push(text, line)?,
                Role::Other => {}
            }
        }
        if values.len() > CELLS_MAX {
            return Err((line, format!("there are more than {CELLS_MAX} numbers")));
        }
        count += 1;
    }
    if count == 0 {
        return Err((1, "there are no rows".to_owned()));
    }
    finish(values, count, plan, labels)
}

impl Plan {
    fn value(&mut self, column: usize, feature: usize, text: &str, line: u64) -> Result<f64, Breach> {
        let name = || self.name(column, feature);
        if !matches!(self.features[feature].1, Categories::None) {
            let name = name();
            return self.features[feature].1.place(text, line, &name);
        }
        match text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => number(text, line, &name()).map_err(|(line, rule)| match &self.features[feature].0 {
                // Letters in a column with a name are most likely a category.
                Some(name) if text.contains(char::is_alphabetic) && !is_missing(text) => {
                    (line, format!("{rule}; for categories, say categorical = [\"{name}\"]"))
                }
                _ => (line, rule),
            }),
        }
    }
}

/// Converts categories to features, and builds the matrix.
fn finish(values: Vec<f64>, count: usize, plan: Plan, labels: Labels) -> Result<Input, Breach> {
    let (mut columns, mut orders) = (Vec::new(), Vec::new());
    for (name, categories) in plan.features {
        let (values, order) = categories.finish();
        columns.push(Column { name, values });
        orders.push(order);
    }
    let width: usize = columns.iter().map(|c| c.values.len().max(1)).sum();
    if width.saturating_mul(count) > CELLS_MAX {
        return Err((1, format!("with a feature for each category there are more than {CELLS_MAX} numbers")));
    }
    let values = if width == columns.len() && columns.iter().all(|c| c.values.is_empty()) {
        values
    } else {
        let mut wide = Vec::with_capacity(width * count);
        for row in values.chunks_exact(columns.len()) {
            for (value, (column, order)) in row.iter().zip(columns.iter().zip(&orders)) {
                let start = wide.len();
                if column.values.is_empty() {
                    wide.push(*value);
                } else {
                    wide.resize(start + column.values.len(), 0.0);
                    wide[start + order[*value as usize]] = 1.0;
                }
            }
        }
        wide
    };
    let matrix = Array2::from_shape_vec((count, width), values).map_err(|error| (1, error.to_string()))?;
    let (labels, classes) = labels.finish()?;
    if columns.iter().all(|c| c.name.is_none()) {
        columns.clear();
    }
    let schema = Schema { width, columns, label: plan.label };
    Ok(Input { data: Data::dense(matrix, labels), classes, schema })
}
