//! `tepui lab faults`: a campaign of random clusters in which much goes wrong; and one seed of it, looked at closely.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::available_parallelism;

use ::lab::faults::{Defect, Finding, LEGEND, Plan, Settings, Summary, campaign, examine, play};
use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;

use super::interruptible;
use crate::say::say;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number of seeds that are played
    #[arg(long, value_name = "NUMBER", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    seeds: u64,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    from: u64,
    /// Play this seed alone: if it breaks a rule, make it small and print its event log
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "from", "threads"])]
    seed: Option<u64>,
    /// With --seed: print the whole log of the seed as it is, whether it breaks a rule or not
    #[arg(long, requires = "seed")]
    whole: bool,
    /// How many seeds at once; one for each processor if not given
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Give the masters, agents or schedulers a deliberate defect, such as lost-tasks, which the rules must detect
    #[arg(long, value_name = "DEFECT", value_parser = defect)]
    defect: Option<Defect>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Reads a defect by its name; the error lists all names.
fn defect(name: &str) -> Result<Defect, serde::de::value::Error> {
    Defect::deserialize(name.into_deserializer())
}

/// A campaign ends after so many seeds that break a rule.
const MOST: usize = 10;
/// Lines of a log that are printed: the first ones, and the last ones.
const LINES: (usize, usize) = (30, 170);

pub fn run(args: &Args) -> Result<ExitCode> {
    match args.seed {
        Some(seed) if args.whole => Ok(whole(seed, args.defect)),
        Some(seed) => one(seed, args.defect, args.json),
        None => many(args),
    }
}

fn many(args: &Args) -> Result<ExitCode> {
    let threads = match args.threads {
        Some(threads) => usize::from(threads),
        None => available_parallelism().map_or(1, usize::from),
    };
    let bar = if args.json { ProgressBar::hidden() } else { ProgressBar::new(args.seeds) };
    bar.set_style(ProgressStyle::with_template("{bar:40} {pos}/{len} seeds, {per_sec}, {eta} left")?);
    let interrupted = AtomicBool::new(false);
    let played = || {
        bar.inc(1);
        !interrupted.load(Ordering::Relaxed)
    };
    let settings = Settings { first: args.from, seeds: args.seeds, threads, most: MOST, defect: args.defect };
    let summary = interruptible(&interrupted, || campaign(&settings, &played));
    bar.finish_and_clear();
    if args.json {
        say!("{}", serde_json::to_string(&summary)?);
    } else {
        print(&summary, args.from);
    }
    let Some((seed, _)) = summary.broken.first() else {
        // The exit status of a shell after Ctrl-C.
        return Ok(if interrupted.into_inner() { ExitCode::from(130) } else { ExitCode::SUCCESS });
    };
    if !args.json {
        show(*seed, examine(*seed, args.defect).as_ref());
    }
    Ok(ExitCode::FAILURE)
}

fn print(summary: &Summary, from: u64) {
    say!(
        "{} seeds from {from} on ({} with disks that refuse writes): {} faults, {} tasks, {} updates, {} events in {:.1} days of virtual time",
        summary.seeds,
        summary.refusing,
        summary.faults,
        summary.tasks,
        summary.updates,
        summary.events,
        summary.seconds as f64 / 86_400.0
    );
    if summary.broken.is_empty() {
        say!("no rule was broken");
    }
    for (seed, why) in &summary.broken {
        say!("BROKEN by seed {seed}: {why}");
    }
}

fn one(seed: u64, defect: Option<Defect>, json: bool) -> Result<ExitCode> {
    let finding = examine(seed, defect);
    let Some(found) = &finding else {
        if json {
            say!("{}", serde_json::json!({ "seed": seed, "broken": null }));
        } else {
            say!("seed {seed} breaks no rule (its log: tepui lab faults --seed {seed} --whole)");
        }
        return Ok(ExitCode::SUCCESS);
    };
    if json {
        let value = serde_json::json!({
            "seed": seed,
            "rule": found.broken.rule,
            "broken": found.broken.text,
            "faults": found.plan.faults.iter().map(|fault| fault.kind.to_string()).collect::<Vec<_>>(),
            "log": found.log,
        });
        say!("{value}");
    } else {
        show(seed, finding.as_ref());
    }
    Ok(ExitCode::FAILURE)
}

/// A seed as it is, from its first event to its last.
fn whole(seed: u64, defect: Option<Defect>) -> ExitCode {
    let played = play(&Plan::draw(seed).with_defect(defect), true);
    say!("{LEGEND}");
    played.log.iter().for_each(|line| say!("{line}"));
    if played.broken.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// A seed that breaks a rule, made small.
fn show(seed: u64, finding: Option<&Finding>) {
    let Some(found) = finding else { return };
    let (plan, log) = (&found.plan, &found.log);
    say!(
        "\nseed {seed}, made small: {} of its {} faults, {} agents, {} frameworks\n{LEGEND}\n",
        plan.faults.len(),
        found.faults,
        plan.agents.len(),
        plan.frameworks.len()
    );
    let (first, last) = LINES;
    if log.len() <= first + last {
        log.iter().for_each(|line| say!("{line}"));
    } else {
        log[..first].iter().for_each(|line| say!("{line}"));
        say!("        ...  {} lines", log.len() - first - last);
        log[log.len() - last..].iter().for_each(|line| say!("{line}"));
    }
    say!("\nBROKEN: {}\nto see it again: tepui lab faults --seed {seed}", found.broken);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_defect_is_rejected_with_the_names_of_all() {
        assert_eq!(defect("lost-tasks").unwrap(), Defect::LostTasks);
        let error = defect("LostTasks").unwrap_err().to_string();
        assert!(error.contains("`lost-tasks`") && error.contains("`double-offers`"), "{error}");
    }

    #[test]
    fn a_deliberate_defect_is_found() {
        let settings = Settings { first: 1, seeds: 20, threads: 1, most: 1, defect: Some(Defect::SameFrameworkIds) };
        assert!(campaign(&settings, &|| true).broken[0].1.contains("ids are given once: framework"));
    }
}
