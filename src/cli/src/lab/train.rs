//! `tepui lab train`: trains the learned order of stages in virtual time. `--resume` continues from a checkpoint.

mod logs;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use dag::learned::BYTES_MAX;
use dag::study::generated;
use indicatif::{ProgressBar, ProgressStyle};
use training::curve::{Measured, svg};
use training::episode::Pool;
use training::measure::Bench;
use training::settings::Settings;
use training::trainer::Trainer;

use super::interruptible;
use super::stages::read_queries;
use crate::say::say;

/// Number of iterations between two measurements, after each of which a checkpoint is written.
const EVERY: u64 = 30;
/// Maximum of `--minutes`: a year.
const MINUTES_MAX: u64 = 366 * 24 * 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Subject {
    /// The order of stages (Decima)
    Decima,
}

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to train
    #[arg(value_name = "SUBJECT")]
    subject: Subject,
    /// Directory for the model, the checkpoint, the log and the curve
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// End after this many iterations, those before a resume included
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    iterations: u64,
    /// End after this many minutes, a year at most
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=MINUTES_MAX))]
    minutes: Option<u64>,
    /// Continue from the checkpoint in the directory; with another --tpch, continue on those queries
    #[arg(long)]
    resume: bool,
    /// TPC-H traces to learn from: the directory `spark_env/tpch` of Decima's public simulator; queries are made
    /// otherwise
    #[arg(long, value_name = "DIRECTORY")]
    tpch: Option<PathBuf>,
    /// Seed of jobs, weights and choices; with --resume, the checkpoint's
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Settings as JSON (`training::settings::Settings`); those that are missing are the usual ones
    #[arg(long, value_name = "FILE", conflicts_with = "seed")]
    settings: Option<PathBuf>,
    /// Threads; one for each processor if not given. The result does not depend on them
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let Subject::Decima = args.subject;
    let threads = args.threads.map_or_else(|| available_parallelism().map_or(1, usize::from), usize::from);
    let trainer = trainer(args)?;
    let queries = args.tpch.as_deref().map(read_queries).transpose()?;
    std::fs::create_dir_all(&args.out).with_context(|| format!("cannot create {}", args.out.display()))?;
    let pool = Pool::new(trainer.settings(), queries.as_ref());
    let bench = Bench::new(queries.unwrap_or_else(|| generated::queries(1)), threads)?;
    let interrupted = AtomicBool::new(false);
    let measured = match args.resume {
        true => logs::cut(&args.out, trainer.iteration())?,
        false => {
            logs::put_aside(&args.out)?;
            Vec::new()
        }
    };
    let mut training = Training { args, threads, trainer, pool, bench, measured };
    interruptible(&interrupted, || training.run(&interrupted))?;
    Ok(ExitCode::SUCCESS)
}

fn trainer(args: &Args) -> Result<Trainer> {
    let settings = match &args.settings {
        Some(file) => {
            let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
            Some(serde_json::from_str(&text).with_context(|| format!("invalid settings in {}", file.display()))?)
        }
        None => None,
    };
    let checkpoint = checkpoint(&args.out);
    if args.resume {
        let context = || format!("cannot resume from {}", checkpoint.display());
        if std::fs::metadata(&checkpoint).with_context(context)?.len() > BYTES_MAX as u64 {
            bail!("{}: must have {BYTES_MAX} bytes at most", checkpoint.display());
        }
        let mut trainer = Trainer::resume(&std::fs::read(&checkpoint).with_context(context)?).with_context(context)?;
        if let Some(settings) = settings {
            trainer.set(settings)?;
        }
        return Ok(trainer);
    }
    if checkpoint.exists() {
        bail!("{} already has a training: continue it with --resume, or give another --out", args.out.display());
    }
    Ok(Trainer::new(settings.unwrap_or_else(|| Settings { seed: args.seed, ..Settings::default() }))?)
}

fn checkpoint(out: &Path) -> PathBuf {
    out.join("checkpoint.safetensors")
}

struct Training<'a> {
    args: &'a Args,
    threads: usize,
    trainer: Trainer,
    pool: Pool,
    bench: Bench,
    measured: Vec<Measured>,
}

#[expect(clippy::disallowed_methods, reason = "how long a user lets it train is wall time")]
fn now() -> Instant {
    Instant::now()
}

impl Training<'_> {
    fn run(&mut self, interrupted: &AtomicBool) -> Result<()> {
        let until = self.args.minutes.map(|minutes| now() + Duration::from_secs(60 * minutes));
        let bar = ProgressBar::new(self.args.iterations);
        bar.set_style(ProgressStyle::with_template("{bar:40} {pos}/{len} iterations, {eta} left  {msg}")?);
        bar.set_position(self.trainer.iteration());
        if self.trainer.iteration() == 0 {
            self.measure()?;
        }
        while self.trainer.iteration() < self.args.iterations
            && !interrupted.load(Ordering::Relaxed)
            && until.is_none_or(|until| now() < until)
        {
            let iteration = self.trainer.iterate(&self.pool, self.threads)?;
            logs::append(&self.args.out.join(logs::ITERATIONS), &[iteration])?;
            if self.trainer.iteration().is_multiple_of(EVERY) {
                bar.set_message(self.measure()?);
                self.keep()?;
            }
            bar.inc(1);
        }
        let last = self.measure()?;
        self.keep()?;
        bar.finish_and_clear();
        say!("{} iterations; of the best heuristic's time: {last}", self.trainer.iteration());
        say!("model    {}", self.args.out.join("model.safetensors").display());
        Ok(())
    }

    /// Measures the current network, and describes the result in words.
    fn measure(&mut self) -> Result<String> {
        let iteration = self.trainer.iteration();
        if self.measured.last().is_none_or(|last| last.iteration != iteration) {
            let measured = self.bench.measure(&self.trainer.network(), iteration, self.threads)?;
            logs::append(&self.args.out.join(logs::MEASURED), &measured)?;
            self.measured.extend(measured);
        }
        let last = self.measured.iter().filter(|one| one.iteration == iteration);
        Ok(last.map(|one| format!("{} {:.3}", one.workload, one.of_best)).collect::<Vec<_>>().join(", "))
    }

    /// Writes the checkpoint, the model, and the curve.
    fn keep(&self) -> Result<()> {
        let from = if self.args.tpch.is_some() { "public TPC-H traces" } else { "generated queries" };
        let about = format!(
            "{} iterations on {from}, seed {}, settings {}",
            self.trainer.iteration(),
            self.trainer.settings().seed,
            serde_json::to_string(self.trainer.settings())?
        );
        let write = |name: &str, bytes: &[u8]| {
            let path = self.args.out.join(name);
            store::replace_file(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
        };
        write("checkpoint.safetensors", &self.trainer.checkpoint(about.clone())?)?;
        write("model.safetensors", &self.trainer.model(about).write()?)?;
        write("curve.svg", svg(&self.measured).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn minutes_have_a_limit() {
        let read = |minutes| Flags::try_parse_from(["train", "decima", "--out=x", "--minutes", minutes]);
        assert_eq!(read("5").unwrap().args.minutes, Some(5));
        for wrong in ["0", "307445734561825861"] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.contains(&format!("{wrong} is not in 1..=527040")), "{error}");
        }
    }
}
