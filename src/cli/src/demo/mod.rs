//! `tepui demo`: runs a small cluster with the three bundled frameworks and real work, shows how they share it, and
//! writes a report at the end.

mod frame;
mod report;
mod score;
mod view;
mod work;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::connect::MasterArgs;
use crate::daemons;
use crate::embedded::{ClusterOptions, start_cluster};
use crate::interrupt::Interrupt;
use frame::RunHistory;
use work::{Frameworks, Sharing};

/// Number of agents of the embedded cluster.
const AGENTS: usize = 3;
/// Interval between two frames.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum duration of a run; a longer one has failed.
const LONGEST: Duration = Duration::from_secs(1800);

/// Flags of `tepui demo`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How training jobs and video queries share what their framework has: first by the quality that it brings and then
    /// evenly, to compare (both), or only one of these (quality, fair)
    #[arg(long, default_value = "both", value_name = "POLICY")]
    policy: Policy,
    /// Use a running cluster instead of starting one
    #[arg(long, short, value_name = "MASTER")]
    master: Option<String>,
    /// What each agent of the started cluster offers
    #[arg(long, default_value = "cpus:4;mem:2048;disk:2048")]
    resources: String,
    /// File to write the report to
    #[arg(long, default_value = "tepui-demo.html", value_name = "FILE")]
    report: PathBuf,
    /// Keep the cluster's directory with all sandboxes
    #[arg(long)]
    keep: bool,
}

/// What to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Policy {
    Quality,
    Fair,
    Both,
}

impl Policy {
    /// Returns the kinds of sharing, one for each run.
    fn runs(self) -> &'static [Sharing] {
        match self {
            Policy::Quality => &[Sharing::Quality],
            Policy::Fair => &[Sharing::Fair],
            Policy::Both => &[Sharing::Quality, Sharing::Fair],
        }
    }
}

/// Runs the demo. The exit code is 0 if every task succeeded.
///
/// # Errors
/// The cluster failed, or a task failed; the message has the reason, and where to look.
pub fn run(args: Args) -> Result<ExitCode> {
    crate::show_warnings();
    if let Some(master) = &args.master {
        let directory = std::env::temp_dir().join(format!("tepui-demo-{}", std::process::id()));
        let result = crate::block_on(on(master, &directory, 1, &args));
        if !args.keep {
            // Remaining files do no harm.
            let _ = std::fs::remove_dir_all(&directory);
        }
        return result;
    }
    let options = ClusterOptions { agents: AGENTS, resources: args.resources.clone(), ..ClusterOptions::default() };
    let cluster = start_cluster(&options).context("cannot start a cluster")?;
    stdio::err!("started a master on {} and {AGENTS} agents in {}", cluster.master(), cluster.work_dir().display());
    let directory = cluster.work_dir();
    let result = crate::block_on(on(&cluster.master(), &directory.join("demo"), AGENTS, &args));
    let failed = !matches!(&result, Ok(code) if *code == ExitCode::SUCCESS);
    cluster.stop(args.keep || failed)?;
    if args.keep || failed {
        stdio::err!("the sandboxes are in {}", directory.display());
    }
    result
}

/// Runs everything on a cluster that has this many agents, or will have them soon.
async fn on(master: &str, directory: &Path, agents: usize, args: &Args) -> Result<ExitCode> {
    let reader = MasterArgs { master: master.to_owned(), principal: None, secret: None };
    reader.wait_for_agents(agents, daemons::READY).await?;
    let interrupt = Interrupt::watch()?;
    std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let (mut runs, mut wrong) = (Vec::new(), Vec::new());
    for sharing in args.policy.runs() {
        let (history, ending) = play(&reader, directory, *sharing, &interrupt).await?;
        wrong.extend(ending.into_iter().chain(history.wrong()));
        runs.push((*sharing, history));
        if interrupt.is_set() {
            break;
        }
    }
    let picture = work::picture(directory)?;
    std::fs::write(&args.report, report::page(&runs, picture.as_deref()))
        .with_context(|| format!("cannot write {}", args.report.display()))?;
    crate::read::print(&report::summary(&runs))?;
    crate::read::print(&format!("The report is {}", args.report.display()))?;
    if interrupt.is_set() {
        return Ok(ExitCode::from(130));
    }
    match wrong.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => bail!("{}", wrong.join("\n")),
    }
}

/// Runs all the work once. Returns why it did not end in time, if it did not, and which tasks failed.
async fn play(
    master: &MasterArgs,
    directory: &Path,
    sharing: Sharing,
    interrupt: &Interrupt,
) -> Result<(RunHistory, Vec<String>)> {
    stdio::err!("cores are shared {}; generating two streams and profiling the queries", sharing.words());
    let frameworks = Frameworks::start(&master.master, directory, sharing).await?;
    let mut view = view::new();
    let (mut history, began) = (RunHistory::default(), now());
    let ending = loop {
        let frame = frameworks.sample(master, began.elapsed()).await?;
        view.show(&frame);
        let over = frame.is_over();
        history.add(frame);
        if over {
            break None;
        }
        if interrupt.is_set() {
            break Some("interrupted".to_owned());
        }
        if began.elapsed() > LONGEST {
            break Some(format!("not done after {} s", LONGEST.as_secs()));
        }
        tokio::time::sleep(SAMPLE_INTERVAL).await;
    };
    drop(view);
    let failures = frameworks.failures(master).await;
    frameworks.stop().await;
    Ok((history, ending.into_iter().chain(failures?).collect()))
}

#[expect(clippy::disallowed_methods, reason = "how long the demo takes is shown to a person")]
fn now() -> Instant {
    Instant::now()
}
