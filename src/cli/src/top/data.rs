//! Reads the data that `tepui top` shows: from the master, and for tasks from their agents.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;

use crate::connect::MasterArgs;
use crate::read::agents::state;
use crate::read::model::{Agent, Amounts};
use crate::read::table::{number, percent, used};
use crate::task::top::{Measured, TITLES, cells, measure, rows};

/// The document `/state-summary`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Summary {
    slaves: Vec<AgentSummary>,
    frameworks: Vec<FrameworkSummary>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AgentSummary {
    #[serde(flatten)]
    agent: Agent,
    #[serde(rename = "TASK_RUNNING")]
    running: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FrameworkSummary {
    id: String,
    name: String,
    active: bool,
    connected: bool,
    used_resources: Amounts,
    offered_resources: Amounts,
    #[serde(rename = "TASK_STAGING")]
    staging: u64,
    #[serde(rename = "TASK_RUNNING")]
    running: u64,
    #[serde(rename = "TASK_FINISHED")]
    finished: u64,
    #[serde(rename = "TASK_FAILED")]
    failed: u64,
}

/// A table of a tab: titles (those with `>` hold numbers) and rows, each with a number to sort by.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) titles: Vec<&'static str>,
    pub(super) rows: Vec<Row>,
}

/// A row of a table.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    pub(super) cells: Vec<String>,
    /// Use of processors, by which rows are sorted.
    pub(super) weight: f64,
}

/// A snapshot of everything that is shown.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// Summary of the cluster in one line.
    pub(super) line: String,
    /// Used and total processors, memory and disk, with names.
    pub(super) totals: Vec<(&'static str, f64, f64)>,
    pub(super) agents: Table,
    pub(super) roles: Table,
    pub(super) frameworks: Table,
    pub(super) tasks: Table,
}

/// A reader of the cluster. Tasks need two measurements, of which it keeps the last one.
pub(super) struct Reader {
    master: MasterArgs,
    measured: Measured,
}

impl Reader {
    pub(super) fn new(master: MasterArgs) -> Reader {
        Reader { master, measured: Measured::new() }
    }

    /// Reads the cluster.
    ///
    /// # Errors
    /// The master does not answer.
    pub(super) async fn read_view(&mut self) -> Result<View> {
        let summary: Summary = self.master.read("/state-summary").await?;
        let roles: Value = self.master.read("/roles").await?;
        // A master of Mesos has no such call.
        let fairness = self.master.call("GET_FAIRNESS", &Value::Null).await.unwrap_or_default();
        let agents: Vec<&Agent> = summary.slaves.iter().map(|one| &one.agent).collect();
        let (measured, _) = measure(&agents).await;
        let use_of_tasks = rows(&self.measured, &measured);
        self.measured = measured;
        let task_rows = use_of_tasks.iter().map(|row| Row { cells: cells(row), weight: row.cpus }).collect();
        Ok(View {
            line: line(&summary, &fairness),
            totals: totals(&agents),
            agents: agents_table(&summary.slaves),
            roles: roles_table(&roles, &fairness),
            frameworks: frameworks_table(&summary.frameworks, &fairness),
            tasks: Table { titles: TITLES.to_vec(), rows: task_rows },
        })
    }
}

fn line(summary: &Summary, fairness: &Value) -> String {
    let active = summary.slaves.iter().filter(|one| one.agent.active).count();
    let (running, staging) =
        summary.frameworks.iter().fold((0, 0), |sum, one| (sum.0 + one.running, sum.1 + one.staging));
    let jain = fairness["jain_index"].as_f64().map(|jain| format!("   Jain's index {jain:.2}")).unwrap_or_default();
    format!(
        "agents {active}/{}   frameworks {}   tasks {running} running, {staging} staging{jain}",
        summary.slaves.len(),
        summary.frameworks.len()
    )
}

fn totals(agents: &[&Agent]) -> Vec<(&'static str, f64, f64)> {
    let sum = |name: &str, of: fn(&Agent) -> &Amounts| agents.iter().map(|agent| of(agent).get(name)).sum::<f64>();
    let one = |name| (name, sum(name, |agent| &agent.used_resources), sum(name, |agent| &agent.resources));
    ["cpus", "mem", "disk"].map(one).to_vec()
}

fn agents_table(agents: &[AgentSummary]) -> Table {
    let row = |AgentSummary { agent, running }: &AgentSummary| {
        let share = |name| used(agent.used_resources.get(name), agent.resources.get(name));
        let cells = vec![
            agent.id.clone(),
            agent.hostname.clone(),
            state(agent).to_owned(),
            running.to_string(),
            share("cpus"),
            share("mem"),
            share("disk"),
            share("gpus"),
            number(agent.offered_resources.get("cpus")),
        ];
        Row { cells, weight: agent.used_resources.get("cpus") }
    };
    Table {
        titles: vec!["ID", "HOST", "STATE", ">TASKS", ">CPUS", ">MEM", ">DISK", ">GPUS", ">OFFERED"],
        rows: agents.iter().map(row).collect(),
    }
}

fn roles_table(roles: &Value, fairness: &Value) -> Table {
    let shares: BTreeMap<&str, (f64, f64)> = list(fairness, "roles")
        .filter_map(|one| Some((one["role"].as_str()?, (one["share"].as_f64()?, one["fair_share"].as_f64()?))))
        .collect();
    let row = |role: &Value| {
        let name = role["name"].as_str().unwrap_or_default();
        let amounts = |value: &Value| Amounts::deserialize(value).unwrap_or_default().text();
        let share = shares.get(name).copied();
        let cells = vec![
            name.to_owned(),
            number(role["weight"].as_f64().unwrap_or(1.0)),
            share.map(|(share, _)| percent(share)).unwrap_or_default(),
            share.map(|(_, fair)| percent(fair)).unwrap_or_default(),
            role["frameworks"].as_array().map_or(0, Vec::len).to_string(),
            amounts(&role["allocated"]),
            amounts(&role["quota"]["guarantee"]),
            amounts(&role["quota"]["limit"]),
        ];
        Row { cells, weight: share.map_or(0.0, |(share, _)| share) }
    };
    let titles = vec!["ROLE", ">WEIGHT", ">SHARE", ">FAIR", ">FRAMEWORKS", "ALLOCATED", "GUARANTEE", "LIMIT"];
    Table { titles, rows: list(roles, "roles").map(row).collect() }
}

fn frameworks_table(frameworks: &[FrameworkSummary], fairness: &Value) -> Table {
    let mut shares: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for one in list(fairness, "frameworks") {
        // There is one entry for each role.
        let sum = shares.entry(one["framework_id"]["value"].as_str().unwrap_or_default()).or_default();
        sum.0 += one["share"].as_f64().unwrap_or_default();
        sum.1 += one["fair_share"].as_f64().unwrap_or_default();
    }
    let row = |one: &FrameworkSummary| {
        let state = match (one.connected, one.active) {
            (true, true) => "active",
            (true, false) => "inactive",
            (false, _) => "disconnected",
        };
        let share = shares.get(one.id.as_str()).copied();
        let cells = vec![
            one.id.clone(),
            one.name.clone(),
            state.to_owned(),
            share.map(|(share, _)| percent(share)).unwrap_or_default(),
            share.map(|(_, fair)| percent(fair)).unwrap_or_default(),
            one.staging.to_string(),
            one.running.to_string(),
            one.finished.to_string(),
            one.failed.to_string(),
            number(one.used_resources.get("cpus")),
            number(one.used_resources.get("mem")),
            number(one.offered_resources.get("cpus")),
        ];
        Row { cells, weight: one.used_resources.get("cpus") }
    };
    let titles = vec![
        "ID",
        "NAME",
        "STATE",
        ">SHARE",
        ">FAIR",
        ">STAGING",
        ">RUNNING",
        ">FINISHED",
        ">FAILED",
        ">CPUS",
        ">MEM",
        ">OFFERED",
    ];
    Table { titles, rows: frameworks.iter().map(row).collect() }
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value[name].as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tables_of_a_small_cluster() {
        let summary: Summary = serde_json::from_value(json!({
            "slaves": [{"id": "S0", "hostname": "h", "active": true, "TASK_RUNNING": 2,
                        "resources": {"cpus": 4.0, "mem": 512.0}, "used_resources": {"cpus": 1.5, "mem": 64.0}}],
            "frameworks": [{"id": "f", "name": "batch", "active": true, "connected": true, "TASK_RUNNING": 2,
                            "TASK_FAILED": 1, "used_resources": {"cpus": 1.5}}],
        }))
        .unwrap();
        let fairness = json!({
            "jain_index": 0.9,
            "roles": [{"role": "a", "share": 0.375, "fair_share": 0.5}],
            "frameworks": [{"framework_id": {"value": "f"}, "share": 0.25, "fair_share": 0.25},
                           {"framework_id": {"value": "f"}, "share": 0.125, "fair_share": 0.25}],
        });
        let roles = json!({"roles": [{"name": "a", "weight": 2.0, "frameworks": ["f"], "allocated": {"cpus": 1.5},
                                      "quota": {"guarantee": {"cpus": 2.0}, "limit": {}}}]});
        assert_eq!(
            line(&summary, &fairness),
            "agents 1/1   frameworks 1   tasks 2 running, 0 staging   Jain's index 0.90"
        );
        let agents: Vec<&Agent> = summary.slaves.iter().map(|one| &one.agent).collect();
        assert_eq!(totals(&agents)[0], ("cpus", 1.5, 4.0));
        let cells = |table: Table| table.rows[0].cells.join(" ");
        assert_eq!(cells(agents_table(&summary.slaves)), "S0 h active 2 1.5/4 64/512 0/0 0/0 0");
        assert_eq!(cells(roles_table(&roles, &fairness)), "a 2 37.5 % 50.0 % 1 cpus:1.5 cpus:2 ");
        assert_eq!(
            cells(frameworks_table(&summary.frameworks, &fairness)),
            "f batch active 37.5 % 50.0 % 0 2 0 1 1.5 0 0"
        );
    }
}
