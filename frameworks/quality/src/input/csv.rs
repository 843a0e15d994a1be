//! CSV files: one row in a line, all rows of the same length.

use ndarray::Array2;

use super::labels::Labels;
use super::{Breach, CELLS_MAX, Input, Label, number};
use crate::learn::Data;

/// Reads rows; a first line in which nothing is a number is a line of names.
pub(super) fn read(text: &str, label: Label, classify: bool) -> Result<Input, Breach> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let mut values = Vec::new();
    let mut labels = Labels::new(classify);
    let (mut width, mut rows) = (0, 0_usize);
    for record in reader.records() {
        let record = record.map_err(|error| {
            let line = error.position().map_or(0, csv::Position::line);
            (line, "is not CSV".to_owned())
        })?;
        let line = record.position().map_or(0, csv::Position::line);
        let first = rows == 0 && width == 0;
        if first {
            width = record.len();
        }
        let features = match label {
            Label::None => 0..width,
            Label::First => 1..width,
            Label::Last => 0..width.saturating_sub(1),
        };
        if features.is_empty() {
            return Err((line, "has no features: a row is numbers between commas".to_owned()));
        }
        // One cell that is no number makes no names of the others: it is refused below.
        if first && record.iter().all(|text| text.trim().parse::<f64>().is_err()) {
            continue;
        }
        if record.len() != width {
            return Err((line, format!("has {} columns, and the first line has {width}", record.len())));
        }
        for column in features {
            let text = record.get(column).unwrap_or_default();
            values.push(number(text, line, &format!("column {}", column + 1))?);
        }
        if values.len() > CELLS_MAX {
            return Err((line, format!("there are more than {CELLS_MAX} numbers")));
        }
        match label {
            Label::None => {}
            Label::First => labels.push(record.get(0).unwrap_or_default(), line)?,
            Label::Last => labels.push(record.get(width - 1).unwrap_or_default(), line)?,
        }
        rows += 1;
    }
    if rows == 0 {
        return Err((1, "there are no rows".to_owned()));
    }
    let columns = values.len() / rows;
    let matrix = Array2::from_shape_vec((rows, columns), values).map_err(|error| (1, error.to_string()))?;
    let (labels, classes) = labels.finish()?;
    Ok(Input { data: Data::dense(matrix, labels), classes })
}
