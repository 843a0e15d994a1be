//! `tepui framework quality predict` and `evaluate`: applies a saved model to the rows of a file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use quality::evaluate::{Confusion, Errors, Evaluation};
use quality::input::{Format, Label, text_of};
use quality::service::SavedModel;

use crate::read::table::{percent, table};

/// Maximum number of classes for which the confusion matrix is printed as a table.
const SHOWN_MAX: usize = 20;

#[derive(Debug, clap::Args)]
pub(super) struct PredictArgs {
    /// A model, as the framework keeps it
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// CSV with the columns of the training, or LIBSVM; labels are ignored
    #[arg(value_name = "DATA")]
    data: PathBuf,
    /// Format of the data: csv, libsvm, parquet or arrow [default: by the file's name]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Print CSV: each prediction, and the probability of each class
    #[arg(long)]
    probabilities: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct EvaluateArgs {
    /// A model, as the framework keeps it
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// CSV with the columns of the training and the label, or LIBSVM
    #[arg(value_name = "DATA")]
    data: PathBuf,
    /// Format of the data: csv, libsvm, parquet or arrow [default: by the file's name]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Which column of a CSV file is the label: its name, last or first [default: that of the training]
    #[arg(long, value_name = "COLUMN")]
    label: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Returns the name, the format and the text of a data file. Its name decides about the format if none is given.
fn read(path: &Path, format: Option<Format>) -> Result<(String, Format, String)> {
    let name = path.display().to_string();
    let format = format.unwrap_or_else(|| Format::of(&name));
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
    let text = text_of(&name, format, bytes)?;
    Ok((name, format, text))
}

pub(super) fn predict(args: &PredictArgs) -> Result<ExitCode> {
    let model = SavedModel::read(&args.model)?;
    let (name, format, text) = read(&args.data, args.format)?;
    let input = model.rows(&name, format, &text)?;
    if args.probabilities {
        let titles = model.classes.iter().map(|class| format!("P({class})"));
        let mut lines = vec![csv_line(std::iter::once("prediction".to_owned()).chain(titles))];
        for row in input.data.rows() {
            let probabilities = model.probabilities(&row)?.into_iter().map(|p| format!("{p:.6}"));
            lines.push(csv_line(std::iter::once(model.predict(&row)).chain(probabilities)));
        }
        crate::read::print(&lines.join("\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let lines: Vec<String> = input.data.rows().map(|row| model.predict(&row)).collect();
    crate::read::print(&lines.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Formats values as a line of CSV. Values with commas, quotes or line breaks are quoted.
fn csv_line(values: impl Iterator<Item = String>) -> String {
    let quoted = |value: String| match value.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", value.replace('"', "\"\"")),
        false => value,
    };
    values.map(quoted).collect::<Vec<_>>().join(",")
}

pub(super) fn evaluate(args: &EvaluateArgs) -> Result<ExitCode> {
    let model = SavedModel::read(&args.model)?;
    let (name, format, text) = read(&args.data, args.format)?;
    let label = args.label.clone().map(Label::from);
    let found = model.evaluate(&name, format, &text, label.as_ref())?;
    let text = match &found {
        found if args.json => serde_json::to_string_pretty(found)?,
        Evaluation::Classes(confusion) => of_classes(confusion),
        Evaluation::Numbers(errors) => of_numbers(errors),
    };
    crate::read::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn of_numbers(errors: &Errors) -> String {
    let Errors { rows, root_mean_squared_error, mean_absolute_error, r_squared } = errors;
    let explained = r_squared.map_or_else(|| "-".to_owned(), |r| format!("{r:.5}"));
    format!(
        "{rows} rows: root mean squared error {root_mean_squared_error:.5}, mean absolute error \
         {mean_absolute_error:.5}, R squared {explained}"
    )
}

fn of_classes(found: &Confusion) -> String {
    let or_dash = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), percent);
    let mut measures = table(&["CLASS", ">ROWS", ">PRECISION", ">RECALL"]);
    for class in &found.classes {
        let (name, rows) = (class.class.clone(), class.rows.to_string());
        measures.add_row(vec![name, rows, or_dash(class.precision), or_dash(class.recall)]);
    }
    let head = format!("{} rows: accuracy {}", found.rows, percent(found.accuracy));
    let mut parts = vec![head, trimmed(&measures.to_string())];
    if found.classes.len() <= SHOWN_MAX {
        let titles: Vec<String> = found.classes.iter().map(|c| format!(">{}", c.class)).collect();
        let titles = std::iter::once("LABEL \\ PREDICTED").chain(titles.iter().map(String::as_str));
        let mut matrix = table(&titles.collect::<Vec<_>>());
        for (class, counts) in found.classes.iter().zip(&found.confusion) {
            matrix.add_row(std::iter::once(class.class.clone()).chain(counts.iter().map(u64::to_string)));
        }
        parts.push(trimmed(&matrix.to_string()));
    } else {
        parts.push(format!("the confusion matrix of more than {SHOWN_MAX} classes is in the answer of --json"));
    }
    parts.join("\n\n")
}

fn trimmed(text: &str) -> String {
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}
