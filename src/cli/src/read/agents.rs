//! `tepui agents`: lists agents.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::maintenance::Maintenance;
use super::model::{Agent, Agents, Amounts};
use super::table::{age, table, used, with_state};
use super::{ListArgs, ListOutput, now};
use crate::operate::agents::Action;

/// Maximum number of unreachable agents that are listed.
const UNREACHABLE_SHOWN: usize = 20;
/// Maximum number of agents that are asked for their build at the same time, and the time limit for each answer.
const QUESTIONS: usize = 64;
const ANSWER: Duration = Duration::from_secs(2);

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
    args.list.show(async || {
        let master = &args.list.master;
        if args.list.wants_document() {
            let mut document: Value = master.read("/slaves").await?;
            return Ok(ListOutput::Document(document["slaves"].take()));
        }
        let agents: Agents = master.read("/slaves").await?;
        // Documents that this principal may not see, or that a Mesos master does not have, are left out.
        let planned = master.read("/maintenance/schedule").await.unwrap_or_default();
        let status = master.read("/maintenance/status").await.unwrap_or_default();
        let registry: Registry = master.read("/registrar(1)/registry").await.unwrap_or_default();
        let builds = if args.list.is_wide() { builds(&agents.slaves).await } else { BTreeMap::new() };
        let view = View {
            agents,
            maintenance: Maintenance { planned, status },
            unreachable: registry.unreachable.slaves,
            builds,
            is_wide: args.list.is_wide(),
            now: now().as_secs_f64(),
        };
        Ok(ListOutput::Text(view.text()))
    })
}

/// The part of the registry that no list of agents has.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Registry {
    unreachable: Unreachables,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Unreachables {
    slaves: Vec<Unreachable>,
}

/// An agent that the master has lost contact with.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Unreachable {
    id: Id,
    timestamp: Timestamp,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Id {
    value: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Timestamp {
    nanoseconds: f64,
}

/// Returns the builds of agents by their ids: the `git_tag` of `/version`. Agents that do not answer have none.
async fn builds(agents: &[Agent]) -> BTreeMap<String, String> {
    let mut questions = JoinSet::new();
    let slots = Arc::new(Semaphore::new(QUESTIONS));
    for agent in agents {
        let (id, url, slots) = (agent.id.clone(), format!("{}/version", agent.address()), slots.clone());
        questions.spawn(async move {
            let _slot = slots.acquire_owned().await.ok()?;
            let reply = tokio::time::timeout(ANSWER, wire::client::get(&url)).await.ok()?.ok()?;
            let version: Value = serde_json::from_slice(&reply.body).ok()?;
            Some((id, version["git_tag"].as_str()?.to_owned()))
        });
    }
    let mut builds = BTreeMap::new();
    while let Some(answer) = questions.join_next().await {
        builds.extend(answer.ok().flatten());
    }
    builds
}

/// The content of the list.
#[derive(Default)]
struct View {
    agents: Agents,
    maintenance: Maintenance,
    unreachable: Vec<Unreachable>,
    builds: BTreeMap<String, String>,
    is_wide: bool,
    now: f64,
}

impl View {
    fn text(&self) -> String {
        let mut text = self.table();
        for machine in &self.maintenance.status.down_machines {
            text.push_str(&format!("\ndown for maintenance: {}", machine.name()));
        }
        for lost in self.unreachable.iter().take(UNREACHABLE_SHOWN) {
            let since = age(self.now - lost.timestamp.nanoseconds / 1e9);
            text.push_str(&format!("\nunreachable for {since}: {}", lost.id.value));
        }
        let more = self.unreachable.len().saturating_sub(UNREACHABLE_SHOWN);
        if more > 0 {
            text.push_str(&format!("\nand {more} more that are unreachable"));
        }
        text
    }

    fn table(&self) -> String {
        let (registered, recovered) = (self.agents.slaves.len(), self.agents.recovered_slaves.len());
        if registered + recovered == 0 {
            return "no agents; start one with: tepui agent --master=<host:port> --work_dir=<directory>".to_owned();
        }
        let all = || self.agents.slaves.iter().chain(&self.agents.recovered_slaves);
        // Columns that are often empty are shown only if they are not.
        let has_reserved = self.is_wide || all().any(|agent| !reserved(agent).is_empty());
        let has_attributes = self.is_wide || all().any(|agent| !attributes(agent).is_empty());
        let is_planned = !self.maintenance.planned.windows.is_empty();
        let mut titles = vec!["ID", "HOST", "ADDRESS", "STATE", ">CPUS", ">MEM", ">DISK", ">GPUS", "VERSION"];
        titles.extend(self.is_wide.then_some("BUILD"));
        titles.extend(has_reserved.then_some("RESERVED"));
        titles.extend(has_attributes.then_some("ATTRIBUTES"));
        titles.extend(is_planned.then_some("MAINTENANCE"));
        let mut table = table(&titles);
        let active = self.agents.slaves.iter().map(|agent| (agent, state(agent)));
        for (agent, state) in active.chain(self.agents.recovered_slaves.iter().map(|agent| (agent, "recovered"))) {
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
            row.extend(self.is_wide.then(|| self.builds.get(&agent.id).cloned().unwrap_or_default()));
            row.extend(has_reserved.then(|| reserved(agent)));
            row.extend(has_attributes.then(|| attributes(agent)));
            row.extend(is_planned.then(|| self.maintenance.of(agent, self.now)));
            table.add_row(with_state(row, 3));
        }
        let why = |agent: &Agent| Some(format!("\nunhealthy: {}: {}", agent.id, unhealthy(agent)?));
        let reasons: String = self.agents.slaves.iter().filter_map(why).collect();
        let many = if registered == 1 { "agent" } else { "agents" };
        let awaited = match recovered {
            0 => String::new(),
            _ => format!("; recovered: {recovered} in the registry, not reregistered since the master started"),
        };
        format!("{}\n\n{registered} {many}; used/all{awaited}{reasons}", table.trim_fmt())
    }
}

/// Formats the reservations of each role: `db cpus:1; mem:64`.
fn reserved(agent: &Agent) -> String {
    let one = |(role, amounts): (&String, &Amounts)| format!("{role} {}", amounts.text());
    agent.reserved_resources.iter().map(one).collect::<Vec<String>>().join(", ")
}

/// Formats the attributes as in the agent's flag.
fn attributes(agent: &Agent) -> String {
    let value = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let given = agent.attributes.iter().filter(|(name, _)| *name != "unhealthy");
    given.map(|(name, of)| format!("{name}:{}", value(of))).collect::<Vec<String>>().join(";")
}

/// Returns the state of an agent in a word.
pub(crate) fn state(agent: &Agent) -> &'static str {
    match (agent.drain_info.state.as_str(), agent.active, agent.deactivated) {
        ("DRAINING", ..) => "draining",
        ("DRAINED", ..) => "drained",
        (_, _, true) => "deactivated",
        (_, true, false) => "active",
        (_, false, false) if unhealthy(agent).is_some() => "unhealthy",
        (_, false, false) => "disconnected",
    }
}

/// Returns why an agent is unhealthy; `None` if it is healthy.
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
        let text = View { agents, ..View::default() }.text();
        let line = text.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(line, "S0 host 127.0.0.1:5051 active 1.5/4 0/512 0/0 0/0 1.11.0");
        assert!(text.ends_with("\n1 agent; used/all"), "{text}");
    }

    #[test]
    fn agents_that_a_restarted_master_waits_for() {
        let agents = r#"{"slaves":[],"recovered_slaves":[{"id":"S0","hostname":"host","resources":{"cpus":4.0}}]}"#;
        let text = View { agents: serde_json::from_str(agents).unwrap(), ..View::default() }.text();
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
        let mut view = View { agents, maintenance, ..View::default() };
        let text = view.text();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert!(lines[0].ends_with("MAINTENANCE"), "{text}");
        assert!(lines[1].ends_with("in 2.0 h for 1.0 h"), "{text}");
        // Host name and address must both agree.
        assert!(!lines[2].contains(" h"), "{text}");
        assert!(lines[3].ends_with("now"), "{text}");
        assert!(text.ends_with("\ndown for maintenance: three (10.0.0.4)"), "{text}");
        view.now = 8000.0;
        assert!(view.text().contains("now, for another 47 min"));
    }

    #[test]
    fn columns_that_are_often_empty_and_unreachable_agents() {
        let agents = r#"{"slaves":[{"id":"S0","hostname":"h","attributes":{"rack":"a","speed":2.0},
            "reserved_resources":{"db":{"cpus":1.0,"mem":0.0},"web":{"disk":64.0}}}]}"#;
        let id = Id { value: "S7".to_owned() };
        let unreachable = vec![Unreachable { id, timestamp: Timestamp { nanoseconds: 10e9 } }];
        let builds = [("S0".to_owned(), "tepui-0.1.0".to_owned())].into();
        let agents = serde_json::from_str(agents).unwrap();
        let mut view = View { agents, unreachable, builds, now: 130.0, ..View::default() };
        let text = view.text();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with("RESERVED                ATTRIBUTES"), "{text}");
        assert!(lines[1].ends_with("db cpus:1, web disk:64  rack:a;speed:2.0"), "{text}");
        assert!(text.ends_with("\nunreachable for 2 min: S7"), "{text}");
        view.is_wide = true;
        assert!(view.text().contains("tepui-0.1.0"));
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
