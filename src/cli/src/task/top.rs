//! `tepui task top`: shows what running tasks use, measured twice on all agents.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::connect::MasterArgs;
use crate::read::model::{Agent, Agents};
use crate::read::print;
use crate::read::table::{number, table};

/// Flags of `tepui task top`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    master: MasterArgs,
    /// How long to measure
    #[arg(long, short, default_value = "1secs", value_name = "TIME")]
    interval: String,
    /// Number of tasks to show
    #[arg(long, short = 'n', default_value_t = 20, value_name = "COUNT")]
    count: usize,
    /// Print a JSON list instead of a table
    #[arg(long)]
    json: bool,
}

/// An entry of an agent's `/monitor/statistics`, for one executor.
#[derive(Clone, Debug, Deserialize)]
struct Entry {
    executor_id: String,
    framework_id: String,
    statistics: Statistics,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Statistics {
    pub(crate) timestamp: f64,
    pub(crate) cpus_user_time_secs: f64,
    pub(crate) cpus_system_time_secs: f64,
    pub(crate) cpus_soft_limit: f64,
    pub(crate) cpus_limit: f64,
    pub(crate) cpus_throttled_time_secs: f64,
    pub(crate) mem_rss_bytes: f64,
    pub(crate) mem_limit_bytes: f64,
    pub(crate) processes: u32,
    /// Seconds in which some process waited for processors, memory and disks; `None` where the kernel does not count
    /// that.
    #[serde(skip)]
    pub(crate) stalled: [Option<f64>; 3],
}

/// Measures the running tasks, and prints a table.
///
/// # Errors
/// No master answers. Agents that do not answer are left out, and named.
pub fn run(args: &Args) -> Result<ExitCode> {
    let interval = base::parse_duration(&args.interval)?.max(Duration::from_millis(100));
    let text = crate::block_on(async {
        let agents: Agents = args.master.read("/slaves").await?;
        let agents: Vec<&Agent> = agents.slaves.iter().collect();
        let (first, _) = measure(&agents).await;
        tokio::time::sleep(interval).await;
        let (second, silent) = measure(&agents).await;
        silent.iter().for_each(|why| stdio::err!("skipped: {why}"));
        let mut used = rows(&first, &second);
        used.truncate(args.count);
        Ok(if args.json { serde_json::to_string_pretty(&used)? } else { show(&used, second.len()) })
    })?;
    print(&text)
}

/// The statistics of executors, by host, framework and executor.
pub(crate) type Measured = BTreeMap<(String, String, String), Statistics>;

/// Maximum number of agents that are asked at the same time, and the time limit for each answer.
const QUESTIONS: usize = 64;
const ANSWER: Duration = Duration::from_secs(2);

/// Measures the executors of agents. Also returns the host of each agent that does not answer, with the reason.
pub(crate) async fn measure(agents: &[&Agent]) -> (Measured, Vec<String>) {
    let (mut questions, slots) = (JoinSet::new(), Arc::new(Semaphore::new(QUESTIONS)));
    for agent in agents {
        let (host, address, slots) = (agent.hostname.clone(), agent.address().to_owned(), slots.clone());
        questions.spawn(async move {
            let _slot = slots.acquire_owned().await;
            let statistics = tokio::time::timeout(ANSWER, statistics(&address)).await;
            (host, statistics.unwrap_or_else(|_| Err(anyhow!("no answer in {ANSWER:?}"))))
        });
    }
    let (mut all, mut silent) = (Measured::new(), Vec::new());
    while let Some(answer) = questions.join_next().await {
        match answer {
            Ok((host, Ok(entries))) => {
                let key = |entry: &Entry| (host.clone(), entry.framework_id.clone(), entry.executor_id.clone());
                all.extend(entries.into_iter().map(|entry| (key(&entry), entry.statistics)));
            }
            Ok((host, Err(error))) => silent.push(format!("{host}: {error:#}")),
            Err(_) => {}
        }
    }
    (all, silent)
}

/// Returns the statistics of an agent's executors, with the time that their processes waited, where the kernel counts
/// that.
async fn statistics(address: &str) -> Result<Vec<Entry>> {
    let reply = wire::client::get(&format!("{address}/monitor/statistics")).await?;
    let mut entries: Vec<Entry> = serde_json::from_slice(&reply.body)?;
    if entries.is_empty() {
        return Ok(entries);
    }
    // An agent of Mesos has no such page.
    let Ok(metrics) = wire::client::get(&format!("{address}/metrics")).await else { return Ok(entries) };
    let text = metrics.text();
    let pressures = pressures(&text);
    for Entry { framework_id, executor_id, statistics } in &mut entries {
        let owner = (framework_id.as_str(), executor_id.as_str());
        statistics.stalled = ["cpu", "memory", "io"].map(|one| pressures.get(&(owner.0, owner.1, one)).copied());
    }
    Ok(entries)
}

/// Parses the seconds in which some process of an executor's container waited, by framework, executor and resource.
fn pressures(metrics: &str) -> BTreeMap<(&str, &str, &str), f64> {
    let mut all = BTreeMap::new();
    for line in metrics.lines().filter(|line| line.contains("kind=\"some\"")) {
        let Some(labels) = line.strip_prefix("tepui_container_pressure_seconds_total{") else { continue };
        let label = |name: &str| {
            let (_, rest) = labels.split_once(&format!("{name}=\""))?;
            Some(rest.split_once('"')?.0)
        };
        let value = line.rsplit(' ').next().and_then(|text| text.parse::<f64>().ok());
        let key = (label("framework_id"), label("executor_id"), label("resource"));
        if let ((Some(framework), Some(executor), Some(resource)), Some(value)) = (key, value) {
            *all.entry((framework, executor, resource)).or_insert(0.0) += value;
        }
    }
    all
}

/// The usage of one executor between two measurements.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    executor_id: String,
    framework_id: String,
    hostname: String,
    /// Average number of processors in use.
    pub(crate) cpus: f64,
    /// Number of processors that the executor may use.
    cpus_limit: f64,
    /// Share of the time in which the executor was throttled.
    throttled: f64,
    mem_rss_bytes: f64,
    mem_limit_bytes: f64,
    processes: u32,
    /// Shares of the time in which some process waited for processors, memory and disks; null where that is not
    /// counted.
    stalled: [Option<f64>; 3],
}

/// Returns a row for each executor that was measured both times, the busiest first.
pub(crate) fn rows(first: &Measured, second: &Measured) -> Vec<Row> {
    let row = |(key, now): (&(String, String, String), &Statistics)| {
        let before = first.get(key)?;
        let wall = (now.timestamp - before.timestamp).max(1e-3);
        let cpu = |s: &Statistics| s.cpus_user_time_secs + s.cpus_system_time_secs;
        let share = |difference: f64| (difference / wall).max(0.0);
        let (host, framework, executor) = key;
        Some(Row {
            executor_id: executor.clone(),
            framework_id: framework.clone(),
            hostname: host.clone(),
            cpus: share(cpu(now) - cpu(before)),
            cpus_limit: if now.cpus_limit > 0.0 { now.cpus_limit } else { now.cpus_soft_limit },
            throttled: share(now.cpus_throttled_time_secs - before.cpus_throttled_time_secs),
            mem_rss_bytes: now.mem_rss_bytes,
            mem_limit_bytes: now.mem_limit_bytes,
            processes: now.processes,
            stalled: std::array::from_fn(|at| Some(share(now.stalled[at]? - before.stalled[at]?))),
        })
    };
    let mut rows: Vec<Row> = second.iter().filter_map(row).collect();
    rows.sort_by(|a, b| b.cpus.total_cmp(&a.cpus));
    rows
}

/// Titles of the columns of [`cells`].
pub(crate) const TITLES: [&str; 12] = [
    "TASK",
    "HOST",
    ">CPU",
    ">OF",
    ">THROTTLED",
    ">MIB",
    ">OF",
    ">CPU WAIT",
    ">MEM WAIT",
    ">IO WAIT",
    ">PROCESSES",
    "FRAMEWORK",
];

/// Formats the cells of a row.
pub(crate) fn cells(row: &Row) -> Vec<String> {
    const MEBIBYTE: f64 = 1_048_576.0;
    let [cpu, memory, io] =
        row.stalled.map(|part| part.map_or("-".to_owned(), |part| format!("{:.0} %", 100.0 * part)));
    vec![
        row.executor_id.clone(),
        row.hostname.clone(),
        format!("{:.2}", row.cpus),
        number(row.cpus_limit),
        format!("{:.0} %", 100.0 * row.throttled),
        format!("{:.1}", row.mem_rss_bytes / MEBIBYTE),
        number((row.mem_limit_bytes / MEBIBYTE).round()),
        cpu,
        memory,
        io,
        row.processes.to_string(),
        row.framework_id.clone(),
    ]
}

/// Formats the rows as a table; `all` is the number of executors with a container.
fn show(rows: &[Row], all: usize) -> String {
    let mut table = table(&TITLES);
    for row in rows {
        table.add_row(cells(row));
    }
    match all {
        0 => "no tasks are running".to_owned(),
        _ => format!("{}\n\n{} of {all} with a container; `tepui top` shows them live", table.trim_fmt(), rows.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressures_of_executors() {
        let metrics = "# TYPE x counter\ntepui_container_pressure_seconds_total{framework_id=\"f\",executor_id=\"e\",\
            container_id=\"c\",resource=\"cpu\",kind=\"some\"} 2.5\ntepui_container_pressure_seconds_total{framework_id=\"f\",\
            executor_id=\"e\",container_id=\"c\",resource=\"cpu\",kind=\"full\"} 9.0\n";
        assert_eq!(pressures(metrics), [(("f", "e", "cpu"), 2.5)].into());
    }

    #[test]
    fn the_busiest_first() {
        let at = |timestamp: f64, cpu: f64| Statistics {
            timestamp,
            cpus_user_time_secs: cpu,
            cpus_soft_limit: 1.1,
            mem_rss_bytes: 3.0 * 1_048_576.0,
            ..Statistics::default()
        };
        let key = |name: &str| ("host".to_owned(), "f".to_owned(), name.to_owned());
        let first = [(key("lazy"), at(10.0, 1.0)), (key("busy"), at(10.0, 1.0))].into();
        let second = [(key("lazy"), at(12.0, 1.1)), (key("busy"), at(12.0, 2.5)), (key("new"), at(12.0, 0.0))].into();
        let text = show(&rows(&first, &second), second.len());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("busy") && lines[1].contains("0.75") && lines[1].contains("3.0"), "{text}");
        assert!(lines[2].starts_with("lazy") && lines[3].is_empty() && lines[4].starts_with("2 of 3"), "{text}");
        assert!(lines.iter().all(|line| line.trim_end() == *line), "{text}");
        let json = serde_json::to_value(rows(&first, &second)).unwrap();
        assert_eq!((json[0]["executor_id"].as_str(), json[0]["cpus"].as_f64()), (Some("busy"), Some(0.75)), "{json}");
        assert_eq!(show(&[], 0), "no tasks are running");
    }
}
