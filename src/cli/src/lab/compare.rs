//! `tepui lab compare A B`: shows the differences between two directories of results, and whether they are significant.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::lab::campaign::{Results, read_results};
use ::lab::report::{Pair, changed_lines, comparison_page, number, pairs, with_interval};
use anyhow::{Result, bail};

use crate::read::table::table;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A directory that `tepui lab run` has written
    first: PathBuf,
    /// Another one
    second: PathBuf,
    /// Show all numbers, not only those that differ
    #[arg(long)]
    all: bool,
    /// Also write the tables as an HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

/// A point that both have run.
#[derive(serde::Serialize)]
struct Compared {
    /// The swept values; none if nothing was swept.
    values: Vec<(String, String)>,
    /// Every run is equal to the byte.
    equal: bool,
    numbers: Vec<Pair>,
}

/// Lines of the scenario that are shown.
const LINES: usize = 40;

pub fn run(args: &Args) -> Result<ExitCode> {
    let ((a, own), (b, others)) = (results(&args.first)?, results(&args.second)?);
    let mut points = Vec::new();
    for (values, first) in a {
        // A scenario with one point each is the same point, whatever it is.
        let same =
            |(other, _): &&(Vec<(String, String)>, Vec<_>)| *other == values || (values.is_empty() && b.len() == 1);
        let Some((_, second)) = b.iter().find(same).filter(|(_, second)| !first.is_empty() && !second.is_empty())
        else {
            continue;
        };
        let equal = first.len() == second.len() && first.iter().zip(second).all(|(a, b)| a.digest == b.digest);
        let mut numbers = pairs(&first, second);
        numbers.retain(|pair| args.all || pair.differs());
        points.push(Compared { values, equal, numbers });
    }
    if points.is_empty() {
        bail!("no point of the one sweep is a point of the other, too: there is nothing to compare");
    }
    if args.json {
        return crate::read::print(&serde_json::to_string_pretty(&points)?);
    }
    if let Some(file) = &args.html {
        let tables: Vec<_> = points.iter().map(|point| (title(point), rows(point))).collect();
        std::fs::write(file, comparison_page(&name(&args.first), &name(&args.second), &tables))?;
    }
    let mut text = String::new();
    for (second, line) in changed_lines(&own, &others).into_iter().filter(|(_, line)| !line.is_empty()).take(LINES) {
        text += &format!("{} {line}\n", if second { '+' } else { '-' });
    }
    for point in &points {
        text += &format!("\n{}\n", title(point));
        if point.equal {
            text += "All runs are equal to the byte.\n";
        }
        let (first, second) = (format!(">{}", name(&args.first)), format!(">{}", name(&args.second)));
        let mut table = table(&["NUMBER", &first, &second, ">CHANGE", ""]);
        rows(point).into_iter().for_each(|row| {
            table.add_row(row);
        });
        text += &format!("{}\n", table.trim_fmt());
    }
    crate::read::print(text.trim_start())
}

fn title(point: &Compared) -> String {
    let values: Vec<String> = point.values.iter().map(|(field, value)| format!("{field} = {value}")).collect();
    values.join(", ")
}

fn name(directory: &Path) -> String {
    directory.file_name().map_or_else(|| directory.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn results(directory: &Path) -> Result<(Results, String)> {
    if !directory.join("scenario.toml").exists() {
        bail!("{} has no results; make some with: tepui lab run SCENARIO --out {0}", directory.display());
    }
    let (results, text) = read_results(directory)?;
    if results.iter().all(|(_, outcomes)| outcomes.is_empty()) {
        bail!("{} has no finished runs; make some with: tepui lab run SCENARIO --out {0}", directory.display());
    }
    Ok((results, text))
}

fn rows(point: &Compared) -> Vec<Vec<String>> {
    point.numbers.iter().map(row).collect()
}

fn row(pair: &Pair) -> Vec<String> {
    let change = match pair.change {
        Some(change) => format!("{:+.1} %", change * 100.0),
        None => number(pair.second.mean - pair.first.mean),
    };
    let chance = match (pair.clear, pair.repeated) {
        (_, false) => String::new(),
        (true, true) => "clear".to_owned(),
        (false, true) => "may be chance".to_owned(),
    };
    vec![pair.name.clone(), with_interval(&pair.first), with_interval(&pair.second), change, chance]
}
