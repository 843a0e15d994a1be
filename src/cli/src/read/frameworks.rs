//! `tepui frameworks`: lists frameworks.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::Value;

use super::model::{Agents, Framework, Frameworks};
use super::table::{number, percent, table, with_state};
use super::{ListArgs, ListOutput};
use crate::operate::frameworks::Action;

/// Flags of `tepui frameworks`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    pub action: Option<Action>,
    #[command(flatten)]
    list: ListArgs,
    /// Also list those that have ended
    #[arg(long, short)]
    all: bool,
}

/// Lists frameworks.
///
/// # Errors
/// The master cannot be read.
pub fn run(args: &Args) -> Result<ExitCode> {
    args.list.show(async || {
        let master = &args.list.master;
        if args.list.wants_document() {
            let document: Value = master.read("/frameworks").await?;
            let list = |key: &str| document[key].as_array().cloned().unwrap_or_default();
            let mut frameworks = list("frameworks");
            if args.all {
                frameworks.extend(list("completed_frameworks"));
            }
            return Ok(ListOutput::Document(frameworks.into()));
        }
        let (frameworks, agents) = (master.read("/frameworks").await?, master.read("/slaves").await?);
        Ok(ListOutput::Text(show(&frameworks, &agents, args.all)))
    })
}

fn show(frameworks: &Frameworks, agents: &Agents, all: bool) -> String {
    let mut table = table(&["ID", "NAME", "ROLES", "USER", "STATE", ">TASKS", ">OFFERS", ">CPUS", ">MEM", ">SHARE"]);
    let completed = if all { &frameworks.completed_frameworks[..] } else { &[] };
    let running = frameworks.frameworks.iter().map(|f| (f, state(f)));
    let ended = completed.iter().map(|f| (f, "completed"));
    for (framework, state) in running.chain(ended) {
        let row = [
            framework.id.clone(),
            framework.name.clone(),
            roles(framework),
            framework.user.clone(),
            state.to_owned(),
            framework.tasks.len().to_string(),
            framework.offers.len().to_string(),
            number(framework.used_resources.get("cpus")),
            number(framework.used_resources.get("mem")),
            percent(dominant_share(framework, agents)),
        ];
        table.add_row(with_state(row, 4));
    }
    match frameworks.frameworks.len() + completed.len() {
        0 => "no frameworks; try one with: tepui execute --command='echo hello'".to_owned(),
        _ => format!("{}\n\nSHARE is the dominant share of tasks and offers", table.trim_fmt()),
    }
}

fn roles(framework: &Framework) -> String {
    match &framework.role {
        Some(role) => role.clone(),
        None => framework.roles.join(", "),
    }
}

fn state(framework: &Framework) -> &'static str {
    match framework {
        Framework { active: true, .. } => "active",
        Framework { connected: true, .. } => "inactive",
        Framework { recovered: true, .. } => "recovered",
        _ => "disconnected",
    }
}

/// Returns the largest share of the whole cluster's resources that a framework has, over the kinds of resources.
fn dominant_share(framework: &Framework, agents: &Agents) -> f64 {
    let share = |kind: &&str| {
        let all: f64 = agents.slaves.iter().map(|a| a.resources.get(kind)).sum();
        let own = framework.used_resources.get(kind) + framework.offered_resources.get(kind);
        if all > 0.0 { own / all } else { 0.0 }
    };
    ["cpus", "mem", "disk", "gpus"].iter().map(share).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dominant_share_is_the_largest() {
        let frameworks: Frameworks = serde_json::from_str(
            r#"{"frameworks":[{"id":"F","name":"n","user":"u","active":true,"roles":["a","b"],
            "used_resources":{"cpus":1.0,"mem":300.0}}],"completed_frameworks":[{"id":"G"}]}"#,
        )
        .unwrap();
        let agents: Agents =
            serde_json::from_str(r#"{"slaves":[{"resources":{"cpus":4.0,"mem":500.0}},{"resources":{"mem":500.0}}]}"#)
                .unwrap();
        let text = show(&frameworks, &agents, false);
        let line = text.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(line, "F n a, b u active 0 0 1 300 30.0 %");
        assert!(show(&frameworks, &agents, true).contains("completed"));
    }
}
