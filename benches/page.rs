//! How soon does the master's page show a large cluster, and what do open pages cost the master? A real master with
//! fake agents and running tasks, and a headless Chromium; needs the packages chromium and chromium-driver.
//!
//! Run with `cargo bench --bench page`; `--quick` takes 1,000 agents and 10,000 tasks, `--agents=N --tasks=N` others.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use protos::mesos::v1::TaskState;
use serde_json::json;
use support::agents::Fleet;
use support::daemon::Daemon;
use support::report::{Report, mib};
use support::scheduler::{Encoding, Scheduler, task};
use support::{number, proc, quick};

const AGENT: [(&str, f64); 3] = [("cpus", 100.0), ("mem", 102_400.0), ("disk", 102_400.0)];
const TASK: [(&str, f64); 2] = [("cpus", 1.0), ("mem", 32.0)];
/// Time over which the master's CPU is measured.
const WINDOW: Duration = Duration::from_secs(30);
const PAGES: usize = 10;

/// Waits in the page until the overview shows the number of running tasks; milliseconds since the navigation began.
const SHOWN: &str = "const [tasks, done] = arguments;
    const look = () => document.body.innerText.replace(/[^0-9A-Za-z]/g, '').includes(`Runningtasks${tasks}`)
        ? done(performance.now()) : performance.now() > 60000 ? done(document.body.innerText) : setTimeout(look, 5);
    look();";

fn main() -> Result<()> {
    let report = Report::new("the master's page: a large cluster in a browser");
    let agents = number("agents", if quick() { 1_000 } else { 10_000 });
    let tasks = number("tasks", agents * 10);
    let master = Daemon::master(&[])?;
    let fleet = Fleet::start(master.address, agents, &AGENT, false)?;
    fleet.wait_registered()?;
    let _scheduler = run_tasks(&master, agents, tasks)?;
    master.settle();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(&report, &master, &format!("{agents} agents, {tasks} tasks"), tasks))
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

async fn measure(report: &Report, master: &Daemon, name: &str, tasks: usize) -> Result<()> {
    let url = format!("http://{}/", master.address);
    let idle = busy(master).await;
    let driver = Driver::start()?;
    let browser = driver.browser().await?;

    let mut shown = Vec::new();
    for _ in 0..5 {
        browser.goto("about:blank").await?;
        let before = master.cpu();
        browser.goto(&url).await?;
        let millis = browser.execute_async(SHOWN, vec![json!(tasks)]).await?;
        let millis = millis.as_f64().with_context(|| format!("not shown within a minute, but: {millis}"))?;
        shown.push((millis, master.cpu() - before));
    }
    shown.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (millis, cpu) = shown[shown.len() / 2];
    report.row(&format!("{name}: overview shown"), &format!("{millis:.0} ms"), "", "1000 ms", "");
    report.note("    master's CPU for it", &support::report::millis(cpu));
    let heap = browser.execute("return performance.memory.usedJSHeapSize", vec![]).await?;
    report.note("    heap of the page", &mib(heap.as_u64().unwrap_or_default()));

    for _ in 1..PAGES {
        let tab = browser.new_window(true).await?.handle;
        browser.switch_to_window(tab).await?;
        browser.goto(&url).await?;
        browser.execute_async(SHOWN, vec![json!(tasks)]).await?;
    }
    let open = busy(master).await;
    report.row(&format!("{PAGES} open pages: master's CPU"), &percent(open), "", "2 %", "");
    report.note("    without a page", &percent(idle));
    report.note("    master's peak memory", &mib(proc::memory(master.pid(), "VmHWM")));
    browser.close().await?;
    Ok(())
}

/// The share of a core that the master uses.
async fn busy(master: &Daemon) -> f64 {
    let before = master.cpu();
    tokio::time::sleep(WINDOW).await;
    (master.cpu() - before).as_secs_f64() / WINDOW.as_secs_f64()
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// A running chromedriver, ended when dropped.
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
