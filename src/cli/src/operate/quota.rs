//! `tepui quota`: shows and sets guarantees and limits of roles.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use clap_complete::ArgValueCompleter;
use serde_json::{Map, Value, json};

use crate::complete;
use crate::connect::MasterArgs;
use crate::read::table::{number, table};
use crate::read::{ListArgs, ListOutput};
use crate::say::say;

/// Flags of `tepui quota`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: ListArgs,
}

/// What to do with quotas.
#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Set the guarantee, the limit or both of a role; what is not given stays
    Set {
        /// The role
        #[arg(add = ArgValueCompleter::new(complete::roles))]
        role: String,
        /// Resources that the role is guaranteed, such as cpus:4;mem:8192
        #[arg(long, value_name = "RESOURCES")]
        guarantee: Option<String>,
        /// Limit of the role's resources, such as cpus:16;mem:65536; resources without a limit are not named
        #[arg(long, value_name = "RESOURCES", required_unless_present = "guarantee")]
        limit: Option<String>,
        /// Set the quota even if the cluster cannot meet all guarantees
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        master: MasterArgs,
    },
    /// Remove the quota of a role
    Remove {
        /// The role
        #[arg(add = ArgValueCompleter::new(complete::roles))]
        role: String,
        #[command(flatten)]
        master: MasterArgs,
    },
}

/// Shows or changes quotas.
///
/// # Errors
/// The master rejects the call, or resources cannot be read.
pub fn run(args: Args) -> Result<ExitCode> {
    match args.action {
        None => args.list.show(async || {
            let mut answer = args.list.master.call("GET_QUOTA", &Value::Null).await?;
            let configs = answer["status"]["configs"].take();
            Ok(if args.list.wants_document() {
                ListOutput::Document(configs)
            } else {
                ListOutput::Text(show(&configs))
            })
        }),
        Some(Action::Set { role, guarantee, limit, force, master }) => {
            let answer = crate::block_on(master.call("GET_QUOTA", &Value::Null))?;
            let configs = answer["status"]["configs"].as_array().cloned().unwrap_or_default();
            let mut config =
                configs.into_iter().find(|config| config["role"] == role).unwrap_or(json!({ "role": role }));
            for (field, given) in [("guarantees", &guarantee), ("limits", &limit)] {
                if let Some(text) = given {
                    config[field] = quantities(text).with_context(|| format!("--{}", field.trim_end_matches('s')))?;
                }
            }
            update(&master, &role, config, force)?;
            say!("the quota of {role} is set");
            Ok(ExitCode::SUCCESS)
        }
        Some(Action::Remove { role, master }) => {
            update(&master, &role, json!({ "role": role }), true)?;
            say!("{role} has no quota");
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn update(master: &MasterArgs, role: &str, config: Value, force: bool) -> Result<()> {
    let body = json!({ "force": force, "quota_configs": [config] });
    crate::block_on(master.send_call("UPDATE_QUOTA", &body)).with_context(|| format!("role {role}"))
}

/// Parses amounts as JSON of a QuotaConfig, by their names.
fn quantities(text: &str) -> Result<Value> {
    let parsed = resources::parse_quantities(text).map_err(|error| anyhow!("{error}"))?;
    let one = |(name, amount): (resources::Name, resources::Amount)| {
        (name.as_str().to_owned(), json!({ "value": amount.to_f64() }))
    };
    Ok(Value::Object(parsed.iter().map(one).collect::<Map<String, Value>>()))
}

fn show(configs: &Value) -> String {
    // A role whose quota was removed is listed without amounts.
    let has_quota = |config: &&Value| text(&config["guarantees"]) != "-" || text(&config["limits"]) != "-";
    let configs: Vec<&Value> = configs.as_array().into_iter().flatten().filter(has_quota).collect();
    if configs.is_empty() {
        return "no role has a quota; set one with: tepui quota set ROLE --guarantee='cpus:4'".to_owned();
    }
    let mut table = table(&["ROLE", "GUARANTEE", "LIMIT"]);
    for config in configs {
        let role = config["role"].as_str().unwrap_or_default().to_owned();
        table.add_row([role, text(&config["guarantees"]), text(&config["limits"])]);
    }
    table.trim_fmt()
}

/// Formats amounts in the text form of resources; a dash if there are none.
fn text(amounts: &Value) -> String {
    let amounts: BTreeMap<&String, f64> =
        amounts.as_object().into_iter().flatten().filter_map(|(k, v)| Some((k, v["value"].as_f64()?))).collect();
    let parts: Vec<String> = amounts.iter().map(|(name, value)| format!("{name}:{}", number(*value))).collect();
    if parts.is_empty() { "-".to_owned() } else { parts.join(";") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_a_role() {
        let configs =
            json!([{ "role": "prod", "guarantees": { "mem": { "value": 8192.0 }, "cpus": { "value": 4.0 } } }]);
        let line = show(&configs).lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(line, "prod cpus:4;mem:8192 -");
        assert!(show(&json!([{ "role": "gone" }])).contains("tepui quota set"));
    }

    #[test]
    fn amounts_are_read_as_for_flags() {
        assert_eq!(quantities("cpus:0.5;mem:64").unwrap(), json!({ "cpus": {"value": 0.5}, "mem": {"value": 64.0} }));
        assert_eq!(quantities("").unwrap(), json!({}));
        assert!(quantities("cpus").is_err());
    }
}
