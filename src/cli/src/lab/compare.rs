//! `tepui lab compare A B`: reports significant differences between two directories of results, and shows the numbers.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::lab::campaign::{Results, read_results};
use ::lab::report::{Compared, Pair, changed_lines, comparison_page, in_unit, summary};
use anyhow::{Context, Result, bail};

use crate::read::table::table;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A directory that `tepui lab run` has written
    first: PathBuf,
    /// Another such directory, to compare with it
    second: PathBuf,
    /// Show all numbers, not only those that differ
    #[arg(long)]
    all: bool,
    /// Also write the summary and the tables as an HTML page, in a file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

/// Maximum number of differing lines of the scenarios that are shown.
const LINES: usize = 40;

pub fn run(args: &Args) -> Result<ExitCode> {
    let ((a, own), (b, others)) = (results(&args.first)?, results(&args.second)?);
    let names = (name(&args.first), name(&args.second));
    let mut points: Vec<Compared> = Vec::new();
    for (values, first) in a {
        // A scenario without a sweep is compared with the other's only point, whatever that varies.
        let same =
            |(other, _): &&(Vec<(String, String)>, Vec<_>)| *other == values || (values.is_empty() && b.len() == 1);
        let Some((_, second)) = b.iter().find(same).filter(|(_, second)| !first.is_empty() && !second.is_empty())
        else {
            continue;
        };
        points.push(Compared::new(values, (&names.0, &names.1), &first, second));
    }
    if points.is_empty() {
        bail!("the two sweeps have no point in common");
    }
    let sentences = summary((&names.0, &names.1), &points);
    if !args.all {
        points.iter_mut().for_each(Compared::keep_differences);
    }
    if args.json {
        return crate::read::print(&serde_json::to_string_pretty(&points)?);
    }
    let lines: Vec<_> = changed_lines(&own, &others).into_iter().filter(|(_, line)| !line.is_empty()).collect();
    if let Some(file) = &args.html {
        std::fs::write(file, comparison_page((&names.0, &names.1), &lines, &points))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    let mut text: String = sentences.iter().map(|sentence| format!("{sentence}\n")).collect();
    if !lines.is_empty() {
        text += &format!("\nThe scenarios differ (- {}, + {}):\n", names.0, names.1);
    }
    for (second, line) in lines.iter().take(LINES) {
        text += &format!("{} {line}\n", if *second { '+' } else { '-' });
    }
    if lines.len() > LINES {
        text += &format!("and {} more lines\n", lines.len() - LINES);
    }
    for point in points.iter().filter(|point| !point.numbers.is_empty()) {
        text += &format!("\n{}\n", point.title());
        let (first, second) = (format!(">{}", names.0), format!(">{}", names.1));
        let mut table = table(&["METRIC", &first, &second, ">DIFFERENCE", ">95 % INTERVAL", ""]);
        point.numbers.iter().map(row).for_each(|row| {
            table.add_row(row);
        });
        text += &format!("{}\n", table.trim_fmt());
    }
    crate::read::print(text.trim_start())
}

fn name(directory: &Path) -> String {
    directory.file_name().map_or_else(|| directory.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn results(directory: &Path) -> Result<(Results, String)> {
    if !directory.join("scenario.toml").exists() {
        bail!("{} has no results; run: tepui lab run SCENARIO --out {0}", directory.display());
    }
    let (results, text) = read_results(directory)?;
    if results.iter().all(|(_, outcomes)| outcomes.is_empty()) {
        bail!("{} has no finished runs; run: tepui lab run SCENARIO --out {0}", directory.display());
    }
    Ok((results, text))
}

fn row(pair: &Pair) -> [String; 6] {
    let numbers = [in_unit(&pair.first), in_unit(&pair.second), pair.changed(), pair.interval()];
    let [first, second, difference, interval] = numbers;
    [pair.title(), first, second, difference, interval, pair.chance().to_owned()]
}
