//! `tepui lab stages`: runs the studies of jobs of stages, and prints tables. They run in virtual time and start
//! nothing.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::lab::report::number;
use anyhow::{Context, Result, bail};
use dag::study::alibaba::{self, TracedJob};
use dag::study::report::{Inputs, Row, STUDIES, Study, run as run_study};
use dag::study::stats::Spread;
use dag::study::tpch::Queries;

use crate::framework::read_model;
use crate::read::table::table;
use crate::say::say;

/// Maximum size of a file of TPC-H traces, in bytes; the largest is a tenth of it.
const LARGEST: u64 = 16 << 20;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which studies: sizes (Libra), orders (Decima's heuristics), decima (the learned order), packing (several
    /// resources), drops (DiAS), sprinting (a model of sprints); all if none is named
    #[arg(value_name = "STUDY")]
    studies: Vec<String>,
    /// TPC-H traces for `orders` and `decima`: the directory `spark_env/tpch` of Decima's public simulator; queries are
    /// generated otherwise
    #[arg(long, value_name = "DIRECTORY")]
    tpch: Option<PathBuf>,
    /// Jobs for `packing`: `batch_task.csv` of Alibaba's trace of 2018, replayed in its own order; jobs are made
    /// otherwise
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// The weights of the learned order for `decima`; those that come with this program otherwise
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// How many seeds; streams of `orders`, and profiles of `sprinting`, take a tenth of them
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Print the rows as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let studies = chosen(&args.studies)?;
    let queries = args.tpch.as_deref().map(read_queries).transpose()?;
    let trace = args.trace.as_deref().map(read_trace).transpose()?;
    let model = args.model.as_deref().map(read_model).transpose()?.map(Into::into);
    let inputs = Inputs { seeds: (1..=args.seeds).collect(), queries, trace, model };
    for study in studies {
        let rows = run_study(study, &inputs).with_context(|| format!("cannot run the study of {}", study.name()))?;
        if args.json {
            say!("{}", serde_json::to_string(&serde_json::json!({ "study": study.name(), "rows": rows }))?);
        } else {
            print(study, &rows);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn chosen(names: &[String]) -> Result<Vec<Study>> {
    if names.is_empty() {
        return Ok(STUDIES.into());
    }
    let known = |name: &String| match STUDIES.into_iter().find(|study| study.name() == name) {
        Some(study) => Ok(study),
        None => bail!("invalid study '{name}': must be sizes, orders, decima, packing, drops or sprinting"),
    };
    names.iter().map(known).collect()
}

pub(super) fn read_queries(directory: &Path) -> Result<Queries> {
    let read = |name: &str| {
        let file = directory.join(name);
        match std::fs::metadata(&file)?.len() {
            0..=LARGEST => std::fs::read(&file),
            _ => Err(std::io::Error::other("the file is larger than 16 MiB")),
        }
    };
    Queries::read(&read).with_context(|| format!("cannot read the queries of {}", directory.display()))
}

fn read_trace(file: &Path) -> Result<Vec<TracedJob>> {
    let opened = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
    // A job of one task has no order.
    let trace = alibaba::read(&mut BufReader::new(opened), 20_000, 2);
    let trace = trace.with_context(|| format!("cannot read {}", file.display()))?;
    if !trace.left_out.is_empty() {
        stdio::err!("{}: {} jobs; {}", file.display(), trace.jobs.len(), trace.left_out);
    }
    if trace.jobs.is_empty() {
        bail!("{} has no jobs of several tasks that have ended", file.display());
    }
    Ok(trace.jobs)
}

fn print(study: Study, rows: &[Row]) {
    say!("{}: {}", study.name(), study.claim());
    let Some(first) = rows.first() else { return };
    let has_known = rows.iter().any(|row| !row.known.is_empty());
    let labels = first.labels.iter().map(|(title, _)| title.to_uppercase());
    // Units are printed as they are written.
    let numbers = first.numbers.iter().map(|(title, _)| format!(">{title}"));
    let titles: Vec<String> = labels.chain(numbers).chain(has_known.then(|| "KNOWN".to_owned())).collect();
    let mut table = table(&titles.iter().map(String::as_str).collect::<Vec<_>>());
    for row in rows {
        let labels = row.labels.iter().map(|(_, value)| value.clone());
        let numbers = row.numbers.iter().map(|(title, spread)| cell(title, *spread));
        table.add_row(labels.chain(numbers).chain(has_known.then(|| row.known.clone())).collect::<Vec<_>>());
    }
    say!("{}", table.trim_fmt());
}

fn cell(title: &str, spread: Spread) -> String {
    let times = if title.ends_with('%') { 100.0 } else { 1.0 };
    match (spread.mean * times, spread.half * times) {
        (mean, _) if mean.is_nan() => "-".to_owned(),
        (mean, 0.0) => number(mean),
        (mean, half) => format!("{} ± {}", number(mean), number(half)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn studies_are_chosen_by_name() {
        assert_eq!(chosen(&[]).unwrap(), STUDIES);
        assert_eq!(chosen(&["drops".to_owned()]).unwrap(), [Study::Drops]);
        let error = chosen(&["x".to_owned()]).unwrap_err().to_string();
        assert_eq!(error, "invalid study 'x': must be sizes, orders, decima, packing, drops or sprinting");
        let missing = format!("{:#}", read_queries(Path::new("/nowhere")).unwrap_err());
        assert!(
            missing.starts_with("cannot read the queries of /nowhere: 2g/adj_mat_1.npy cannot be used"),
            "{missing}"
        );
    }

    #[test]
    fn a_trace_is_read_or_its_line_is_named() {
        let file = std::env::temp_dir().join(format!("tepui-trace-{}.csv", std::process::id()));
        let read = |text: &str| {
            std::fs::write(&file, text).unwrap();
            read_trace(&file).map_err(|error| format!("{error:#}"))
        };
        let job = "M1,4,j_1,1,Terminated,100,110,100,0.5\nR2_1,2,j_1,1,Terminated,110,140,50,0.3\n";
        assert_eq!(read(job).unwrap()[0].job.stages.len(), 2);
        let wrong = read(&format!("{job}R3_1,two,j_1,1,Terminated,110,140,50,0.3\n")).unwrap_err();
        assert!(wrong.contains("line 3: instance_num must be a number"), "{wrong}");
        let alone = read("M1,4,j_1,1,Terminated,100,110,100,0.5\n").unwrap_err();
        assert!(alone.contains("no jobs of several tasks"), "{alone}");
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn cells_show_parts_as_percent() {
        assert_eq!(cell("shorter %", Spread { mean: 0.5, half: 0.0 }), number(50.0));
        assert_eq!(cell("model %", Spread { mean: f64::NAN, half: 0.0 }), "-");
    }
}
