//! `tepui lab compare A B`: what is different between two folders of results, and whether chance could be why.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::lab::campaign::read_outcomes;
use ::lab::measure::Outcome;
use ::lab::report::{Spread, comparison_page, number, spreads, with_interval};
use anyhow::{Result, bail};

use crate::read::table::table;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A folder that `tepui lab run` has written
    first: PathBuf,
    /// Another one
    second: PathBuf,
    /// Show all numbers, not only those that differ
    #[arg(long)]
    all: bool,
    /// Also write the table as an HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// A number in both.
#[derive(serde::Serialize)]
struct Pair {
    name: String,
    first: Spread,
    second: Spread,
    /// The second's mean over the first's, minus 1; none if the first is 0.
    change: Option<f64>,
    /// The confidence intervals do not meet.
    clear: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let (a, b) = (outcomes(&args.first)?, outcomes(&args.second)?);
    let (first, second) = (spreads(&a), spreads(&b));
    let mut pairs = Vec::new();
    for one in first {
        let Some(other) = second.iter().find(|other| other.name == one.name).cloned() else { continue };
        let change = (one.mean != 0.0).then(|| other.mean / one.mean - 1.0);
        let clear = (other.mean - one.mean).abs() > one.half + other.half;
        pairs.push(Pair { name: one.name.clone(), first: one, second: other, change, clear });
    }
    let equal = a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a.digest == b.digest);
    pairs.retain(|pair| args.all || pair.first.mean != pair.second.mean);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&pairs)?);
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = pairs.iter().map(row).collect();
    if let Some(file) = &args.html {
        std::fs::write(file, comparison_page(&name(&args.first), &name(&args.second), &rows))?;
    }
    if equal {
        println!("All runs are equal to the byte.");
    }
    let (first, second) = (format!(">{}", name(&args.first)), format!(">{}", name(&args.second)));
    let mut table = table(&["NUMBER", &first, &second, ">CHANGE", ""]);
    rows.into_iter().for_each(|row| {
        table.add_row(row);
    });
    println!("{table}");
    Ok(ExitCode::SUCCESS)
}

fn name(folder: &Path) -> String {
    folder.file_name().map_or_else(|| folder.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn outcomes(folder: &Path) -> Result<Vec<Outcome>> {
    let outcomes = read_outcomes(folder)?;
    if outcomes.is_empty() {
        bail!("{} has no finished runs; make some with: tepui lab run SCENARIO --out {0}", folder.display());
    }
    Ok(outcomes)
}

fn row(pair: &Pair) -> Vec<String> {
    let change = match pair.change {
        Some(change) => format!("{:+.1} %", change * 100.0),
        None => number(pair.second.mean - pair.first.mean),
    };
    let chance = match (pair.clear, pair.first.half + pair.second.half > 0.0) {
        (_, false) => String::new(),
        (true, true) => "clear".to_owned(),
        (false, true) => "may be chance".to_owned(),
    };
    vec![pair.name.clone(), with_interval(&pair.first), with_interval(&pair.second), change, chance]
}
