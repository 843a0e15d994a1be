//! `tepui task top`: what running tasks use, measured twice on all agents.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use serde::Deserialize;

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
        Ok(show(&first, &second, args.count))
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
            Err(error) => eprintln!("{} is left out: {error:#}", agent.hostname),
        }
    }
    all
}

async fn statistics(address: &str) -> Result<Vec<Entry>> {
    let reply = wire::client::get(&format!("{address}/monitor/statistics")).await?;
    Ok(serde_json::from_slice(&reply.body)?)
}

fn show(first: &Measured, second: &Measured, count: usize) -> String {
    const MEBIBYTE: f64 = 1_048_576.0;
    let mut rows: Vec<(f64, Vec<String>)> = Vec::new();
    for (key, now) in second {
        let Some(before) = first.get(key) else { continue };
        let wall = (now.timestamp - before.timestamp).max(1e-3);
        let cpu = |s: &Statistics| s.cpus_user_time_secs + s.cpus_system_time_secs;
        let share = |difference: f64| (difference / wall).max(0.0);
        let used = share(cpu(now) - cpu(before));
        let limit = if now.cpus_limit > 0.0 { now.cpus_limit } else { now.cpus_soft_limit };
        let (host, framework, executor) = key;
        let row = [
            executor.clone(),
            host.clone(),
            format!("{used:.2}"),
            number(limit),
            format!("{:.0} %", 100.0 * share(now.cpus_throttled_time_secs - before.cpus_throttled_time_secs)),
            format!("{:.1}", now.mem_rss_bytes / MEBIBYTE),
            number((now.mem_limit_bytes / MEBIBYTE).round()),
            now.processes.to_string(),
            framework.clone(),
        ];
        rows.push((used, row.to_vec()));
    }
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let titles = ["TASK", "HOST", ">CPU", ">OF", ">THROTTLED", ">MIB", ">OF", ">PROCESSES", "FRAMEWORK"];
    let mut table = table(&titles);
    let shown = rows.len().min(count);
    for (_, row) in rows.into_iter().take(count) {
        table.add_row(row);
    }
    format!("{table}\n{shown} of {} with a container\n", second.len())
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
        let text = show(&first, &second, 20);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("busy") && lines[1].contains("0.75") && lines[1].contains("3.0"), "{text}");
        assert!(lines[2].starts_with("lazy") && lines[3].is_empty() || lines[3].contains("2 of 3"), "{text}");
    }
}
