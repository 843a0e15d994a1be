//! Measures the overhead of the library: 1,000 times `true` on one agent with cpus:64, launched by a scheduler that
//! uses the wire directly (as in benches/tasks.rs) and by a small scheduler on the SDK.
//!
//! Each warms up with a run that does not count; then they alternate in the order ABBA, so that a machine that becomes
//! slower favours neither. The medians count. CPU time is that of this process, which is the scheduler's side.
//!
//! Run with `cargo xtask bench one_page`; `--quick` runs 200 tasks, `--rounds=N` repeats ABBA, `--state` keeps state.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[path = "../../../benches/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use support::daemon::Daemon;
use support::report::{Report, rate};
use support::{number, quick};
use tepui_sdk::base::Time;
use tepui_sdk::driver::{Encoding, Options};
use tepui_sdk::resources::{Resources, Role, parse_text};
use tepui_sdk::v1::{FrameworkInfo, TaskState, framework_info};
use tepui_sdk::{Calls, Ending, Event, Packer, is_terminal};

fn main() -> Result<()> {
    let tasks = number("tasks", if quick() { 200 } else { 1_000 });
    let rounds = number("rounds", if quick() { 1 } else { 3 });
    let report =
        Report::new(&format!("{tasks} real tasks (`true`, 1 cpu) on one agent with cpus:64, {rounds} rounds of ABBA"));
    let raw = || on_a_cluster(|master| run_raw(master, tasks));
    let paged = || on_a_cluster(|master| run_sdk(master, tasks));
    raw()?;
    paged()?;
    let (mut raws, mut pages) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        raws.push(raw()?);
        pages.push(paged()?);
        pages.push(paged()?);
        raws.push(raw()?);
    }
    let (raw, raw_cpu) = medians(&raws);
    let (page, page_cpu) = medians(&pages);
    let each = |cpu: Duration| format!("{:.0} µs", cpu.as_secs_f64() * 1e6 / tasks as f64);
    report.note("tasks a second, speaking the wire", &rate(tasks, raw));
    report.note("tasks a second, one page on the sdk", &rate(tasks, page));
    report.note("CPU time of a task, speaking the wire", &each(raw_cpu));
    report.note("CPU time of a task, one page on the sdk", &each(page_cpu));
    let share = format!("{:.0} %", 100.0 * raw.as_secs_f64() / page.as_secs_f64());
    report.row("rate on the sdk against the wire", &share, "90 %", "", "");
    Ok(())
}

/// Returns the medians of wall time and of CPU time.
fn medians(runs: &[(Duration, Duration)]) -> (Duration, Duration) {
    let (mut walls, mut cpus): (Vec<Duration>, Vec<Duration>) = runs.iter().copied().unzip();
    (support::quantile(&mut walls, 0.5), support::quantile(&mut cpus, 0.5))
}

/// Returns the wall time of a run and the CPU time that this process used for it.
fn on_a_cluster(run: impl FnOnce(&Daemon) -> Result<Duration>) -> Result<(Duration, Duration)> {
    let master = Daemon::master(&["--allocation_interval=1secs"])?;
    let agent = Daemon::agent(&master, "cpus:64;mem:65536;disk:65536;ports:[]")?;
    let before = own_cpu()?;
    let took = run(&master).with_context(|| format!("agent: {}", agent.log()))?;
    Ok((took, own_cpu()? - before))
}

/// Returns the CPU time that all threads of this process have used so far.
fn own_cpu() -> Result<Duration> {
    Ok(nix::time::clock_gettime(nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID)?.into())
}

/// Runs `tasks` without the library and returns the time from the first offer to the end of the last task.
fn run_raw(master: &Daemon, tasks: usize) -> Result<Duration> {
    use support::scheduler::{Encoding, Scheduler, amount, task};
    let mut scheduler = Scheduler::subscribe(master.address, Encoding::Protobuf, "bench")?;
    let (mut launched, mut ended, mut start) = (0, 0, None);
    while ended < tasks {
        let event = scheduler.event()?;
        for offer in event.offers.into_iter().flat_map(|o| o.offers) {
            start.get_or_insert_with(Instant::now);
            let batch = (amount(&offer, "cpus") as usize).min(tasks - launched);
            let make = |n: usize| task(format!("t{n}"), &offer, "bench", "true", &[("cpus", 1.0), ("mem", 32.0)]);
            let infos = (launched..launched + batch).map(make).collect();
            launched += batch;
            scheduler.launch(&offer, infos);
        }
        if let Some(update) = event.update {
            scheduler.acknowledge(&update.status);
            ended += usize::from(is_terminal(update.status.state()));
        }
    }
    scheduler.flush()?;
    let took = start.context("no offer came")?.elapsed();
    scheduler.teardown()?;
    Ok(took)
}

/// The small scheduler on the SDK that runs `true` repeatedly.
struct Page {
    left: usize,
    finished: usize,
    needs: Resources,
    start: Option<Instant>,
    took: Duration,
}

impl tepui_sdk::Scheduler for Page {
    fn on_event(&mut self, event: Event, _now: Time, calls: &mut Calls) {
        match event {
            Event::Offers(offers) => {
                self.start.get_or_insert_with(Instant::now);
                let mut packer = Packer::new(offers);
                while self.left > 0 {
                    let task = tepui_sdk::task::shell(&format!("t{}", self.left), "true", &self.needs);
                    if packer.place(task).is_err() {
                        break;
                    }
                    self.left -= 1;
                }
                // Declines the rest of an offer for a while, as the scheduler without the library does.
                packer.finish(calls, tepui_sdk::DEFAULT_REFUSAL);
            }
            Event::Update(status) if is_terminal(status.state()) => {
                self.finished += usize::from(status.state() == TaskState::TaskFinished);
                if self.left == 0 && calls.tasks().is_empty() {
                    self.took = self.start.map(|s| s.elapsed()).unwrap_or_default();
                    calls.teardown();
                }
            }
            _ => {}
        }
    }
}

fn run_sdk(master: &Daemon, tasks: usize) -> Result<Duration> {
    let multi_role = framework_info::Capability { r#type: Some(framework_info::capability::Type::MultiRole as i32) };
    let framework = FrameworkInfo {
        user: user(),
        name: "page".into(),
        roles: vec!["bench".into()],
        capabilities: vec![multi_role],
        ..Default::default()
    };
    let mut options = Options::new(&master.address.to_string(), framework)?;
    options.encoding = Encoding::Protobuf;
    if std::env::args().any(|a| a == "--state") {
        options.state = Some(Box::new(tepui_sdk::state::Memory::default()));
    }
    let needs = parse_text("cpus:1;mem:32", &Role::star())?;
    let page = Page { left: tasks, finished: 0, needs, start: None, took: Duration::ZERO };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let finished = runtime.block_on(tepui_sdk::driver::run(page, options));
    match finished.ending {
        Ending::Stopped if finished.scheduler.finished == tasks => Ok(finished.scheduler.took),
        other => bail!("{other:?}, {} of {tasks} finished", finished.scheduler.finished),
    }
}

fn user() -> String {
    nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten().map_or_else(|| "root".to_owned(), |u| u.name)
}
