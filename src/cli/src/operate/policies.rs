//! `tepui policies`: shows and sets how long offers are held, and how refusals count.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::connect::MasterArgs;
use crate::read::print;
use crate::say::say;

/// Flags of `tepui policies`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    master: MasterArgs,
}

/// What to do with policies.
#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print the policies as JSON
    Get(MasterArgs),
    /// Replace the policies by those of a JSON file
    Set {
        /// The file, in the form that `tepui policies` prints
        file: PathBuf,
        #[command(flatten)]
        master: MasterArgs,
    },
}

/// Prints the policies as JSON, or replaces them.
///
/// # Errors
/// The file cannot be read, or the master rejects the policies.
pub fn run(args: Args) -> Result<ExitCode> {
    match args.action {
        None => get(&args.master),
        Some(Action::Get(master)) => get(&master),
        Some(Action::Set { file, master }) => {
            let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let policies: Value =
                serde_json::from_str(&text).with_context(|| format!("{} is not JSON", file.display()))?;
            crate::block_on(master.send_call("UPDATE_POLICIES", &json!({ "policies": policies })))?;
            say!("the policies are set");
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn get(master: &MasterArgs) -> Result<ExitCode> {
    let answer = crate::block_on(master.call("GET_POLICIES", &Value::Null))?;
    print(&serde_json::to_string_pretty(&answer["policies"])?)
}
