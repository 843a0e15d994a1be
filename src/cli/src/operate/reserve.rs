//! `tepui reserve`, `tepui unreserve` and `tepui reservations`: changes and lists reservations.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap_complete::ArgValueCompleter;
use serde_json::{Value, json};

use super::reserved::{AgentResources, is_dynamic, last_reservation, parse, role, take, text, volume};
use crate::complete;
use crate::connect::MasterArgs;
use crate::read::table::table;
use crate::read::{ListArgs, ListOutput};
use crate::say::say;

/// Flags of `tepui unreserve`, and some of those of `tepui reserve`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent: its id, the end of its id such as S3, or its host name
    #[arg(add = ArgValueCompleter::new(complete::agents))]
    agent: String,
    /// The resources, such as cpus:1;mem:128
    resources: String,
    /// The role
    #[arg(long, add = ArgValueCompleter::new(complete::roles))]
    role: String,
    #[command(flatten)]
    master: MasterArgs,
}

/// Flags of `tepui reserve`.
#[derive(Debug, clap::Args)]
pub struct ReserveArgs {
    #[command(flatten)]
    args: Args,
    /// A label of the reservation; resources with other labels are another reservation
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
}

fn label(text: &str) -> Result<(String, String)> {
    let (key, value) = text.split_once('=').context("give KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Reserves unreserved resources of an agent for a role.
///
/// # Errors
/// There is no such agent, or the master rejects the call.
pub fn reserve(given: &ReserveArgs) -> Result<ExitCode> {
    let Args { agent, resources, role, master } = &given.args;
    let mut reservation = json!({ "type": "DYNAMIC", "role": role });
    if let Some(principal) = &master.principal {
        reservation["principal"] = json!(principal);
    }
    if !given.labels.is_empty() {
        let labels = given.labels.iter().map(|(key, value)| json!({ "key": key, "value": value }));
        reservation["labels"] = json!({ "labels": labels.collect::<Vec<Value>>() });
    }
    let wanted = parse(resources, &json!([reservation]))?;
    crate::block_on(async {
        let found = AgentResources::find(master, agent).await?;
        send_resource_call(master, "RESERVE_RESOURCES", &found.agent.id, "resources", &wanted).await?;
        say!("{resources} of {} is reserved for role {role}", found.agent.id);
        Ok(ExitCode::SUCCESS)
    })
}

/// Unreserves resources that a call has reserved for a role.
///
/// # Errors
/// There is no such agent or reservation, or the master rejects the call.
pub fn unreserve(Args { agent, resources, role, master }: &Args) -> Result<ExitCode> {
    crate::block_on(async {
        let found = AgentResources::find(master, agent).await?;
        let parts = take(&found.reserved, role, resources).with_context(|| format!("agent {}", found.agent.id))?;
        send_resource_call(master, "UNRESERVE_RESOURCES", &found.agent.id, "resources", &parts).await?;
        say!("{resources} of {} is no longer reserved for role {role}", found.agent.id);
        Ok(ExitCode::SUCCESS)
    })
}

/// Makes a call about resources of an agent.
pub(super) async fn send_resource_call(
    master: &MasterArgs,
    name: &str,
    agent: &str,
    field: &str,
    resources: &[Value],
) -> Result<()> {
    let body = json!({ "agent_id": { "value": agent }, field: resources });
    master.send_call(name, &body).await.with_context(|| format!("agent {agent}"))
}

/// Lists the reserved resources of agents, including volumes.
///
/// # Errors
/// The master does not answer.
pub fn list(args: &ListArgs) -> Result<ExitCode> {
    args.show(async || {
        let agents = AgentResources::all(&args.master).await?;
        if !args.wants_document() {
            return Ok(ListOutput::Text(show(&agents)));
        }
        let one = |agent: &AgentResources| {
            json!({ "agent_id": agent.agent.id, "hostname": agent.agent.hostname, "reserved": agent.reserved })
        };
        Ok(ListOutput::Document(agents.iter().filter(|agent| !agent.reserved.is_empty()).map(one).collect()))
    })
}

fn show(agents: &[AgentResources]) -> String {
    let mut table = table(&["AGENT", "HOST", "ROLE", "RESOURCES", "BY", "VOLUME"]);
    let mut count = 0;
    for AgentResources { agent, reserved } in agents {
        for resource in reserved {
            let by = match (is_dynamic(resource), last_reservation(resource)["principal"].as_str()) {
                (false, _) => "flags of the agent".to_owned(),
                (true, None) => "a call".to_owned(),
                (true, Some(principal)) => principal.to_owned(),
            };
            let volume = volume(resource).unwrap_or_default().to_owned();
            let role = role(resource).to_owned();
            table.add_row([agent.id.clone(), agent.hostname.clone(), role, text(resource), by, volume]);
            count += 1;
        }
    }
    match count {
        0 => "nothing is reserved; reserve with: tepui reserve AGENT 'cpus:1;mem:128' --role=ROLE".to_owned(),
        _ => table.trim_fmt(),
    }
}
