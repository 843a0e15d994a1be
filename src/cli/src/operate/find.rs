//! Finds the agent or the framework that a command line names.

use anyhow::{Result, bail};

use crate::read::model::{Agent, Framework};

/// Minimum length of the beginning of an id that is accepted for the id.
const PREFIX_MIN: usize = 4;

/// Returns the agent with this id, with an id that ends in `-TEXT` (such as S3), on this host, or with the only id that
/// begins so.
///
/// # Errors
/// No agent has such a name, or several have.
pub(super) fn agent<'a>(agents: impl IntoIterator<Item = &'a Agent>, text: &str) -> Result<&'a Agent> {
    let agents: Vec<&Agent> = agents.into_iter().collect();
    if let Some(agent) = agents.iter().find(|agent| agent.id == text) {
        return Ok(agent);
    }
    let is_there = |agent: &&Agent| agent.has_id(text) || agent.hostname.eq_ignore_ascii_case(text);
    let mut found: Vec<&Agent> = agents.iter().copied().filter(is_there).collect();
    if found.is_empty() && text.len() >= PREFIX_MIN {
        found = agents.into_iter().filter(|agent| agent.id.starts_with(text)).collect();
    }
    one(found, |agent| &agent.id, text, "agent", "tepui agents")
}

/// Returns the framework with this id or name, or with the only id that begins or ends so.
///
/// # Errors
/// No framework has such a name, or several have.
pub(super) fn framework<'a>(frameworks: &'a [Framework], text: &str) -> Result<&'a Framework> {
    if let Some(framework) = frameworks.iter().find(|framework| framework.id == text) {
        return Ok(framework);
    }
    let mut named: Vec<&Framework> = frameworks.iter().filter(|framework| framework.name == text).collect();
    if named.is_empty() && text.len() >= PREFIX_MIN {
        let ends = |id: &str| id.rsplit_once('-').is_some_and(|(_, end)| end == text);
        named = frameworks.iter().filter(|known| known.id.starts_with(text) || ends(&known.id)).collect();
    }
    one(named, |framework| &framework.id, text, "framework", "tepui frameworks")
}

fn one<'a, T>(found: Vec<&'a T>, id: impl Fn(&T) -> &str, text: &str, what: &str, list: &str) -> Result<&'a T> {
    match found[..] {
        [only] => Ok(only),
        [] => bail!("no {what} is '{text}': `{list}` lists them"),
        _ => {
            let ids: Vec<&str> = found.iter().map(|one| id(one)).collect();
            bail!("several {what}s are '{text}', give one of the ids: {}", ids.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_by_id_by_its_end_and_by_host() {
        let agents: Vec<Agent> = serde_json::from_str(
            r#"[{"id":"m-S0","hostname":"One"},{"id":"m-S1","hostname":"two"},{"id":"m-S10","hostname":"two"}]"#,
        )
        .unwrap();
        for text in ["m-S0", "S0", "one"] {
            assert_eq!(agent(&agents, text).unwrap().id, "m-S0", "{text}");
        }
        assert_eq!(agent(&agents, "S1").unwrap().id, "m-S1");
        assert_eq!(agent(&agents, "m-S10").unwrap().id, "m-S10");
        assert!(agent(&agents, "m-S").is_err(), "too short to be a beginning");
        let error = agent(&agents, "two").unwrap_err().to_string();
        assert_eq!(error, "several agents are 'two', give one of the ids: m-S1, m-S10");
        let error = agent(&agents, "S7").unwrap_err().to_string();
        assert_eq!(error, "no agent is 'S7': `tepui agents` lists them");
    }

    #[test]
    fn a_framework_by_id_and_by_name() {
        let frameworks: Vec<Framework> = serde_json::from_str(
            r#"[{"id":"f1","name":"a"},{"id":"f2","name":"b"},{"id":"f3","name":"b"},{"id":"49c8-0007","name":"c"}]"#,
        )
        .unwrap();
        assert_eq!(framework(&frameworks, "0007").unwrap().id, "49c8-0007");
        assert_eq!(framework(&frameworks, "49c8").unwrap().id, "49c8-0007");
        assert_eq!(framework(&frameworks, "a").unwrap().id, "f1");
        assert_eq!(framework(&frameworks, "f2").unwrap().id, "f2");
        assert!(framework(&frameworks, "b").unwrap_err().to_string().contains("f2, f3"));
    }
}
