//! `tepui advise`: shows what jobs request, what they use, and what they should request.
//!
//! The model is the crate `advice`. This module takes, records and reads measurements, and shows the advice.

mod record;
mod sample;
mod show;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use advice::{ClusterMeasurements, Report, Risk};
use anyhow::{Result, bail};
use clap_complete::ArgValueCompleter;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::MissedTickBehavior;

use crate::complete;
use crate::connect::MasterArgs;
use crate::interrupt::Interrupt;
use crate::read::print;
use record::Recorder;
use sample::Sampler;

/// Minimum interval between rounds of measurements.
const EVERY_MIN: Duration = Duration::from_millis(200);
/// Maximum duration of measurements.
const FOR_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);

/// Flags of `tepui advise`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    master: MasterArgs,
    /// How long to measure, such as 5m; an interrupt ends it earlier
    #[arg(long = "for", default_value = "5m", value_name = "TIME", value_parser = time)]
    length: Duration,
    /// Interval between measurements
    #[arg(long, default_value = "5s", value_name = "TIME", value_parser = time)]
    every: Duration,
    /// Accepted risk of a shortage: the share of tasks that need more memory than proposed at some time, and the share
    /// of the time in which more processors than proposed would be used
    #[arg(long, default_value_t = Risk::default())]
    risk: Risk,
    /// Append the measurements to this file, as lines of JSON
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Read measurements from a file of --record instead of a cluster; can be given more than once
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "length", "every"])]
    from: Vec<PathBuf>,
    /// Only tasks of this framework, by its id or name; with --from, by its name
    #[arg(long, short, value_name = "FRAMEWORK", add = ArgValueCompleter::new(complete::frameworks))]
    framework: Option<String>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

fn time(text: &str) -> Result<Duration, String> {
    let known = binpack::job::parse_time(text).or_else(|| base::parse_duration(text).ok());
    known.ok_or_else(|| "must be a time such as 10, 500ms, 30s, 5m or 2h".to_owned())
}

/// Takes or reads measurements, and prints the advice.
///
/// # Errors
/// No master answers, or a file cannot be read or written.
pub fn run(args: &Args) -> Result<ExitCode> {
    let mut measurements = ClusterMeasurements::default();
    if args.from.is_empty() {
        if args.every < EVERY_MIN {
            bail!("--every is {:?}: must be {EVERY_MIN:?} or more", args.every);
        }
        if args.length > FOR_MAX {
            bail!("--for must be a year at most");
        }
        crate::block_on(measure(args, &mut measurements))?;
    } else {
        let is_wanted = |sample: &advice::Sample| args.framework.as_ref().is_none_or(|name| *name == sample.framework);
        for path in &args.from {
            record::read(path, |sample| {
                if is_wanted(&sample) {
                    measurements.add(&sample)
                }
            })?;
        }
    }
    let report = measurements.report(args.risk);
    print(&text(args, &report)?)
}

fn text(args: &Args, report: &Report) -> Result<String> {
    Ok(if args.json { serde_json::to_string_pretty(report)? } else { show::text(report) })
}

/// Measures in rounds until the time is over or the user interrupts.
async fn measure(args: &Args, measurements: &mut ClusterMeasurements) -> Result<()> {
    let mut recorder = args.record.as_deref().map(Recorder::open).transpose()?;
    let interrupt = Interrupt::watch()?;
    let wake_signal = interrupt.wake_signal();
    let rounds = u64::try_from(args.length.as_millis() / args.every.as_millis()).unwrap_or(u64::MAX).saturating_add(1);
    let bar = ProgressBar::new(rounds);
    if let Ok(style) = ProgressStyle::with_template("{bar:20} {pos}/{len} rounds, {eta} left; {msg}") {
        bar.set_style(style);
    }
    let mut sampler = Sampler::new(&args.master, args.framework.as_deref());
    let mut every = tokio::time::interval(args.every);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for round in 0..rounds {
        tokio::select! {
            () = wake_signal.notified() => break,
            _ = every.tick() => {}
        }
        match sampler.round().await {
            Ok(samples) => {
                bar.set_message(format!("{} tasks; Ctrl-C ends it and shows the advice", samples.len()));
                samples.iter().for_each(|sample| measurements.add(sample));
                if let Some(recorder) = &mut recorder {
                    recorder.write(&samples)?;
                }
            }
            // A master that is unreachable for a moment costs a round.
            Err(error) if round > 0 => bar.suspend(|| stdio::err!("skipped a round: {error:#}")),
            Err(error) => return Err(error),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        args: Args,
    }

    fn parse(words: &[&str]) -> Result<Args, String> {
        let words = std::iter::once("x").chain(words.iter().copied());
        Flags::try_parse_from(words).map(|flags| flags.args).map_err(|error| error.to_string())
    }

    #[test]
    fn times_are_written_in_short_and_as_mesos_has_them() {
        let args = parse(&["--for=90s", "--every=500ms", "--risk=0.1"]).unwrap();
        assert_eq!((args.length, args.every), (Duration::from_secs(90), Duration::from_millis(500)));
        assert_eq!(parse(&["--for=5mins"]).unwrap().length, parse(&["--for=5m"]).unwrap().length);
    }

    #[test]
    fn wrong_flags_are_named() {
        for (words, part) in [
            (&["--risk=0.9"][..], "invalid risk '0.9'"),
            (&["--for=soon"], "--for"),
            (&["--from=x", "--record=y"], "--record"),
        ] {
            let error = parse(words).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        let error = run(&parse(&["--every=1ms"]).unwrap()).unwrap_err().to_string();
        assert!(error.contains("must be 200ms or more"), "{error}");
    }
}
