//! What the demo says at its end: the table of what ran where, or why it failed and where to look.

use std::time::Duration;

use serde_json::Value;

use super::record::{Record, Records};
use crate::connect::MasterArgs;
use crate::read::model::Agent;
use crate::read::table::table;

/// The table of all tasks, and the sum.
pub(super) fn summary(records: &Records, agents: &[Agent], took: Duration) -> String {
    let mut table = table(&["TASK", "AGENT", ">SECONDS", "RESULT"]);
    for (id, record) in &records.0 {
        let seconds = record.took().map_or_else(|| "-".to_owned(), |t| format!("{:.2}", t.as_secs_f64()));
        table.add_row([id.clone(), place(record, agents), seconds, result(record)]);
    }
    let finished = records.0.values().filter(|r| r.finished()).count();
    let busy: f64 = records.0.values().filter_map(Record::took).map(|t| t.as_secs_f64()).sum();
    let mut by_agent = Vec::new();
    for agent in agents {
        let count = records.0.values().filter(|r| r.agent == agent.id).count();
        by_agent.push(count.to_string());
    }
    format!(
        "{}\n\n{finished} of {} tasks finished in {:.1} s ({busy:.1} s of work); tasks by agent: {}",
        table.trim_fmt(),
        records.0.len(),
        took.as_secs_f64(),
        by_agent.join(", ")
    )
}

/// The agent by the number that it has on the screen, and its host.
fn place(record: &Record, agents: &[Agent]) -> String {
    match agents.iter().position(|a| a.id == record.agent) {
        Some(place) => format!("agent {} {}", place + 1, record.host),
        None => record.host.clone(),
    }
}

fn result(record: &Record) -> String {
    match (record.finished(), record.ended) {
        (true, _) => "exit 0".to_owned(),
        (false, Some(_)) => {
            let state = record.state.as_str_name().trim_start_matches("TASK_").to_lowercase();
            format!("{state}: {}", record.message)
        }
        (false, None) => "ended by the demo".to_owned(),
    }
}

/// Where the sandbox of a task is, and the end of what it wrote to standard error, as the agent tells.
pub(super) async fn sandbox(id: &str, record: &Record, agents: &[Agent], master: &MasterArgs) -> String {
    let Some(agent) = agents.iter().find(|a| a.id == record.agent) else { return String::new() };
    let on_agent = MasterArgs { master: agent.address().to_owned(), ..master.clone() };
    let Ok(state) = on_agent.read::<Value>("/state").await else {
        return format!("the agent {} does not say where its sandbox is", agent.address());
    };
    let Some(directory) = directory(&state, id) else {
        return format!("the agent {} knows nothing of it: it ended before it had a sandbox", agent.address());
    };
    let path = format!("/files/read?path={directory}/stderr&offset=0&length=2000");
    let said = on_agent.read::<Value>(&path).await.ok();
    let said = said.as_ref().and_then(|v| v["data"].as_str()).unwrap_or_default().trim_end();
    format!("its sandbox: {directory}\nits standard error:\n{said}")
}

/// The sandbox of the executor that ran a command task: both have the same id.
fn directory(state: &Value, task: &str) -> Option<String> {
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let both = |value: &Value, one: &str, other: &str| [list(value, one), list(value, other)].concat();
    let frameworks = both(state, "frameworks", "completed_frameworks");
    let executors = frameworks.iter().flat_map(|f| both(f, "executors", "completed_executors"));
    executors.filter(|e| e["id"] == task).find_map(|e| e["directory"].as_str().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sandbox_is_found_among_running_and_completed() {
        let state = serde_json::json!({ "frameworks": [{ "executors": [{ "id": "a", "directory": "/a" }] }],
            "completed_frameworks": [{ "completed_executors": [{ "id": "b", "directory": "/b" }] }] });
        assert_eq!(directory(&state, "a").as_deref(), Some("/a"));
        assert_eq!(directory(&state, "b").as_deref(), Some("/b"));
        assert_eq!(directory(&state, "c"), None);
    }
}
