//! Measures how soon the master's page shows a large cluster, and the cost of open pages for the master. A real master
//! with fake agents and running tasks, and a headless Chromium; needs the packages chromium and chromium-driver.
//!
//! Run with `cargo bench --bench page`; `--quick` takes 1,000 agents and 10,000 tasks, `--agents=N --tasks=N` others.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod support;

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use protos::mesos::v1::TaskState;
use serde_json::json;
use support::agents::Fleet;
use support::daemon::Daemon;
use support::pages::Pages;
use support::report::{Report, mib};
use support::scheduler::{Encoding, Scheduler, task};
use support::{number, proc, quick};

const AGENT: [(&str, f64); 3] = [("cpus", 100.0), ("mem", 102_400.0), ("disk", 102_400.0)];
const TASK: [(&str, f64); 2] = [("cpus", 1.0), ("mem", 32.0)];
/// Time over which the master's CPU is measured.
const WINDOW: Duration = Duration::from_secs(30);
const PAGES: usize = 10;
/// Number of tasks that start, and that end, each second while the pages are open: as with 100,000 tasks that run for
/// an hour and a half each.
const RATE: usize = 20;
/// Interval at which some of them are started.
const TICK: Duration = Duration::from_millis(100);

/// Script that waits in the page until the overview shows the number of running tasks, and until the whole state is
/// loaded, which ends with the plots over time. It returns milliseconds of both since the start of the navigation, and
/// the longest time in between in which the page did not react.
const SHOWN: &str = "const [tasks, done] = arguments;
    let [first, last, longest] = [0, performance.now(), 0];
    const look = () => {
        const now = performance.now();
        longest = Math.max(longest, now - last);
        last = now;
        const text = document.body.innerText.replace(/[^0-9A-Za-z]/g, '');
        if (!first && text.includes(`Runningtasks${tasks}`)) first = now;
        if (first && text.includes('Tasksovertime')) done([first, now, longest]);
        else if (now > 60000) done(document.body.innerText);
        else setTimeout(look, 5);
    };
    look();";

fn main() -> Result<()> {
    let report = Report::new("the master's page: a large cluster in a browser");
    let agents = number("agents", if quick() { 1_000 } else { 10_000 });
    let tasks = number("tasks", agents * 10);
    let master = Daemon::master(&[])?;
    let fleet = Fleet::start(master.address, agents, &AGENT, false)?;
    fleet.wait_registered()?;
    let scheduler = run_tasks(&master, agents, tasks)?;
    master.settle();
    let name = format!("{agents} agents, {tasks} tasks");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(first_page(&report, &master, &name, tasks))?;

    fleet.finish_new_tasks();
    let churn = Churn::start(scheduler);
    open_pages(&report, &master)?;
    let ended = churn.stop()?;
    report.note("    tasks that started and ended meanwhile", &ended.to_string());
    report.note("    master's peak memory", &mib(proc::memory(master.pid(), "VmHWM")));
    Ok(())
}

/// Starts tasks, spread evenly over the agents, and waits until all run.
fn run_tasks(master: &Daemon, agents: usize, tasks: usize) -> Result<Scheduler> {
    let mut scheduler = Scheduler::subscribe(master.address, Encoding::Protobuf, "bench")?;
    let share = tasks.div_ceil(agents).min(100);
    let (mut launched, mut running) = (0, 0);
    while running < tasks {
        let event = scheduler.event()?;
        for offer in event.offers.into_iter().flat_map(|offers| offers.offers) {
            let batch = share.min(tasks - launched);
            let infos = (launched..launched + batch).map(|n| task(format!("t{n}"), &offer, "bench", "true", &TASK));
            scheduler.launch(&offer, infos.collect());
            launched += batch;
        }
        if let Some(update) = event.update {
            scheduler.acknowledge(&update.status);
            if update.status.state != TaskState::TaskRunning as i32 {
                bail!("a task did not run: {:?}", update.status);
            }
            running += 1;
        }
    }
    scheduler.flush()?;
    Ok(scheduler)
}

/// Measures how soon a browser shows the overview.
async fn first_page(report: &Report, master: &Daemon, name: &str, tasks: usize) -> Result<()> {
    let url = format!("http://{}/", master.address);
    let driver = Driver::start()?;
    let browser = driver.browser().await?;
    let mut shown = Vec::new();
    for _ in 0..5 {
        browser.goto("about:blank").await?;
        let before = master.cpu();
        browser.goto(&url).await?;
        let times = browser.execute_async(SHOWN, vec![json!(tasks)]).await?;
        let millis = |at: usize| times[at].as_f64().with_context(|| format!("not shown within a minute, but: {times}"));
        shown.push((millis(0)?, millis(1)?, millis(2)?, master.cpu() - before));
    }
    shown.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (first, whole, longest, cpu) = shown[shown.len() / 2];
    report.row(&format!("{name}: overview shown"), &format!("{first:.0} ms"), "", "1000 ms", "");
    report.note("    whole state on the page", &format!("{whole:.0} ms"));
    report.note("    longest time without a reaction", &format!("{longest:.0} ms"));
    report.note("    master's CPU for it", &support::report::millis(cpu));
    let heap = browser.execute("return performance.memory.usedJSHeapSize", vec![]).await?;
    report.note("    heap of the page", &mib(heap.as_u64().unwrap_or_default()));
    browser.close().await?;
    Ok(())
}

/// Measures the cost of open pages for the master of a cluster that changes.
fn open_pages(report: &Report, master: &Daemon) -> Result<()> {
    std::thread::sleep(Duration::from_secs(5));
    let without = busy(master);
    let pages = Pages::open(master.address, PAGES)?;
    std::thread::sleep(Duration::from_secs(5));
    let with = busy(master);
    let (calls, bytes) = pages.close()?;
    report.row(&format!("{PAGES} open pages: master's CPU for them"), &percent(with - without), "", "2 %", "");
    report.note("    with them; without", &format!("{}; {}", percent(with), percent(without)));
    report.note("    their calls; bytes of their events", &format!("{calls}; {}", mib(bytes)));
    Ok(())
}

/// A load of tasks that start and end at a steady rate.
struct Churn {
    stopped: Arc<AtomicBool>,
    thread: JoinHandle<Result<usize>>,
}

impl Churn {
    fn start(scheduler: Scheduler) -> Churn {
        let stopped = Arc::<AtomicBool>::default();
        let until = stopped.clone();
        Churn { stopped, thread: std::thread::spawn(move || churn(scheduler, &until)) }
    }

    /// Stops the load and returns the number of tasks.
    fn stop(self) -> Result<usize> {
        self.stopped.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("the scheduler has panicked"))?
    }
}

fn churn(mut scheduler: Scheduler, stopped: &AtomicBool) -> Result<usize> {
    let batch = RATE * TICK.as_millis() as usize / 1000;
    let (mut launched, mut ended, mut offers) = (0, 0, VecDeque::new());
    let mut next = Instant::now();
    while !stopped.load(Ordering::Relaxed) {
        while ended < launched || offers.len() < batch {
            let event = scheduler.event()?;
            offers.extend(event.offers.into_iter().flat_map(|offers| offers.offers));
            if let Some(update) = event.update {
                scheduler.acknowledge(&update.status);
                ended += usize::from(update.status.state == TaskState::TaskFinished as i32);
            }
        }
        for offer in offers.drain(..batch) {
            scheduler.launch(&offer, vec![task(format!("c{launched}"), &offer, "bench", "true", &TASK)]);
            launched += 1;
        }
        scheduler.flush()?;
        next += TICK;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(ended)
}

/// Returns the share of a core that the master uses.
fn busy(master: &Daemon) -> f64 {
    let before = master.cpu();
    std::thread::sleep(WINDOW);
    (master.cpu() - before).as_secs_f64() / WINDOW.as_secs_f64()
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// A running chromedriver, which is killed when this is dropped.
struct Driver {
    process: Child,
    address: String,
}

impl Driver {
    fn start() -> Result<Driver> {
        let mut command = Command::new("chromedriver");
        let mut process =
            command.arg("--port=0").stdout(Stdio::piped()).spawn().context(
                "chromedriver does not start; install the browser: apt-get install chromium chromium-driver",
            )?;
        let output = BufReader::new(process.stdout.take().context("no output of chromedriver")?);
        for line in output.lines() {
            if let Some((_, port)) = line?.trim_end_matches('.').split_once("started successfully on port ") {
                return Ok(Driver { process, address: format!("http://127.0.0.1:{port}") });
            }
        }
        bail!("chromedriver has ended")
    }

    async fn browser(&self) -> Result<Client> {
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--enable-precise-memory-info",
        ];
        let capabilities = json!({ "goog:chromeOptions": { "args": arguments }, "timeouts": { "script": 120_000 } });
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(capabilities.as_object().context("no object")?.clone());
        builder.connect(&self.address).await.context("Chromium does not start")
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
