//! `tepui masters`: shows and changes the masters of a group of peers (`--peers`), and saves the registry of any
//! cluster to a file.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};

use crate::connect::MasterArgs;
use crate::read::table::table;
use crate::read::{ListArgs, ListOutput};
use crate::registry::backup;
use crate::say::say;

/// What to do with the masters of a group.
#[derive(Debug, clap::Subcommand)]
pub enum Action {
    /// Show the masters, the one that leads, and those that answer it
    Status(ListArgs),
    /// Add a master, which has been started with --peers and an empty work directory
    Add {
        /// Its host:port, as its --peers or its --peer_address names it
        address: String,
        #[command(flatten)]
        master: MasterArgs,
    },
    /// Remove a master, which does not lead
    Remove {
        /// Its host:port
        address: String,
        #[command(flatten)]
        master: MasterArgs,
    },
    /// Write the registry of a cluster to a file: agents, quota, weights, maintenance
    Backup(backup::BackupArgs),
    /// Make the registry of a master from such a file, before the master is started
    Restore(backup::RestoreArgs),
    /// Make another master lead; the current leader exits, and its supervisor must start it again
    Transfer {
        /// The host:port of the next leader; default: any that answers
        address: Option<String>,
        #[command(flatten)]
        master: MasterArgs,
    },
}

impl Action {
    /// Runs the action.
    ///
    /// # Errors
    /// The master rejects the call.
    pub fn run(self) -> Result<ExitCode> {
        match self {
            Action::Status(args) => {
                return args.show(async || {
                    let status = args.master.call("GET_MASTERS", &Value::Null).await?;
                    Ok(if args.wants_document() {
                        ListOutput::Document(status)
                    } else {
                        ListOutput::Text(show(&status))
                    })
                });
            }
            Action::Backup(args) => return backup::backup(&args),
            Action::Restore(args) => return backup::restore(&args),
            Action::Add { address, master } => {
                crate::block_on(master.send_call("ADD_MASTER", &json!({ "address": address })))?;
                say!("{address} is being added; see: tepui masters status");
            }
            Action::Remove { address, master } => {
                crate::block_on(master.send_call("REMOVE_MASTER", &json!({ "address": address })))?;
                say!("{address} is being removed; its process will exit");
            }
            Action::Transfer { address, master } => {
                let call = address.as_ref().map_or(json!({}), |address| json!({ "address": address }));
                crate::block_on(master.send_call("TRANSFER_LEADERSHIP", &call))?;
                say!("{} leads next", address.as_deref().unwrap_or("another master"));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn show(status: &Value) -> String {
    let members = status["members"].as_array().cloned().unwrap_or_default();
    if members.is_empty() {
        return format!("the group has not formed: {}", status["standing"].as_str().unwrap_or_default());
    }
    let led = members.iter().any(|member| member["leads"] == true);
    let mut table = table(&["MASTER", "STATE"]);
    for member in &members {
        let state = match (member["leads"] == true, member["answers"].as_bool()) {
            (true, _) => "leads",
            (false, Some(true)) => "follows",
            (false, Some(false)) => "does not answer",
            (false, None) => "",
        };
        table.add_row([member["address"].as_str().unwrap_or_default(), state]);
    }
    let mut text = table.trim_fmt();
    if !led {
        text += "\n\nthis master knows no leader: a majority of the group must be connected";
    }
    for address in status["joining"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        text += &format!("\n\n{address} asks to join: tepui masters add {address}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_and_what_to_do_next() {
        let member = |address: &str, leads: bool, answers: Value| json!({ "address": address, "leads": leads, "answers": answers });
        let members =
            [member("a:1", true, json!(true)), member("b:1", false, json!(true)), member("c:1", false, json!(false))];
        let text = show(&json!({ "members": members, "joining": ["d:1"] }));
        for line in
            ["a:1     leads", "b:1     follows", "c:1     does not answer", "d:1 asks to join: tepui masters add d:1"]
        {
            assert!(text.contains(line), "{text}");
        }
        let text = show(&json!({ "members": members[1..], "joining": [] }));
        assert!(text.contains("this master knows no leader"), "{text}");
        assert!(show(&json!({ "members": [], "standing": "waiting" })).contains("has not formed: waiting"));
    }
}
