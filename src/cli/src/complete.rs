//! Completes ids and names on the command line by those of the cluster.
//!
//! The master is that of `TEPUI_MASTER`, or the default one. If it does not answer in time, nothing is completed.

use std::ffi::OsStr;
use std::time::Duration;

use clap::builder::StyledStr;
use clap_complete::CompletionCandidate;
use serde_json::Value;

use crate::connect::MasterArgs;

/// Environment variable by which a shell asks this program for completions.
pub(crate) const VARIABLE: &str = "TEPUI_COMPLETE";
/// Time limit for the master's answer.
const MASTER_TIMEOUT: Duration = Duration::from_millis(700);
/// Maximum number of candidates.
const CANDIDATES_MAX: usize = 500;

/// Returns the ids of agents, with their hosts.
pub(crate) fn agents(typed: &OsStr) -> Vec<CompletionCandidate> {
    candidates(typed, "/slaves", |document| named(&document["slaves"], "hostname"))
}

/// Returns the ids of frameworks, with their names.
pub(crate) fn frameworks(typed: &OsStr) -> Vec<CompletionCandidate> {
    candidates(typed, "/frameworks", |document| named(&document["frameworks"], "name"))
}

/// Returns the ids of the latest tasks, with their states.
pub(crate) fn tasks(typed: &OsStr) -> Vec<CompletionCandidate> {
    candidates(typed, "/tasks", |document| named(&document["tasks"], "state"))
}

/// Returns the names of roles.
pub(crate) fn roles(typed: &OsStr) -> Vec<CompletionCandidate> {
    let text = |role: &Value| role["name"].as_str().unwrap_or_default().to_owned();
    let all = |document: &Value| document["roles"].as_array().into_iter().flatten().map(text).collect::<Vec<_>>();
    candidates(typed, "/roles", |document| all(document).into_iter().map(|role| (role, String::new())).collect())
}

/// Returns the ids of a list, each with another of its fields.
fn named(list: &Value, about: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    list.as_array().into_iter().flatten().map(|one| (text(&one["id"]), text(&one[about]))).collect()
}

fn candidates(typed: &OsStr, path: &str, read: impl Fn(&Value) -> Vec<(String, String)>) -> Vec<CompletionCandidate> {
    let master = std::env::var("TEPUI_MASTER").unwrap_or_else(|_| "127.0.0.1:5050".to_owned());
    let master = MasterArgs { master, principal: None, secret: None };
    let answer = crate::block_on(async {
        let document: Value = tokio::time::timeout(MASTER_TIMEOUT, master.read(path)).await??;
        Ok(document)
    });
    // A message would be printed in the middle of the command line.
    let Ok(document) = answer else { return Vec::new() };
    let typed = typed.to_string_lossy();
    let fitting = read(&document).into_iter().filter(|(id, _)| id.starts_with(&*typed)).take(CANDIDATES_MAX);
    let candidate = |(id, about): (String, String)| {
        CompletionCandidate::new(id).help((!about.is_empty()).then(|| StyledStr::from(about)))
    };
    fitting.map(candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_with_what_tells_them_apart() {
        let list = serde_json::json!([{ "id": "S0", "hostname": "h" }, { "id": "S1" }]);
        assert_eq!(named(&list, "hostname"), [("S0".to_owned(), "h".to_owned()), ("S1".to_owned(), String::new())]);
    }
}
