//! Runs the scripted scenarios: each file in `scenarios/` is a list of inputs, each followed by the expected outputs of
//! the agent.
//!
//! An input is a line of words; indented lines below it are the expected outputs. The crate `scenarios` compares the
//! files, or writes them anew.

mod support;

use std::collections::BTreeSet;

use agent::{Agent, Outbox, Recovered};
use support::TestAgent;

#[test]
fn the_agent_does_what_the_scenarios_say() {
    scenarios::check("tests/scenarios", 15, play);
}

/// Names of the checkpoints that hold messages or numbers.
const KINDS: [&str; 8] = [
    "drain.config",
    "executor.info",
    "forked.pid",
    "framework.info",
    "resources_and_operations.state",
    "slave.info",
    "task.info",
    "task.updates",
];

/// Returns a stage with an agent that drains, with a reservation and a task of a framework that checkpoints.
fn agent_with_a_task() -> TestAgent {
    let mut test_agent = TestAgent::new();
    for line in [
        "start",
        "detected",
        "after 1secs",
        "registered",
        "operation reserve",
        "run f t new=true checkpoint",
        "started f/t 100",
        "subscribe f/t 1",
        "update f/t t TASK_RUNNING",
        "drain",
    ] {
        test_agent.act(line);
    }
    test_agent
}

/// Checks that an agent starts with these checkpoints.
fn starts(test_agent: &TestAgent, recovered: Recovered, path: &str) {
    let (config, info) = (test_agent.config.clone(), test_agent.info.clone());
    let started = Agent::new(config, info, recovered, 2, test_agent.now, &mut Outbox::default());
    assert!(started.is_ok(), "{path}: {:?}", started.err());
}

#[test]
fn a_damaged_checkpoint_of_any_kind_is_named_or_skipped() {
    let test_agent = agent_with_a_task();
    let mut seen = BTreeSet::new();
    for path in test_agent.disk.files.keys() {
        let Some(kind) = KINDS.into_iter().find(|kind| path.ends_with(&format!("/{kind}"))) else { continue };
        seen.insert(kind);
        let mut disk = test_agent.disk.clone();
        match disk.files.get_mut(path) {
            Some(bytes) if kind == "forked.pid" => *bytes = b"rubbish".to_vec(),
            Some(bytes) => bytes[4..].fill(0xff),
            None => {}
        }
        let error = Recovered::read(&disk, true).unwrap_err().to_string();
        assert!(error.contains(path) && error.contains("is damaged"), "{error}");
        let recovered = Recovered::read(&disk, false).unwrap();
        assert_eq!(recovered.errors, 1, "{path}");
        let [skipped] = recovered.skipped.as_slice() else { panic!("{path}: {:?}", recovered.skipped) };
        assert!(skipped.path == *path && skipped.why.starts_with("is damaged"), "{skipped:?}");
        starts(&test_agent, recovered, path);
    }
    assert_eq!(seen.len(), KINDS.len(), "{seen:?}");
}

#[test]
fn an_empty_checkpoint_of_any_kind_is_listed() {
    let test_agent = agent_with_a_task();
    assert_eq!(Recovered::read(&test_agent.disk, true).unwrap().skipped, []);
    let mut seen = 0;
    for path in test_agent.disk.files.iter().filter(|(_, bytes)| !bytes.is_empty()).map(|(path, _)| path) {
        let mut disk = test_agent.disk.clone();
        disk.files.insert(path.clone(), Vec::new());
        let recovered = Recovered::read(&disk, true).unwrap();
        let skipped: Vec<_> = recovered.skipped.iter().map(|skipped| (&skipped.path, skipped.why.as_str())).collect();
        // Without a reservation resources.info is empty; http.marker is empty if the executor needs no token.
        if !path.ends_with("/resources.info") && !path.ends_with("/http.marker") {
            assert_eq!(skipped, [(path, "is empty")]);
            seen += 1;
        }
        starts(&test_agent, recovered, path);
    }
    assert!(seen >= KINDS.len() + 2, "{seen}");
}

/// Recovers from a tree in which a file is missing although a file that is written after it exists.
#[test]
fn a_missing_checkpoint_is_listed() {
    let test_agent = agent_with_a_task();
    for kind in ["slave.info", "framework.info", "executor.info", "task.info"] {
        let mut disk = test_agent.disk.clone();
        disk.files.retain(|path, _| !path.ends_with(kind));
        let skipped = Recovered::read(&disk, true).unwrap().skipped;
        assert!(skipped.len() == 1 && skipped[0].path.ends_with(kind) && skipped[0].why == "is missing", "{skipped:?}");
    }
}

/// Returns the script with the agent's outputs.
fn play(script: &str) -> String {
    let mut test_agent = TestAgent::new();
    let mut text = String::new();
    for line in script.lines().filter(|line| !line.starts_with("  ")) {
        text.push_str(line);
        text.push('\n');
        if !line.is_empty() && !line.starts_with('#') {
            for output in test_agent.act(line) {
                text.push_str("  ");
                text.push_str(&output);
                text.push('\n');
            }
        }
    }
    text
}
