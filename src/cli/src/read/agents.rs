//! `tepui agents`.

use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::Result;
use serde_json::Value;

use super::maintenance::Maintenance;
use super::model::{Agent, Agents};
use super::table::{table, used};
use super::{ListArgs, print};
use crate::operate::agents::Action;

/// Flags of `tepui agents`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    pub action: Option<Action>,
    #[command(flatten)]
    list: ListArgs,
}

/// Lists agents.
///
/// # Errors
/// The master cannot be read.
pub fn run(args: &Args) -> Result<ExitCode> {
    if args.list.json {
        let document: Value = crate::block_on(args.list.master.read("/slaves"))?;
        return print(&serde_json::to_string_pretty(&document["slaves"])?);
    }
    let agents: Agents = crate::block_on(args.list.master.read("/slaves"))?;
    // Who may not see what is planned for machines is shown the agents all the same.
    let planned = crate::block_on(args.list.master.read("/maintenance/schedule")).unwrap_or_default();
    let status = crate::block_on(args.list.master.read("/maintenance/status")).unwrap_or_default();
    print(&show(&agents, &Maintenance { planned, status }, now()))
}

#[expect(clippy::disallowed_methods, reason = "a person wants to know how soon, and commands are not replayed")]
fn now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

fn show(agents: &Agents, maintenance: &Maintenance, now: f64) -> String {
    let mut text = shown_agents(agents, maintenance, now);
    for machine in &maintenance.status.down_machines {
        text.push_str(&format!("\ndown for maintenance: {}", machine.name()));
    }
    text
}

fn shown_agents(agents: &Agents, maintenance: &Maintenance, now: f64) -> String {
    let (registered, recovered) = (agents.slaves.len(), agents.recovered_slaves.len());
    if registered + recovered == 0 {
        return "no agents; start one with: tepui agent --master=<host:port> --work_dir=<directory>".to_owned();
    }
    let planned = !maintenance.planned.windows.is_empty();
    let mut titles = vec!["ID", "HOST", "ADDRESS", "STATE", ">CPUS", ">MEM", ">DISK", ">GPUS", "VERSION"];
    titles.extend(planned.then_some("MAINTENANCE"));
    let mut table = table(&titles);
    let active = agents.slaves.iter().map(|agent| (agent, state(agent)));
    for (agent, state) in active.chain(agents.recovered_slaves.iter().map(|agent| (agent, "recovered"))) {
        let share = |name| used(agent.used_resources.get(name), agent.resources.get(name));
        let mut row = vec![
            agent.id.clone(),
            agent.hostname.clone(),
            agent.address().to_owned(),
            state.to_owned(),
            share("cpus"),
            share("mem"),
            share("disk"),
            share("gpus"),
            agent.version.clone(),
        ];
        row.extend(planned.then(|| maintenance.of(agent, now)));
        table.add_row(row);
    }
    let why = |agent: &Agent| Some(format!("\nunhealthy: {}: {}", agent.id, unhealthy(agent)?));
    let reasons: String = agents.slaves.iter().filter_map(why).collect();
    let many = if registered == 1 { "agent" } else { "agents" };
    let awaited = match recovered {
        0 => String::new(),
        _ => format!("; recovered: {recovered} in the registry, not reregistered since the master started"),
    };
    format!("{}\n\n{registered} {many}; used/all{awaited}{reasons}", table.trim_fmt())
}

fn state(agent: &Agent) -> &'static str {
    match (agent.drain_info.state.as_str(), agent.active, agent.deactivated) {
        ("DRAINING", ..) => "draining",
        ("DRAINED", ..) => "drained",
        (_, _, true) => "deactivated",
        (_, true, false) => "active",
        (_, false, false) if unhealthy(agent).is_some() => "unhealthy",
        (_, false, false) => "disconnected",
    }
}

/// Why an agent is unhealthy.
fn unhealthy(agent: &Agent) -> Option<&str> {
    agent.attributes.get("unhealthy").and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_an_agent() {
        let agents = serde_json::from_str(
            r#"{"slaves":[{"id":"S0","hostname":"host","pid":"slave(1)@127.0.0.1:5051","active":true,
            "version":"1.11.0","resources":{"cpus":4.0,"mem":512.0,"ports":"[31000-32000]"},"used_resources":{"cpus":1.5}}]}"#,
        )
        .unwrap();
        let text = show(&agents, &Maintenance::default(), 0.0);
        let line = text.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(line, "S0 host 127.0.0.1:5051 active 1.5/4 0/512 0/0 0/0 1.11.0");
        assert!(text.ends_with("\n1 agent; used/all"), "{text}");
    }

    #[test]
    fn agents_that_a_restarted_master_waits_for() {
        let agents = r#"{"slaves":[],"recovered_slaves":[{"id":"S0","hostname":"host","resources":{"cpus":4.0}}]}"#;
        let text = show(&serde_json::from_str(agents).unwrap(), &Maintenance::default(), 0.0);
        let line = text.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(line, "S0 host recovered 0/4 0/0 0/0 0/0");
        let end = "0 agents; used/all; recovered: 1 in the registry, not reregistered since the master started";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn what_is_planned_for_machines() {
        let agents = serde_json::from_str(
            r#"{"slaves":[{"id":"S0","hostname":"One","pid":"slave(1)@10.0.0.1:5051"},
            {"id":"S1","hostname":"one","pid":"slave(1)@10.0.0.2:5051"},{"id":"S2","hostname":"two","pid":"slave(1)@10.0.0.3:5051"}]}"#,
        )
        .unwrap();
        let planned = serde_json::from_str(
            r#"{"windows":[{"machine_ids":[{"hostname":"one","ip":"10.0.0.1"}],"unavailability":{"start":{"nanoseconds":7200000000000},
            "duration":{"nanoseconds":3600000000000}}},{"machine_ids":[{"hostname":"two","ip":"10.0.0.3"}],"unavailability":{"start":{"nanoseconds":0}}}]}"#,
        )
        .unwrap();
        let status = serde_json::from_str(r#"{"down_machines":[{"hostname":"three","ip":"10.0.0.4"}]}"#).unwrap();
        let maintenance = Maintenance { planned, status };
        let text = show(&agents, &maintenance, 0.0);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert!(lines[0].ends_with("MAINTENANCE"), "{text}");
        assert!(lines[1].ends_with("in 2.0 h for 1.0 h"), "{text}");
        // Host name and address must both agree.
        assert!(!lines[2].contains(" h"), "{text}");
        assert!(lines[3].ends_with("now"), "{text}");
        assert!(text.ends_with("\ndown for maintenance: three (10.0.0.4)"), "{text}");
        assert!(show(&agents, &maintenance, 8000.0).contains("now, for another 47 min"));
    }

    #[test]
    fn what_becomes_of_an_agent() {
        let of = |fields: &str| state(&serde_json::from_str(&format!("{{\"id\":\"S0\",{fields}}}")).unwrap());
        assert_eq!(of(r#""active":true"#), "active");
        assert_eq!(of(r#""active":false"#), "disconnected");
        assert_eq!(of(r#""active":false,"attributes":{"unhealthy":"no space"}"#), "unhealthy");
        assert_eq!(of(r#""active":true,"deactivated":true"#), "deactivated");
        assert_eq!(of(r#""active":true,"deactivated":true,"drain_info":{"state":"DRAINING"}"#), "draining");
        assert_eq!(of(r#""active":true,"deactivated":true,"drain_info":{"state":"DRAINED"}"#), "drained");
    }
}
