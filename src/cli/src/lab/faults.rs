//! `tepui lab faults`: runs a campaign of random clusters with many faults, or examines one seed of it closely.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::available_parallelism;

use ::lab::faults::{Defect, Finding, LEGEND, Plan, Settings, Summary, Violation, campaign, examine, run_plan};
use ::lab::masters;
use anyhow::{Context as _, Result};
use indicatif::{ProgressBar, ProgressStyle};
use serde::de::{DeserializeOwned, IntoDeserializer as _};

use super::interruptible;
use crate::say::say;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number of seeds to play
    #[arg(long, value_name = "NUMBER", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    seeds: u64,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    from: u64,
    /// Play only this seed; if it breaks a rule, minimize it and print its event log
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "from", "threads"])]
    seed: Option<u64>,
    /// With --seed: print the complete log of the seed, without reducing it
    #[arg(long, requires = "seed")]
    log: bool,
    /// Number of seeds to play at once [default: one for each processor]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Play groups of masters with --peers, which elect a leader and keep the registry, instead of clusters
    #[arg(long)]
    masters: bool,
    /// Give the masters, agents or schedulers a deliberate defect, such as lost-tasks, which the rules must detect
    #[arg(long, value_name = "DEFECT")]
    defect: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Reads a defect by its name; the error lists all names.
fn defect<D: DeserializeOwned>(name: Option<&str>) -> Result<Option<D>> {
    let read = |name: &str| -> Result<D, serde::de::value::Error> { D::deserialize(name.into_deserializer()) };
    name.map(|name| read(name).with_context(|| format!("invalid value '{name}' for '--defect'"))).transpose()
}

/// Number of seeds that break a rule after which a campaign ends.
const MOST: usize = 10;
/// Numbers of the first and of the last lines of a log that are printed.
const LINES: (usize, usize) = (30, 170);

pub fn run(args: &Args) -> Result<ExitCode> {
    if args.masters {
        return masters(args);
    }
    let defect = defect::<Defect>(args.defect.as_deref())?;
    match args.seed {
        Some(seed) if args.log => {
            let played = run_plan(&Plan::draw(seed).with_defect(defect), true);
            Ok(print_log(LEGEND, &played.log, played.broken.is_some()))
        }
        Some(seed) => one("", args, seed, examine(seed, defect).map(Shown::from)),
        None => many(
            args,
            &settings(args, defect),
            campaign,
            |summary| (summary.broken.clone(), print(summary, args.from)),
            |seed| examine(seed, defect).map(Shown::from),
        ),
    }
}

fn masters(args: &Args) -> Result<ExitCode> {
    let defect = defect::<masters::Defect>(args.defect.as_deref())?;
    match args.seed {
        Some(seed) if args.log => {
            let played = masters::run_plan(&masters::Plan::draw(seed).with_defect(defect), true);
            Ok(print_log(masters::LEGEND, &played.log, played.broken.is_some()))
        }
        Some(seed) => one(" --masters", args, seed, masters::examine(seed, defect).map(Shown::from)),
        None => many(
            args,
            &settings(args, defect),
            masters::campaign,
            |summary| (summary.broken.clone(), print_masters(summary, args.from)),
            |seed| masters::examine(seed, defect).map(Shown::from),
        ),
    }
}

fn settings<D>(args: &Args, defect: Option<D>) -> Settings<D> {
    let threads = match args.threads {
        Some(threads) => usize::from(threads),
        None => available_parallelism().map_or(1, usize::from),
    };
    Settings { first: args.from, seeds: args.seeds, threads, most: MOST, defect }
}

type Play<D, S> = fn(&Settings<D>, &(dyn Fn() -> bool + Sync)) -> S;

fn many<D: Copy, S: serde::Serialize>(
    args: &Args,
    settings: &Settings<D>,
    campaign: Play<D, S>,
    text: impl Fn(&S) -> (Vec<(u64, String)>, String),
    examine: impl Fn(u64) -> Option<Shown>,
) -> Result<ExitCode> {
    let bar = if args.json { ProgressBar::hidden() } else { ProgressBar::new(args.seeds) };
    bar.set_style(ProgressStyle::with_template("{bar:40} {pos}/{len} seeds, {per_sec}, {eta} left")?);
    let interrupted = AtomicBool::new(false);
    let played = || {
        bar.inc(1);
        !interrupted.load(Ordering::Relaxed)
    };
    let summary = interruptible(&interrupted, || campaign(settings, &played));
    bar.finish_and_clear();
    let (broken, text) = text(&summary);
    if args.json {
        say!("{}", serde_json::to_string(&summary)?);
    } else {
        say!("{text}");
        if broken.is_empty() {
            say!("no rule was broken");
        }
        broken.iter().for_each(|(seed, why)| say!("BROKEN by seed {seed}: {why}"));
    }
    let Some((seed, _)) = broken.first() else {
        // This is the exit status of a shell after Ctrl-C.
        return Ok(if interrupted.into_inner() { ExitCode::from(130) } else { ExitCode::SUCCESS });
    };
    if !args.json {
        show(if args.masters { " --masters" } else { "" }, *seed, examine(*seed).as_ref());
    }
    Ok(ExitCode::FAILURE)
}

fn print(summary: &Summary, from: u64) -> String {
    format!(
        "{} seeds from {from} on ({} with disks that refuse writes): {} faults, {} tasks, {} updates, {} events in {:.1} days of virtual time",
        summary.seeds,
        summary.refusing,
        summary.faults,
        summary.tasks,
        summary.updates,
        summary.events,
        summary.seconds as f64 / 86_400.0
    )
}

fn print_masters(summary: &masters::Summary, from: u64) -> String {
    format!(
        "{} seeds from {from} on: {} faults, {} leaders, {} reads and writes, {} events in {:.1} days of virtual time; without \
         faults a leader after {} ms, and a change of the members after {} ms, at most",
        summary.seeds,
        summary.faults,
        summary.leaders,
        summary.operations,
        summary.events,
        summary.seconds as f64 / 86_400.0,
        summary.longest_election,
        summary.longest_change
    )
}

/// A seed that breaks a rule, with its plan reduced, of either campaign.
struct Shown {
    legend: &'static str,
    broken: Violation,
    /// Faults that are left, number of faults before the reduction, and a description of the rest of the plan.
    faults: (Vec<String>, usize, String),
    log: Vec<String>,
}

impl From<Finding<Plan>> for Shown {
    fn from(found: Finding<Plan>) -> Shown {
        let Finding { broken, plan, faults, log } = found;
        let kinds = plan.faults.iter().map(|fault| fault.kind.to_string()).collect();
        let rest = format!("{} agents, {} frameworks", plan.agents.len(), plan.frameworks.len());
        Shown { legend: LEGEND, broken, faults: (kinds, faults, rest), log }
    }
}

impl From<Finding<masters::Plan>> for Shown {
    fn from(found: Finding<masters::Plan>) -> Shown {
        let Finding { broken, plan, faults, log } = found;
        let kinds = plan.faults.iter().map(|fault| fault.kind.to_string()).collect();
        let rest = format!("{} masters, {} clients", plan.setup.founders + plan.setup.spares, plan.setup.clients);
        Shown { legend: masters::LEGEND, broken, faults: (kinds, faults, rest), log }
    }
}

fn one(option: &str, args: &Args, seed: u64, finding: Option<Shown>) -> Result<ExitCode> {
    let Some(found) = &finding else {
        if args.json {
            say!("{}", serde_json::json!({ "seed": seed, "broken": null }));
        } else {
            say!("seed {seed} breaks no rule (its log: tepui lab faults{option} --seed {seed} --log)");
        }
        return Ok(ExitCode::SUCCESS);
    };
    if args.json {
        let value = serde_json::json!({
            "seed": seed,
            "rule": found.broken.rule,
            "broken": found.broken.text,
            "faults": found.faults.0,
            "log": found.log,
        });
        say!("{value}");
    } else {
        show(option, seed, finding.as_ref());
    }
    Ok(ExitCode::FAILURE)
}

/// Prints the complete log of a seed.
fn print_log(legend: &str, log: &[String], is_broken: bool) -> ExitCode {
    say!("{legend}");
    log.iter().for_each(|line| say!("{line}"));
    if is_broken { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Prints a seed that breaks a rule, with its plan reduced.
fn show(option: &str, seed: u64, finding: Option<&Shown>) {
    let Some(Shown { legend, broken, faults: (kinds, faults, rest), log }) = finding else { return };
    say!("\nseed {seed}, reduced to {} of its {faults} faults, {rest}\n{legend}\n", kinds.len());
    let (first, last) = LINES;
    if log.len() <= first + last {
        log.iter().for_each(|line| say!("{line}"));
    } else {
        log[..first].iter().for_each(|line| say!("{line}"));
        say!("        ...  {} lines", log.len() - first - last);
        log[log.len() - last..].iter().for_each(|line| say!("{line}"));
    }
    say!("\nBROKEN: {broken}\nto repeat it: tepui lab faults{option} --seed {seed}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_defect_is_rejected_with_the_names_of_all() {
        assert_eq!(defect(Some("lost-tasks")).unwrap(), Some(Defect::LostTasks));
        let error = format!("{:#}", defect::<Defect>(Some("LostTasks")).unwrap_err());
        assert!(error.contains("`lost-tasks`") && error.contains("`double-offers`"), "{error}");
        let error = format!("{:#}", defect::<masters::Defect>(Some("lost-tasks")).unwrap_err());
        assert!(error.contains("'--defect'") && error.contains("`ignored-lease`"), "{error}");
    }

    #[test]
    fn a_deliberate_defect_is_found() {
        let settings = Settings { first: 1, seeds: 20, threads: 1, most: 1, defect: Some(Defect::SameFrameworkIds) };
        assert!(campaign(&settings, &|| true).broken[0].1.contains("ids are given once: framework"));
    }
}
