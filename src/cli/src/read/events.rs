//! `tepui events`: prints the operator's stream of events, a line for each.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use wire::client::Records;

use super::print;
use crate::connect::MasterArgs;

/// Types of the events that a master sends.
const TYPES: [&str; 9] = [
    "SUBSCRIBED",
    "TASK_ADDED",
    "TASK_UPDATED",
    "AGENT_ADDED",
    "AGENT_REMOVED",
    "FRAMEWORK_ADDED",
    "FRAMEWORK_UPDATED",
    "FRAMEWORK_REMOVED",
    "HEARTBEAT",
];
/// Interval between two attempts to subscribe, and number of attempts in a row that may fail.
const PAUSE: Duration = Duration::from_secs(1);
const ATTEMPTS: u32 = 60;

/// Flags of `tepui events`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    master: MasterArgs,
    /// Only events of these types, such as TASK_UPDATED,AGENT_REMOVED; by default all but heartbeats
    #[arg(long = "type", short, value_delimiter = ',', value_name = "TYPES", value_parser = kind)]
    types: Vec<String>,
    /// End after this many events
    #[arg(long, short = 'n', value_name = "NUMBER")]
    count: Option<u64>,
    /// Print each event as the master sends it: JSON, a line each
    #[arg(long)]
    json: bool,
}

fn kind(text: &str) -> Result<String> {
    let name = text.to_uppercase();
    match TYPES.contains(&name.as_str()) {
        true => Ok(name),
        false => bail!("the types are {}", TYPES.join(", ")),
    }
}

/// Prints events until it is interrupted. Subscribes again after a change of leaders.
///
/// # Errors
/// No master answers, or it rejects the subscription.
pub fn run(args: &Args) -> Result<ExitCode> {
    crate::block_on(async {
        let mut records = args.master.subscribe().await?;
        let mut left = args.count.unwrap_or(u64::MAX);
        while left > 0 {
            let why = match records.next().await {
                Ok(Some(record)) => {
                    let event = serde_json::from_slice(&record).context("the master's stream cannot be read")?;
                    if args.wants(&event) {
                        print(&args.line(&event))?;
                        left -= 1;
                    }
                    continue;
                }
                Ok(None) => "the master closed it".to_owned(),
                Err(error) => error.to_string(),
            };
            stdio::err!("The stream of events is closed ({why}); subscribing again");
            records = args.subscribe_again().await?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

impl Args {
    async fn subscribe_again(&self) -> Result<Records> {
        let mut attempt = 1;
        loop {
            tokio::time::sleep(PAUSE).await;
            match self.master.subscribe().await {
                Err(_) if attempt < ATTEMPTS => attempt += 1,
                result => return result,
            }
        }
    }

    fn wants(&self, event: &Value) -> bool {
        let kind = event["type"].as_str().unwrap_or_default();
        if self.types.is_empty() { kind != "HEARTBEAT" } else { self.types.iter().any(|wanted| wanted == kind) }
    }

    fn line(&self, event: &Value) -> String {
        match self.json {
            true => event.to_string(),
            false => {
                format!("{}  {:17}  {}", super::time_of_day(), event["type"].as_str().unwrap_or_default(), text(event))
            }
        }
    }
}

/// Describes an event in words.
fn text(event: &Value) -> String {
    let id = |value: &Value| value["value"].as_str().unwrap_or_default().to_owned();
    let state = |value: &Value| value.as_str().unwrap_or_default().trim_start_matches("TASK_").to_lowercase();
    let framework = |value: &Value| {
        let info = &value["framework"]["framework_info"];
        format!("framework {} ({})", id(&info["id"]), info["name"].as_str().unwrap_or_default())
    };
    let list = |value: &Value| value.as_array().map_or(0, Vec::len);
    match event["type"].as_str().unwrap_or_default() {
        "SUBSCRIBED" => {
            let state = &event["subscribed"]["get_state"];
            let agents = list(&state["get_agents"]["agents"]);
            let frameworks = list(&state["get_frameworks"]["frameworks"]);
            format!("agents: {agents}, frameworks: {frameworks}, tasks: {}", list(&state["get_tasks"]["tasks"]))
        }
        "TASK_ADDED" => {
            let task = &event["task_added"]["task"];
            let (task_id, framework, agent) = (id(&task["task_id"]), id(&task["framework_id"]), id(&task["agent_id"]));
            format!("task {task_id} of framework {framework} on agent {agent}: {}", state(&task["state"]))
        }
        "TASK_UPDATED" => {
            let update = &event["task_updated"];
            let (task, framework) = (id(&update["status"]["task_id"]), id(&update["framework_id"]));
            let message = update["status"]["message"].as_str().map(|text| format!(": {text}")).unwrap_or_default();
            format!("task {task} of framework {framework} is {}{message}", state(&update["state"]))
        }
        "AGENT_ADDED" => {
            let info = &event["agent_added"]["agent"]["agent_info"];
            format!("agent {} on {}", id(&info["id"]), info["hostname"].as_str().unwrap_or_default())
        }
        "AGENT_REMOVED" => format!("agent {}", id(&event["agent_removed"]["agent_id"])),
        "FRAMEWORK_ADDED" => framework(&event["framework_added"]),
        "FRAMEWORK_UPDATED" => framework(&event["framework_updated"]),
        "FRAMEWORK_REMOVED" => {
            let info = &event["framework_removed"]["framework_info"];
            format!("framework {} ({})", id(&info["id"]), info["name"].as_str().unwrap_or_default())
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_in_words() {
        let update = json!({"type": "TASK_UPDATED", "task_updated": {"framework_id": {"value": "f"}, "state": "TASK_FAILED",
            "status": {"task_id": {"value": "t"}, "message": "Command exited with status 1"}}});
        assert_eq!(text(&update), "task t of framework f is failed: Command exited with status 1");
        let added = json!({"type": "AGENT_ADDED", "agent_added": {"agent": {"agent_info": {"id": {"value": "S0"}, "hostname": "h"}}}});
        assert_eq!(text(&added), "agent S0 on h");
        assert_eq!(text(&json!({"type": "OTHER"})), "");
        assert!(kind("task_added").is_ok() && kind("tasks").unwrap_err().to_string().contains("TASK_ADDED"));
    }
}
