//! `tepui explain`: prints the master's explanation why a framework has no offers.

use std::process::ExitCode;

use anyhow::Result;
use clap_complete::ArgValueCompleter;
use serde_json::{Value, json};

use super::print;
use crate::complete;
use crate::connect::MasterArgs;

/// Flags of `tepui explain`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The framework's id, or its name if no other has it
    #[arg(add = ArgValueCompleter::new(complete::frameworks))]
    framework: String,
    /// One of its roles; all of them if not given
    role: Option<String>,
    /// Explain offers with these amounts, such as cpus:4;mem:64; by default offers of any size
    #[arg(long, value_name = "RESOURCES")]
    need: Option<String>,
    #[command(flatten)]
    master: MasterArgs,
    /// Print the master's answer as JSON, with every agent
    #[arg(long)]
    json: bool,
}

/// Asks the master, and prints its answer.
///
/// # Errors
/// The master cannot be asked, or does not know the framework.
pub fn run(args: &Args) -> Result<ExitCode> {
    let body = json!({ "framework": args.framework, "role": args.role, "need": args.need });
    let answer = crate::block_on(args.master.call("EXPLAIN", &body))?;
    if args.json {
        return print(&serde_json::to_string_pretty(&answer)?);
    }
    print(show(&answer).trim_end())
}

fn show(answer: &Value) -> String {
    let list = answer["explanations"].as_array().cloned().unwrap_or_default();
    if list.is_empty() {
        return "The framework is subscribed to no role: it receives no offers.".to_owned();
    }
    let texts = list.iter().map(|one| one["text"].as_str().unwrap_or_default().trim_end().to_owned());
    texts.collect::<Vec<String>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_a_role() {
        let answer = json!({ "explanations": [{ "text": "one\n" }, { "text": "two\n" }] });
        assert_eq!(show(&answer), "one\n\ntwo");
        assert!(show(&json!({})).contains("no role"));
    }
}
