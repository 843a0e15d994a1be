//! Converts Parquet and Arrow files to the text of a CSV file: a line of names, and a line for each row. So the rules
//! of CSV hold for them, and errors name rows by these lines.

use std::io::Cursor;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
use arrow_cast::cast;
use arrow_schema::DataType;

use super::{Breach, CELLS_MAX, Format};

/// Converts a file to CSV text. A [`Breach`] names the line that the row has in this text.
pub(super) fn text(format: Format, bytes: Vec<u8>) -> Result<String, Breach> {
    let unreadable = |error: &dyn std::fmt::Display| (1, format!("cannot be read: {error}"));
    let reader: Box<dyn RecordBatchReader> = if format == Format::Parquet {
        let builder = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes));
        Box::new(builder.and_then(|builder| builder.build()).map_err(|error| unreadable(&error))?)
    } else {
        let reader = arrow_ipc::reader::FileReader::try_new(Cursor::new(bytes), None);
        Box::new(reader.map_err(|error| unreadable(&error))?)
    };
    let mut writer = csv::Writer::from_writer(Vec::new());
    let written = |error: csv::Error| (1, format!("cannot be read: {error}"));
    writer.write_record(reader.schema().fields().iter().map(|field| field.name())).map_err(written)?;
    let mut rows = 0_u64;
    for batch in reader {
        let batch = batch.map_err(|error| (rows + 2, format!("cannot be read: {error}")))?;
        if (rows as usize + batch.num_rows()).saturating_mul(batch.num_columns()) > CELLS_MAX {
            return Err((rows + 2, format!("there are more than {CELLS_MAX} numbers")));
        }
        let columns = columns(&batch).map_err(|rule| (1, rule))?;
        for row in 0..batch.num_rows() {
            writer.write_record(columns.iter().map(|column| value(column, row))).map_err(written)?;
        }
        rows += batch.num_rows() as u64;
    }
    let bytes = writer.into_inner().map_err(|error| unreadable(error.error()))?;
    String::from_utf8(bytes).map_err(|error| unreadable(&error))
}

/// Converts the columns of a batch to numbers or texts.
fn columns(batch: &RecordBatch) -> Result<Vec<ArrayRef>, String> {
    let schema = batch.schema();
    let column = |(column, array): (usize, &ArrayRef)| {
        let of = match array.data_type() {
            DataType::Dictionary(_, values) => (**values).clone(),
            other => other.clone(),
        };
        let wanted = match of {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
            DataType::Boolean | DataType::Null => DataType::Float64,
            DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) => DataType::Float64,
            number if number.is_numeric() => DataType::Float64,
            other => {
                let name = schema.field(column).name();
                return Err(format!(
                    "column {} ('{name}') has the type {other}: numbers, truth values and texts are read",
                    column + 1
                ));
            }
        };
        cast(array, &wanted).map_err(|error| format!("column {} cannot be read: {error}", column + 1))
    };
    batch.columns().iter().enumerate().map(column).collect()
}

/// Returns a value as CSV has it; a missing value is empty.
fn value(column: &ArrayRef, row: usize) -> String {
    if column.is_null(row) {
        return String::new();
    }
    match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().value(row).to_owned(),
        _ => column.as_primitive::<Float64Type>().value(row).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{BooleanArray, Float32Array, Int64Array, StringArray, TimestampSecondArray};

    use super::*;
    use crate::input::{Label, Reading, read, text_of};

    fn batch(second: ArrayRef) -> RecordBatch {
        let length: ArrayRef = Arc::new(Float32Array::from(vec![Some(1.5), None, Some(-2.0)]));
        let kind: ArrayRef = Arc::new(StringArray::from(vec!["a, b", "c", "c"]));
        let fresh: ArrayRef = Arc::new(BooleanArray::from(vec![true, false, true]));
        RecordBatch::try_from_iter([("length", length), ("count", second), ("fresh", fresh), ("kind", kind)]).unwrap()
    }

    fn parquet(batch: &RecordBatch) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
        writer.write(batch).unwrap();
        writer.close().unwrap();
        bytes
    }

    fn arrow(batch: &RecordBatch) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = arrow_ipc::writer::FileWriter::try_new(&mut bytes, &batch.schema()).unwrap();
        writer.write(batch).unwrap();
        writer.finish().unwrap();
        drop(writer);
        bytes
    }

    #[test]
    fn both_forms_are_read_as_csv_is() {
        let batch = batch(Arc::new(Int64Array::from(vec![7, 8, 9])));
        let wanted = "length,count,fresh,kind\n1.5,7,1,\"a, b\"\n,8,0,c\n-2,9,1,c\n";
        for (name, bytes) in [("x.parquet", parquet(&batch)), ("x.arrow", arrow(&batch)), ("x.feather", arrow(&batch))]
        {
            let format = Format::of(name);
            let text = text_of(name, format, bytes.clone()).unwrap();
            assert_eq!(text, wanted);
            let reading = Reading { format, label: Label::Last, categorical: Vec::new(), classify: true };
            let said = read(name, &text, &reading).unwrap_err().to_string();
            assert!(said.starts_with(&format!("{name}:3: column 1 ('length') is missing")), "{said}");
            let cut = text_of(name, format, bytes[..bytes.len() / 2].to_vec()).unwrap_err().to_string();
            assert!(cut.starts_with(&format!("{name}:1: cannot be read: ")), "{cut}");
        }
    }

    #[test]
    fn a_column_of_another_type_is_refused() {
        let batch = batch(Arc::new(TimestampSecondArray::from(vec![1, 2, 3])));
        let said = text_of("x.parquet", Format::Parquet, parquet(&batch)).unwrap_err().to_string();
        assert!(said.starts_with("x.parquet:1: column 2 ('count') has the type Timestamp(s"), "{said}");
    }
}
