//! Asks the master why work waits: what keeps offers of a size from a framework, and whether any can ever come.
//!
//! Mesos's masters do not have the call; then nothing is explained.

use anyhow::Result;
use serde_json::{Value, json};

use crate::connect::MasterArgs;

/// The master's explanation for one framework and size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WaitExplanation {
    /// Reasons in words, a line for each.
    pub(crate) reasons: Vec<String>,
    /// Short reason why the work cannot run on the present agents, however long it waits; `None` if it can.
    pub(crate) impossible: Option<String>,
    /// Number of agents of the cluster.
    pub(crate) agents: usize,
}

impl WaitExplanation {
    /// Asks why the framework with this id has no offers with these amounts, such as `cpus:1;mem:64`.
    ///
    /// # Errors
    /// No master answers, or it is not tepui's.
    pub(crate) async fn ask(master: &MasterArgs, framework: &str, need: &str) -> Result<WaitExplanation> {
        let answer = master.call("EXPLAIN", &json!({ "framework": framework, "need": need })).await?;
        let all = answer["explanations"].as_array().cloned().unwrap_or_default();
        Ok(WaitExplanation::of(&all, need))
    }

    fn of(explanations: &[Value], need: &str) -> WaitExplanation {
        let mut reasons: Vec<String> = Vec::new();
        for one in explanations {
            // The first line says whether the framework wants offers. If it does, that is known and the line is
            // skipped.
            let known = usize::from(one["wants_offers"] == true);
            reasons.extend(one["text"].as_str().unwrap_or_default().lines().skip(known).map(str::to_owned));
        }
        let agents = explanations.iter().map(|one| one["agents"].as_array().map_or(0, Vec::len)).max();
        let possible = explanations.iter().filter_map(|one| one["possible_agents"].as_u64()).max();
        let impossible = match (agents, possible) {
            (Some(0), _) => Some("there are no agents".to_owned()),
            (Some(_), Some(0)) => Some(format!("no agent can offer {need}")),
            _ => None,
        };
        WaitExplanation { reasons, impossible, agents: agents.unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_without_agents_or_with_agents_that_are_too_small() {
        let one = |agents: Value, possible: u64| {
            let text = "Framework f wants offers in role r.\n2 agents: too small (a, b)\n";
            json!({ "text": text, "wants_offers": true, "agents": agents, "possible_agents": possible })
        };
        let waiting = WaitExplanation::of(&[one(json!([{}, {}]), 0)], "cpus:9");
        assert_eq!(waiting.reasons, ["2 agents: too small (a, b)"]);
        assert_eq!(waiting.impossible.unwrap(), "no agent can offer cpus:9");
        assert_eq!(WaitExplanation::of(&[one(json!([]), 0)], "").impossible.unwrap(), "there are no agents");
        assert_eq!(WaitExplanation::of(&[one(json!([{}]), 0), one(json!([{}]), 1)], "").impossible, None);
        assert_eq!(WaitExplanation::of(&[], "").impossible, None);
    }
}
