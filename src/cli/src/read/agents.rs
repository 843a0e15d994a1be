//! `tepui agents`.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::Value;

use super::model::{Agent, Agents};
use super::table::{table, used};
use super::{ListArgs, print};

/// Flags of `tepui agents`.
#[derive(Debug, clap::Args)]
pub struct Args {
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
    print(&show(&agents))
}

fn show(agents: &Agents) -> String {
    if agents.slaves.is_empty() {
        return "no agents; start one with: tepui agent --master=<host:port> --work_dir=<folder>".to_owned();
    }
    let mut table = table(&["ID", "HOST", "ADDRESS", "STATE", ">CPUS", ">MEM", ">DISK", ">GPUS", "VERSION"]);
    for agent in &agents.slaves {
        let share = |name| used(agent.used_resources.get(name), agent.resources.get(name));
        table.add_row([
            agent.id.clone(),
            agent.hostname.clone(),
            agent.address().to_owned(),
            state(agent).to_owned(),
            share("cpus"),
            share("mem"),
            share("disk"),
            share("gpus"),
            agent.version.clone(),
        ]);
    }
    let why = |agent: &Agent| Some(format!("\nunhealthy: {}: {}", agent.id, unhealthy(agent)?));
    let reasons: String = agents.slaves.iter().filter_map(why).collect();
    let many = if agents.slaves.len() == 1 { "agent" } else { "agents" };
    format!("{}\n\n{} {many}; used/all{reasons}", table.trim_fmt(), agents.slaves.len())
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

/// Why an agent wants no tasks, in its own words.
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
        let text = show(&agents);
        let line = text.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(line, "S0 host 127.0.0.1:5051 active 1.5/4 0/512 0/0 0/0 1.11.0");
        assert!(text.ends_with("\n1 agent; used/all"), "{text}");
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
