//! `tepui volumes`: lists, creates, destroys, grows and shrinks persistent volumes.

use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use clap_complete::ArgValueCompleter;
use serde_json::{Value, json};

use super::confirm::confirm;
use super::reserve::send_resource_call;
use super::reserved::{AgentResources, amount, role, volume};
use crate::complete;
use crate::connect::MasterArgs;
use crate::read::model::Agent;
use crate::read::table::{number, table};
use crate::read::{ListArgs, ListOutput};
use crate::say::say;

/// Flags of `tepui volumes`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: ListArgs,
}

/// What to do with volumes.
#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Create a volume out of disk that is reserved for a role
    Create {
        /// The agent: its id, the end of its id such as S3, or its host name
        #[arg(add = ArgValueCompleter::new(complete::agents))]
        agent: String,
        /// Size, such as 512MB or 10GB
        #[arg(value_parser = megabytes)]
        size: f64,
        /// The role that the disk is reserved for
        #[arg(long, add = ArgValueCompleter::new(complete::roles))]
        role: String,
        /// The volume's id; by default a new one
        #[arg(long)]
        id: Option<String>,
        /// Path at which containers see it
        #[arg(long, default_value = "data", value_name = "PATH")]
        path: String,
        #[command(flatten)]
        master: MasterArgs,
    },
    /// Delete a volume with all its data
    Destroy {
        #[command(flatten)]
        named: Named,
        /// Do not ask for confirmation at a terminal
        #[arg(long, short)]
        yes: bool,
    },
    /// Add reserved disk of the agent to a volume
    Grow {
        #[command(flatten)]
        named: Named,
        /// How much to add, such as 512MB
        #[arg(value_parser = megabytes)]
        by: f64,
    },
    /// Return disk of a volume to its reservation
    Shrink {
        #[command(flatten)]
        named: Named,
        /// How much to return, such as 512MB
        #[arg(value_parser = megabytes)]
        by: f64,
    },
}

/// A volume.
#[derive(Debug, clap::Args)]
struct Named {
    /// The volume's id
    id: String,
    /// The agent, if several have a volume with this id
    #[arg(long)]
    agent: Option<String>,
    #[command(flatten)]
    master: MasterArgs,
}

/// Parses a size in megabytes, the unit of the resource `disk`.
fn megabytes(text: &str) -> Result<f64> {
    let bytes =
        base::parse_bytes(text).with_context(|| format!("'{text}' is not a size: must be such as 512MB or 10GB"))?;
    match bytes >> 20 {
        0 => bail!("'{text}' is less than 1MB"),
        megabytes => Ok(megabytes as f64),
    }
}

/// Shows or changes volumes.
///
/// # Errors
/// There is no such volume or reservation, or the master rejects the call.
pub fn run(args: Args) -> Result<ExitCode> {
    match args.action {
        None => list(&args.list),
        Some(action) => crate::block_on(act(action)).map(|()| ExitCode::SUCCESS),
    }
}

async fn act(action: Action) -> Result<()> {
    match action {
        Action::Create { agent, size, role, id, path, master } => {
            let found = AgentResources::find(&master, &agent).await?;
            let mut volume = disk(&found, &role, None, size)?;
            let id = id.unwrap_or_else(daemon::random::uuid_text);
            volume["disk"]["persistence"] = json!({ "id": id });
            if let Some(principal) = &master.principal {
                volume["disk"]["persistence"]["principal"] = json!(principal);
            }
            volume["disk"]["volume"] = json!({ "mode": "RW", "container_path": path });
            send_resource_call(&master, "CREATE_VOLUMES", &found.agent.id, "volumes", &[volume]).await?;
            say!("volume {id} of {} MB is created on {}", number(size), found.agent.id);
        }
        Action::Destroy { named, yes } => {
            let (agent, volume) = named.find().await?;
            confirm(yes, &format!("delete volume {} of {} with all its data", named.id, agent.agent.hostname))?;
            send_resource_call(&named.master, "DESTROY_VOLUMES", &agent.agent.id, "volumes", &[volume]).await?;
            say!("volume {} is destroyed", named.id);
        }
        Action::Grow { named, by } => {
            let (agent, volume) = named.find().await?;
            let addition = disk(&agent, role(&volume), Some(&volume), by)?;
            named.resize("GROW_VOLUME", &agent, &volume, ("addition", addition)).await?;
            say!("volume {} grows to {} MB", named.id, number(amount(&volume) + by));
        }
        Action::Shrink { named, by } => {
            let (agent, volume) = named.find().await?;
            if by >= amount(&volume) {
                bail!("volume {} has {} MB: it cannot be shrunk to 0", named.id, number(amount(&volume)));
            }
            named.resize("SHRINK_VOLUME", &agent, &volume, ("subtract", json!({ "value": by }))).await?;
            say!("volume {} shrinks to {} MB", named.id, number(amount(&volume) - by));
        }
    }
    Ok(())
}

impl Named {
    /// Finds the volume and its agent.
    async fn find(&self) -> Result<(AgentResources, Value)> {
        let agents = match &self.agent {
            Some(text) => vec![AgentResources::find(&self.master, text).await?],
            None => AgentResources::all(&self.master).await?,
        };
        let own = |agent: &AgentResources| agent.reserved.iter().find(|one| volume(one) == Some(&self.id)).cloned();
        let mut found: Vec<_> =
            agents.into_iter().filter_map(|agent| own(&agent).map(|volume| (agent, volume))).collect();
        match (found.pop(), found.len()) {
            (Some(only), 0) => Ok(only),
            (None, _) => bail!("no volume has the id '{}': `tepui volumes` lists them", self.id),
            (Some(_), more) => bail!("{} agents have a volume '{}': give --agent", more + 1, self.id),
        }
    }

    async fn resize(&self, name: &str, agent: &AgentResources, volume: &Value, by: (&str, Value)) -> Result<()> {
        let id = &agent.agent.id;
        let body = json!({ "agent_id": { "value": id }, "volume": volume, by.0: by.1 });
        self.master.send_call(name, &body).await.with_context(|| format!("volume {} of agent {id}", self.id))
    }
}

/// Finds disk of an agent that is reserved for a role, and of which `size` is free. For the growth of a volume, it is
/// on the same disk and has the same reservations.
fn disk(agent: &AgentResources, wanted_role: &str, like: Option<&Value>, size: f64) -> Result<Value> {
    let fits = |one: &&Value| {
        let is_like = like.is_none_or(|volume| {
            one["reservations"] == volume["reservations"] && one["disk"]["source"] == volume["disk"]["source"]
        });
        one["name"] == "disk" && role(one) == wanted_role && volume(one).is_none() && is_like
    };
    let free: Vec<&Value> = agent.reserved.iter().filter(fits).collect();
    let large = free.iter().find(|one| amount(one) >= size).copied();
    let mut disk = large.cloned().ok_or_else(|| {
        let largest = free.iter().map(|one| amount(one)).fold(0.0, f64::max);
        let id = &agent.agent.id;
        anyhow!(
            "agent {id} has {} MB of disk reserved for role {wanted_role} that no volume uses; reserve more with: \
             tepui reserve {id} disk:{} --role={wanted_role}",
            number(largest),
            number(size - largest),
        )
    })?;
    // A volume on a disk that is a mount point takes the whole disk.
    if disk["disk"]["source"]["type"] != "MOUNT" {
        disk["scalar"]["value"] = json!(size);
    }
    Ok(disk)
}

fn list(args: &ListArgs) -> Result<ExitCode> {
    args.show(async || {
        let agents = AgentResources::all(&args.master).await?;
        let volumes: Vec<(&Agent, &Value)> = agents
            .iter()
            .flat_map(|agent| agent.reserved.iter().map(|one| (&agent.agent, one)))
            .filter(|(_, one)| volume(one).is_some())
            .collect();
        if !args.wants_document() {
            return Ok(ListOutput::Text(show(&volumes)));
        }
        let one = |(agent, volume): &(&Agent, &Value)| {
            json!({ "agent_id": agent.id, "hostname": agent.hostname, "volume": volume })
        };
        Ok(ListOutput::Document(volumes.iter().map(one).collect()))
    })
}

fn show(volumes: &[(&Agent, &Value)]) -> String {
    if volumes.is_empty() {
        return "no volumes; create one with: tepui volumes create AGENT SIZE --role=ROLE".to_owned();
    }
    let mut table = table(&["ID", "AGENT", "HOST", "ROLE", ">MB", "DISK", "SHARED"]);
    for (agent, one) in volumes {
        table.add_row([
            volume(one).unwrap_or_default().to_owned(),
            agent.id.clone(),
            agent.hostname.clone(),
            role(one).to_owned(),
            number(amount(one)),
            one["disk"]["source"]["type"].as_str().unwrap_or("root").to_lowercase(),
            if one["shared"].is_object() { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table.trim_fmt()
}
