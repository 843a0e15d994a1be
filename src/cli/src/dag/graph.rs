//! `tepui dag graph`: shows the stages of a job with what they wait for, as lines or for Graphviz.

use std::process::ExitCode;

use anyhow::Result;

use super::ServiceArgs;
use super::model::{Stage, View, view};

/// Flags of `tepui dag graph`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    service: ServiceArgs,
    /// The job's name
    job: String,
    /// Print in the language of Graphviz: tepui dag graph --dot JOB | dot -Tsvg
    #[arg(long, conflicts_with = "json")]
    dot: bool,
}

pub(super) async fn run(args: &Args) -> Result<ExitCode> {
    let view = view(&args.service.find().await?, &args.job).await?;
    if args.service.json {
        let edges: Vec<serde_json::Value> =
            edges(&view).map(|(from, to)| serde_json::json!({ "from": from, "to": to })).collect();
        let stages: Vec<&str> = view.stages.iter().map(|stage| stage.name.as_str()).collect();
        let graph = serde_json::json!({ "stages": stages, "edges": edges });
        return crate::read::print(&serde_json::to_string_pretty(&graph)?);
    }
    crate::read::print(&if args.dot { dot(&view) } else { lines(&view) })
}

fn edges(view: &View) -> impl Iterator<Item = (&str, &str)> {
    view.stages.iter().flat_map(|stage| stage.after.iter().map(|before| (before.as_str(), stage.name.as_str())))
}

/// Formats the number of a stage's tasks that have finished.
fn progress(stage: &Stage) -> String {
    let total = stage.total.map_or("?".to_owned(), |total| total.to_string());
    format!("{}, {}/{total}", stage.state, stage.tasks.finished)
}

/// Formats one line for each stage; deeper stages are indented further.
fn lines(view: &View) -> String {
    let mut depths: Vec<(&str, usize)> = Vec::new();
    let mut lines = Vec::new();
    for stage in &view.stages {
        let depth = |name: &String| depths.iter().find(|(known, _)| known == name).map_or(0, |(_, depth)| depth + 1);
        let at = stage.after.iter().map(depth).max().unwrap_or(0);
        depths.push((&stage.name, at));
        let after = if stage.after.is_empty() { String::new() } else { format!("  <- {}", stage.after.join(", ")) };
        lines.push(format!("{}{} ({}){after}", "   ".repeat(at), stage.name, progress(stage)));
    }
    lines.join("\n")
}

/// Formats a graph for Graphviz. Names have no quotes: they are letters, digits, `_` and `-`.
fn dot(view: &View) -> String {
    let mut text = format!("digraph \"{}\" {{\n  rankdir=LR;\n  node [shape=box];\n", view.summary.name);
    for stage in &view.stages {
        text.push_str(&format!("  \"{}\" [label=\"{}\\n{}\"];\n", stage.name, stage.name, progress(stage)));
    }
    for (from, to) in edges(view) {
        text.push_str(&format!("  \"{from}\" -> \"{to}\";\n"));
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_stand_behind_those_that_they_wait_for() {
        let stage = |name: &str, after: &[&str]| Stage {
            name: name.into(),
            state: "waiting".into(),
            after: after.iter().map(|a| (*a).to_owned()).collect(),
            total: Some(2),
            ..Stage::default()
        };
        let stages = vec![stage("a", &[]), stage("b", &["a"]), stage("c", &["a", "b"])];
        let view = View { stages, ..View::default() };
        assert_eq!(lines(&view), "a (waiting, 0/2)\n   b (waiting, 0/2)  <- a\n      c (waiting, 0/2)  <- a, b");
        let dot = dot(&view);
        assert!(dot.contains("\"a\" -> \"c\";") && dot.starts_with("digraph"), "{dot}");
    }
}
