//! `tepui lab run SCENARIO`: runs every seed of every point, with progress bars, tables and a report.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::available_parallelism;

use ::lab::campaign::{Campaign, Progress, Results};
use ::lab::measure::Outcome;
use ::lab::report::{Spread, in_unit, passed, spreads};
use anyhow::{Context, Result, bail};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::interruptible;
use super::live::{self, ClusterArgs};
use crate::read::table::table;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The scenario, in TOML (docs/lab-guide.md)
    scenario: PathBuf,
    /// Directory for the results [default: lab-results/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Number of seeds, instead of the scenario's
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: Option<u32>,
    /// Number of runs at once [default: one for each processor]
    #[arg(long, value_name = "NUMBER")]
    threads: Option<usize>,
    /// Print all numbers as JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Run on a real cluster, in real time: real frameworks, and processes that sleep as tasks. A cluster is started
    /// for each run, unless --master names one
    #[arg(long, conflicts_with = "threads")]
    live: bool,
    /// With --live: seconds of the scenario that pass in a real second
    #[arg(long, requires = "live", value_name = "TIMES", default_value = "1", value_parser = live::speed)]
    speed: f64,
    #[command(flatten)]
    place: ClusterArgs,
}

/// Progress bars on a terminal: one for all runs, one for each thread.
struct Bars {
    all: ProgressBar,
    threads: Vec<ProgressBar>,
    interrupted: AtomicBool,
    /// Second at which large pages are requested again; `None` if they are not requested.
    next_look: Option<AtomicU64>,
}

/// Number of steps of a thread's bar.
const STEPS: u64 = 1000;

impl Bars {
    fn new(runs: usize, threads: usize, quiet: bool) -> Bars {
        let bars = MultiProgress::new();
        if quiet {
            bars.set_draw_target(indicatif::ProgressDrawTarget::hidden());
        }
        let style = |template: &str| ProgressStyle::with_template(template).unwrap_or(ProgressStyle::default_bar());
        let all = bars.add(ProgressBar::new(runs as u64));
        all.set_style(style("{pos}/{len} runs {wide_bar} {elapsed}, {eta} to go"));
        let thread = |_| {
            let bar = bars.add(ProgressBar::new(STEPS));
            bar.set_style(style("  {percent:>3} % {wide_bar:.dim}"));
            bar
        };
        let threads = (0..threads).map(thread).collect();
        Bars { threads, all, interrupted: AtomicBool::new(false), next_look: None }
    }

    /// Requests large pages for the memory of runs in this process, which is started for nothing else.
    fn with_large_pages(self) -> Bars {
        containers::use_large_pages();
        Bars { next_look: Some(AtomicU64::new(1)), ..self }
    }

    fn clear(&self) {
        self.threads.iter().chain([&self.all]).for_each(ProgressBar::finish_and_clear);
    }
}

impl Progress for Bars {
    fn on_progress(&self, thread: usize, part: f64) -> bool {
        if let Some(bar) = self.threads.get(thread) {
            bar.set_position((part * STEPS as f64) as u64);
        }
        let second = self.all.elapsed().as_secs();
        if self.next_look.as_ref().is_some_and(|next| next.fetch_max(second + 1, Ordering::Relaxed) <= second) {
            containers::use_large_pages();
        }
        !self.interrupted.load(Ordering::Relaxed)
    }

    fn finished(&self, _: &Outcome) {
        self.all.inc(1);
    }
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let text = std::fs::read_to_string(&args.scenario)
        .with_context(|| format!("{} cannot be read", args.scenario.display()))?;
    let name = args.scenario.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = if args.live { format!("{name}-live") } else { name };
    let directory = args.out.clone().unwrap_or_else(|| PathBuf::from("lab-results").join(name));
    let campaign = Campaign::new(&text, &args.scenario, &directory, args.seeds, super::bundled::CATALOG)?;
    // A real cluster has its own agents, regardless of the scenario.
    if args.place.master.is_none() {
        campaign.warnings(&args.scenario).iter().for_each(|warning| stdio::err!("tepui: {warning}"));
    }
    let threads = args.threads.unwrap_or_else(|| available_parallelism().map_or(1, usize::from)).min(campaign.runs());
    let threads = if args.live { 1 } else { threads };
    let bars = Bars::new(campaign.runs(), threads, args.json);
    let bars = if args.live { bars } else { bars.with_large_pages() };
    let results = if args.live {
        crate::show_warnings();
        let (place, speed) = (&args.place, args.speed);
        place.check(&text, &args.scenario, speed)?;
        let campaign = campaign.in_mode(&place.mode(speed));
        interruptible(&bars.interrupted, || {
            campaign.run_with(threads, &bars, &|scenario, seed, traces, progress| {
                place.run(scenario, seed, traces, speed, progress)
            })
        })
    } else {
        if args.place.master.is_some() || args.place.burn {
            bail!("--master and --burn need --live: without it a scenario runs under virtual time, with no cluster");
        }
        interruptible(&bars.interrupted, || campaign.run(threads, &bars))
    };
    bars.clear();
    let results = results?;
    if args.json {
        return crate::read::print(&json(&results)?);
    }
    let mut text = tables(&results);
    // Writing to a string cannot fail, here and below.
    let _ = write!(text, "The report is {}", directory.join("report.html").display());
    crate::read::print(&text)
}

fn json(results: &Results) -> Result<String> {
    #[derive(serde::Serialize)]
    struct Row {
        values: Vec<(String, String)>,
        seeds: Vec<u64>,
        digests: Vec<String>,
        numbers: Vec<Spread>,
    }
    let row = |(values, outcomes): &(Vec<(String, String)>, Vec<Outcome>)| Row {
        values: values.clone(),
        seeds: outcomes.iter().map(|outcome| outcome.seed).collect(),
        digests: outcomes.iter().map(|outcome| outcome.digest.clone()).collect(),
        numbers: spreads(outcomes),
    };
    Ok(serde_json::to_string_pretty(&results.iter().map(row).collect::<Vec<_>>())?)
}

/// Titles of the table of frameworks.
const FRAMEWORKS: [&str; 10] = [
    "FRAMEWORK",
    ">TASKS",
    ">FINISHED",
    ">FAILED",
    ">MEAN WAIT s",
    ">99 % WAITED s",
    ">MEAN JOB s",
    ">OFFERS",
    ">DECLINED",
    ">HELD s",
];
/// Titles of the table of windows.
const WINDOWS: [&str; 8] =
    ["WINDOW", ">GAP %", ">DEVIATION %", ">LOST SHARE %", ">JAIN", ">CPUS USED %", ">MEM USED %", ">IN OFFERS %"];
/// Maximum number of rows of frameworks that are printed.
const ROWS: usize = 20;

/// Formats the measures of bundled frameworks.
fn own(first: &Outcome, all: &[Spread]) -> String {
    let mut own = table(&["FRAMEWORK", "METRIC", ">MEAN"]);
    for framework in first.frameworks.iter().take(ROWS) {
        for (name, _) in &framework.own {
            let known = format!("{}.{name}", framework.name);
            let mean = all.iter().find(|spread| spread.name == known).map(in_unit).unwrap_or_default();
            own.add_row([framework.name.clone(), name.clone(), mean]);
        }
    }
    if own.is_empty() { String::new() } else { format!("\n{}\n", own.trim_fmt()) }
}

fn tables(results: &Results) -> String {
    let mut text = String::new();
    for (values, outcomes) in results {
        let Some(first) = outcomes.first() else { continue };
        let values: Vec<String> = values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let seeds =
            if outcomes.len() == 1 { format!("seed {}", first.seed) } else { format!("{} seeds", outcomes.len()) };
        let live = first.live.is_some().then(|| passed(first));
        let _ = writeln!(text, "{}", values.into_iter().chain([seeds]).chain(live).collect::<Vec<_>>().join(", "));
        let all = spreads(outcomes);
        let cell = |name: String| all.iter().find(|spread| spread.name == name).map(in_unit).unwrap_or_default();
        let mut frameworks = table(&FRAMEWORKS);
        for framework in first.frameworks.iter().take(ROWS) {
            let name = &framework.name;
            let of = |what: &str| cell(format!("{name}.{what}"));
            frameworks.add_row([
                name.clone(),
                framework.submitted.to_string(),
                of("finished"),
                of("failed"),
                of("wait.mean"),
                of("wait.p99"),
                of("job.mean"),
                of("offers.received"),
                of("offers.declined"),
                of("offers.held"),
            ]);
        }
        let _ = writeln!(text, "{}", frameworks.trim_fmt());
        if first.frameworks.len() > ROWS {
            let _ = writeln!(text, "and {} more", first.frameworks.len() - ROWS);
        }
        text += &own(first, &all);
        let mut windows = table(&WINDOWS);
        for window in &first.windows {
            let of = |what: &str| cell(format!("{}.{what}", window.name));
            windows.add_row([
                window.name.clone(),
                of("unfairness.gap"),
                of("unfairness.deviation"),
                of("unfairness.lost"),
                of("jain"),
                of("utilisation.cpus"),
                of("utilisation.mem"),
                of("offered"),
            ]);
        }
        let _ = writeln!(text, "\n{}\n", windows.trim_fmt());
    }
    text
}
