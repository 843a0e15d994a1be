//! `tepui weights`: shows and sets the weights of roles in fair sharing.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::connect::MasterArgs;
use crate::read::table::{number, table};
use crate::read::{ListArgs, ListOutput};
use crate::say::say;

/// Flags of `tepui weights`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: ListArgs,
}

/// What to do with weights.
#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Set the weights of roles
    Set {
        /// A role with its weight, such as prod=2.5; roles that are not named keep theirs
        #[arg(required = true, value_name = "ROLE=WEIGHT", value_parser = weight)]
        weights: Vec<(String, f64)>,
        #[command(flatten)]
        master: MasterArgs,
    },
}

fn weight(text: &str) -> Result<(String, f64)> {
    let (role, weight) = text.split_once('=').context("give ROLE=WEIGHT, such as prod=2.5")?;
    match weight.parse::<f64>() {
        Ok(weight) if weight.is_finite() && weight > 0.0 && !role.is_empty() => Ok((role.to_owned(), weight)),
        _ => bail!("'{weight}' is not a positive number"),
    }
}

/// Shows or changes weights.
///
/// # Errors
/// The master rejects the call.
pub fn run(args: Args) -> Result<ExitCode> {
    match args.action {
        None => args.list.show(async || {
            let mut answer = args.list.master.call("GET_WEIGHTS", &Value::Null).await?;
            let weights = answer["weight_infos"].take();
            Ok(if args.list.wants_document() {
                ListOutput::Document(weights)
            } else {
                ListOutput::Text(show(&weights))
            })
        }),
        Some(Action::Set { weights, master }) => {
            let infos: Vec<Value> =
                weights.iter().map(|(role, weight)| json!({ "role": role, "weight": weight })).collect();
            crate::block_on(master.send_call("UPDATE_WEIGHTS", &json!({ "weight_infos": infos })))?;
            weights.iter().for_each(|(role, weight)| say!("{role} has weight {}", number(*weight)));
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn show(weights: &Value) -> String {
    let weights = weights.as_array().cloned().unwrap_or_default();
    if weights.is_empty() {
        return "every role has weight 1; set others with: tepui weights set ROLE=WEIGHT".to_owned();
    }
    let mut table = table(&["ROLE", ">WEIGHT"]);
    for info in weights {
        let role = info["role"].as_str().unwrap_or_default().to_owned();
        table.add_row([role, number(info["weight"].as_f64().unwrap_or(1.0))]);
    }
    format!("{}\n\nother roles have weight 1", table.trim_fmt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_positive_numbers() {
        assert_eq!(weight("a/b=2.5").unwrap(), ("a/b".to_owned(), 2.5));
        for wrong in ["a", "a=", "a=0", "a=-1", "a=inf", "=1", "a=x"] {
            assert!(weight(wrong).is_err(), "{wrong}");
        }
        assert!(show(&json!([{ "role": "a", "weight": 2.0 }])).contains("other roles"));
    }
}
