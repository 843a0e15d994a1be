//! `tepui lab bitrate`: compares policies of bitrates over traces of bandwidth, and trains weights for the linear
//! policy.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use ::lab::report::number;
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use video::abr::{Spread, Study, Training, Weights};
use video::bitrate::Trace;

use crate::read::table::table;
use crate::say::say;

/// Maximum number of trace files, and maximum size of one in bytes.
const TRACES_MAX: usize = 10_000;
const BYTES_MAX: u64 = 16 << 20;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to watch: a movie in chunks of 4 s, or the live view of a query
    #[arg(default_value = "movie")]
    watched: Watched,
    /// Traces to compare on, a file each with lines of seconds and Mbit/s; generated ones otherwise
    #[arg(long, value_name = "DIRECTORY")]
    traces: Option<PathBuf>,
    /// Weights of the linear policy [default: those of this program]
    #[arg(long, value_name = "FILE", conflicts_with = "train")]
    weights: Option<PathBuf>,
    /// Train first, and write the weights there
    #[arg(long, value_name = "FILE")]
    train: Option<PathBuf>,
    /// Traces to train on; generated ones otherwise
    #[arg(long, value_name = "DIRECTORY", requires = "train")]
    train_on: Option<PathBuf>,
    /// The seed of the training
    #[arg(long, default_value_t = 1, requires = "train")]
    seed: u64,
    /// Print the rows as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Watched {
    /// A movie, as in Pensieve's comparison
    Movie,
    /// The live view
    Live,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let study = match args.watched {
        Watched::Movie => Study::Movie,
        Watched::Live => Study::Live,
    };
    let traces = args.traces.as_deref().map(read_traces).transpose()?;
    let weights = match (&args.train, &args.weights) {
        (Some(file), _) => trained(study, args, file)?,
        (None, Some(file)) => {
            let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
            Weights::read(&text).with_context(|| format!("cannot use {}", file.display()))?
        }
        (None, None) => study.weights()?,
    };
    let rows = study.compare(&weights, traces.as_deref())?;
    if args.json {
        say!("{}", serde_json::to_string(&rows)?);
        return Ok(ExitCode::SUCCESS);
    }
    let titles = ["POLICY", ">SCORE", ">VS BBA-0", ">MBIT/S", ">STALLED s/min", ">CHANGE MBIT/S"];
    let mut table = table(&titles);
    let cell = |spread: Spread| match spread.half {
        0.0 => number(spread.mean),
        half => format!("{} ± {}", number(spread.mean), number(half)),
    };
    for row in rows {
        let numbers = [row.score, row.above_first, row.bitrate, row.stall, row.change].map(cell);
        table.add_row([row.policy].into_iter().chain(numbers).collect::<Vec<_>>());
    }
    say!("{}", table.trim_fmt());
    Ok(ExitCode::SUCCESS)
}

fn trained(study: Study, args: &Args, file: &Path) -> Result<Weights> {
    let training = Training { seed: args.seed, ..Training::default() };
    let mut score = 0.0;
    let traces = args.train_on.as_deref().map(read_traces).transpose()?;
    let weights = study.train(training, traces.as_deref(), |_, best| score = best)?;
    let watched = format!("{:?}", args.watched).to_lowercase();
    let above = [
        "Weights of the linear policy of bitrates, by feature. Only their proportions count.".to_owned(),
        format!(
            "Made by `tepui lab bitrate {watched} --train=FILE{} --seed={}`.",
            if args.train_on.is_some() { " --train-on=DIRECTORY" } else { "" },
            args.seed
        ),
    ];
    std::fs::write(file, weights.write(&above)).with_context(|| format!("cannot write {}", file.display()))?;
    stdio::err!("{}: mean score per chunk of the best weights: {score:.3}", file.display());
    Ok(weights)
}

/// Reads all files of a directory, in the order of their names.
fn read_traces(directory: &Path) -> Result<Vec<Arc<Trace>>> {
    let listed = std::fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))?;
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in listed {
        let path = entry.with_context(|| format!("cannot list {}", directory.display()))?.path();
        if path.is_file() {
            files.push(path);
        }
        if files.len() > TRACES_MAX {
            bail!("{} has more than {TRACES_MAX} files", directory.display());
        }
    }
    files.sort();
    if files.is_empty() {
        bail!("{} has no files", directory.display());
    }
    let read = |file: &PathBuf| {
        if std::fs::metadata(file).is_ok_and(|file| file.len() > BYTES_MAX) {
            bail!("{} is larger than 16 MiB", file.display());
        }
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok(Arc::new(Trace::read(&text).with_context(|| format!("{} is not a trace", file.display()))?))
    };
    files.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_without_traces_are_refused() {
        let error = format!("{:#}", read_traces(Path::new("/nowhere")).unwrap_err());
        assert!(error.starts_with("cannot list /nowhere"), "{error}");
    }
}
