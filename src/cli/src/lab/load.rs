//! `tepui lab load`: submits tasks at a chosen rate on a real cluster, and measures the time until they run.
//!
//! A load is a generated scenario that runs like any other (`live`): its directory of results contains it, so that it
//! can also run under virtual time, and be compared.

mod output;
mod plan;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use ::lab::campaign::save_one;
use ::lab::dist::Dist;
use ::lab::scenario::{Scenario, Traces};
use ::lab::users::Preset;
use anyhow::{Context, Result, bail};

use super::live::ClusterArgs;
use crate::say::say;
use output::Line;
use plan::Plan;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Tasks to submit in a second, over all frameworks: 0.01 to 2000
    #[arg(long, value_name = "NUMBER", default_value = "10", value_parser = plan::rate)]
    rate: f64,
    /// How long to submit tasks; the command then waits until they end
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = base::parse_span)]
    duration: std::time::Duration,
    /// Number of frameworks that submit tasks
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=200))]
    frameworks: u32,
    /// How long a task works: 1s, 'uniform 1s 5s', 'exponential 2s', ...
    #[arg(long, value_name = "TIME", default_value = "1s")]
    time: Dist,
    /// What a task needs
    #[arg(long, value_name = "RESOURCES", default_value = "cpus:0.1;mem:32")]
    needs: String,
    /// How tasks arrive: at random moments, or evenly
    #[arg(long, value_name = "WAY", default_value = "poisson")]
    arrivals: plan::Arrivals,
    /// Framework to behave like (docs/lab-guide.md); if not given: one that answers at once, and asks for offers
    /// whenever a task is submitted
    #[arg(long, value_name = "NAME", value_parser = plan::preset())]
    like: Option<Preset>,
    /// The role of the frameworks
    #[arg(long, default_value = "*")]
    role: String,
    /// The seed of arrivals and times
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of agents of the cluster that is started if --master names none
    #[arg(long, value_name = "NUMBER", default_value_t = 4, conflicts_with = "master", value_parser = clap::value_parser!(u32).range(1..=64))]
    agents: u32,
    /// Resources of each of these agents
    #[arg(long, value_name = "RESOURCES", default_value = "cpus:16;mem:16384", conflicts_with = "master")]
    resources: String,
    /// File to write the report to
    #[arg(long, value_name = "DIR", default_value = "lab-results/load")]
    out: PathBuf,
    /// Print the latencies as JSON instead of tables
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: ClusterArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    crate::show_warnings();
    let plan = Plan {
        rate: args.rate,
        duration: args.duration,
        frameworks: args.frameworks,
        time: args.time.clone(),
        needs: args.needs.clone(),
        arrivals: args.arrivals,
        like: args.like,
        role: args.role.clone(),
        seed: args.seed,
        agents: args.agents,
        resources: args.resources.clone(),
    };
    plan.check(args.place.master.is_none())?;
    let text = plan.scenario();
    // An error names lines of the generated scenario.
    let file = Path::new("load.toml");
    let scenario = Scenario::read(&text, file).with_context(|| format!("invalid load:\n{text}"))?;
    if args.place.master.is_none() {
        args.place.check(&text, file, 1.0).with_context(|| format!("invalid load:\n{text}"))?;
        scenario.warnings(&text, file, &Traces::default()).iter().for_each(|warning| stdio::err!("tepui: {warning}"));
    }
    let interrupted = AtomicBool::new(false);
    let line = Line::new(&plan, args.json);
    let played = super::interruptible(&interrupted, || {
        args.place.play(&scenario, args.seed, Path::new("."), 1.0, &mut |run_state| {
            line.show(run_state);
            !interrupted.load(Ordering::Relaxed)
        })
    });
    line.clear();
    let played = played?;
    played.warn();
    save_one(&args.out, &text, &scenario.about, &played.outcome)?;
    let report = output::LoadReport::of(&played, &plan, interrupted.load(Ordering::Relaxed));
    if args.json {
        say!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        crate::read::print(&report.text())?;
        say!("The report is {}", args.out.join("report.html").display());
    }
    match interrupted.load(Ordering::Relaxed) {
        true => Ok(ExitCode::from(130)),
        false if report.failed > 0 => bail!("{} tasks failed", report.failed),
        false => Ok(ExitCode::SUCCESS),
    }
}
