//! Reads LIBSVM files: a label, then `column:value` for each nonzero feature; columns count from 1 and ascend.

use super::labels::Labels;
use super::{Breach, CELLS_MAX, COLUMNS_MAX, Input, Label, LabelsToRead, Schema, number, shortened};
use crate::learn::{Data, Sparse};

/// Reads training data.
pub(super) fn read(text: &str, classify: bool) -> Result<Input, Breach> {
    rows(text, Some(Labels::new(classify)), None)
}

/// Reads rows for a model with these columns.
pub(super) fn read_as(text: &str, schema: &Schema, wanted: LabelsToRead<'_>) -> Result<Input, Breach> {
    if !schema.columns.is_empty() {
        return Err((1, "is read as LIBSVM, and the model was trained with the columns of a CSV file".to_owned()));
    }
    let labels = match wanted {
        LabelsToRead::Nothing => None,
        LabelsToRead::Numbers(_) => Some(Labels::new(false)),
        LabelsToRead::Classes(_, classes) => Some(Labels::known(classes)),
    };
    rows(text, labels, Some(schema.width))
}

/// Reads the rows, of at most `width` columns. Without `labels` the label of each line is ignored.
fn rows(text: &str, mut labels: Option<Labels>, width: Option<usize>) -> Result<Input, Breach> {
    let mut rows = Sparse::new(width.unwrap_or(0));
    let (mut cells, mut any) = (0, false);
    for (line, text) in (1..).zip(text.lines()) {
        // The rest of a line after # is a comment.
        let mut words = text.split('#').next().unwrap_or_default().split_whitespace();
        let Some(label) = words.next() else { continue };
        if let Some(labels) = &mut labels {
            labels.push(label, line)?;
        }
        let row = words.map(|word| pair(word, line)).collect::<Result<Vec<_>, _>>()?;
        if let Some(pair) = row.windows(2).find(|w| w[0].0 >= w[1].0) {
            return Err((
                line,
                format!("column {} comes after column {}; columns must rise", pair[1].0 + 1, pair[0].0 + 1),
            ));
        }
        if let Some((width, (last, _))) = width.zip(row.last())
            && *last as usize >= width
        {
            return Err((line, format!("has a column {}, and the model was trained with {width}", last + 1)));
        }
        cells += row.len();
        if cells > CELLS_MAX {
            return Err((line, format!("there are more than {CELLS_MAX} numbers")));
        }
        rows.push(row);
        any = true;
    }
    if !any {
        return Err((1, "there are no rows".to_owned()));
    }
    let (labels, classes) = labels.unwrap_or_default().finish()?;
    let data = Data::sparse(rows, labels);
    let schema = Schema::unnamed(data.width(), Label::First);
    Ok(Input { data, classes, schema })
}

/// Parses `column:value`, and returns the column counted from 0.
fn pair(word: &str, line: u64) -> Result<(u32, f64), Breach> {
    let Some((column, value)) = word.split_once(':') else {
        return Err((line, format!("'{}' is not column:value", shortened(word))));
    };
    let column = column.parse::<u32>().ok().filter(|c| (1..=COLUMNS_MAX).contains(c));
    let Some(column) = column else {
        return Err((line, format!("'{}': columns are between 1 and {COLUMNS_MAX}", shortened(word))));
    };
    Ok((column - 1, number(value, line, &format!("column {column}"))?))
}
