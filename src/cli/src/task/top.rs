//! `tepui task top`: what running tasks use, measured twice on all agents.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::connect::MasterArgs;
use crate::read::model::Agents;
use crate::read::print;
use crate::read::table::{number, table};

/// Flags of `tepui task top`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    master: MasterArgs,
    /// How long to watch
    #[arg(long, short, default_value = "1secs", value_name = "TIME")]
    interval: String,
    /// How many to show
    #[arg(long, short = 'n', default_value_t = 20, value_name = "COUNT")]
    count: usize,
    /// Print a JSON list instead of a table
    #[arg(long)]
    json: bool,
}

/// One executor's entry of an agent's `/monitor/statistics`.
#[derive(Clone, Debug, Deserialize)]
struct Entry {
    executor_id: String,
    framework_id: String,
    statistics: Statistics,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Statistics {
    timestamp: f64,
    cpus_user_time_secs: f64,
    cpus_system_time_secs: f64,
    cpus_soft_limit: f64,
    cpus_limit: f64,
    cpus_throttled_time_secs: f64,
    mem_rss_bytes: f64,
    mem_limit_bytes: f64,
    processes: u32,
}

/// Measures and prints.
///
/// # Errors
/// No master answers. Agents that do not answer are left out, and named.
pub fn run(args: &Args) -> Result<ExitCode> {
    let interval = base::parse_duration(&args.interval)?.max(Duration::from_millis(100));
    let text = crate::block_on(async {
        let agents: Agents = args.master.read("/slaves").await?;
        let first = measure(&agents).await;
        tokio::time::sleep(interval).await;
        let second = measure(&agents).await;
        let mut used = rows(&first, &second);
        used.truncate(args.count);
        Ok(if args.json { serde_json::to_string_pretty(&used)? } else { show(&used, second.len()) })
    })?;
    print(&text)
}

type Measured = BTreeMap<(String, String, String), Statistics>;

/// What the executors of all agents use, by host, framework and executor.
async fn measure(agents: &Agents) -> Measured {
    let mut all = Measured::new();
    for agent in &agents.slaves {
        match statistics(agent.address()).await {
            Ok(entries) => all.extend(
                entries
                    .into_iter()
                    .map(|entry| ((agent.hostname.clone(), entry.framework_id, entry.executor_id), entry.statistics)),
            ),
            Err(error) => stdio::err!("{} is left out: {error:#}", agent.hostname),
        }
    }
    all
}

async fn statistics(address: &str) -> Result<Vec<Entry>> {
    let reply = wire::client::get(&format!("{address}/monitor/statistics")).await?;
    Ok(serde_json::from_slice(&reply.body)?)
}

/// What one executor used between two measurements.
#[derive(Debug, Serialize)]
struct Row {
    executor_id: String,
    framework_id: String,
    hostname: String,
    /// Processors used, in the mean.
    cpus: f64,
    /// Of how many.
    cpus_limit: f64,
    /// The part of the time in which it was kept from them.
    throttled: f64,
    mem_rss_bytes: f64,
    mem_limit_bytes: f64,
    processes: u32,
}

/// A row for each executor that was there both times, the busiest first.
fn rows(first: &Measured, second: &Measured) -> Vec<Row> {
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
        })
    };
    let mut rows: Vec<Row> = second.iter().filter_map(row).collect();
    rows.sort_by(|a, b| b.cpus.total_cmp(&a.cpus));
    rows
}

/// The rows as a table; `all` executors have a container.
fn show(rows: &[Row], all: usize) -> String {
    const MEBIBYTE: f64 = 1_048_576.0;
    let titles = ["TASK", "HOST", ">CPU", ">OF", ">THROTTLED", ">MIB", ">OF", ">PROCESSES", "FRAMEWORK"];
    let mut table = table(&titles);
    for row in rows {
        table.add_row([
            row.executor_id.clone(),
            row.hostname.clone(),
            format!("{:.2}", row.cpus),
            number(row.cpus_limit),
            format!("{:.0} %", 100.0 * row.throttled),
            format!("{:.1}", row.mem_rss_bytes / MEBIBYTE),
            number((row.mem_limit_bytes / MEBIBYTE).round()),
            row.processes.to_string(),
            row.framework_id.clone(),
        ]);
    }
    match all {
        0 => "no tasks are running".to_owned(),
        _ => format!("{}\n\n{} of {all} with a container", table.trim_fmt(), rows.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
