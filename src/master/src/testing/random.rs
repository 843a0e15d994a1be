//! Random histories. Whatever the master receives, in whatever order:
//!
//! 1. nothing panics, and the rules of `invariants.rs` hold after every step;
//! 2. the same history results in the same outputs to the byte;
//! 3. an offer that is sent was not sent before, and only offers that were sent are rescinded.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::Script;

/// A step as numbers: its kind, and its objects.
type Step = (u8, u8, u8, u8);

const STATES: [&str; 6] =
    ["TASK_STARTING", "TASK_RUNNING", "TASK_FINISHED", "TASK_FAILED", "TASK_KILLED", "TASK_UNREACHABLE"];

/// Returns the script line of a step. There are three agents, three frameworks by HTTP and one driver, and six task
/// ids; offers are those that exist.
fn line(script: &mut Script, (kind, who, which, more): Step) -> String {
    let agent = ["a", "b", "c"][usize::from(who) % 3];
    let framework = ["f", "g", "h", "d"][usize::from(who) % 4];
    let other = ["a", "b", "c"][usize::from(more) % 3];
    let task = format!("t{}", which % 6);
    let offers: Vec<(u64, String)> = {
        let snapshot = script.master().snapshot();
        let agent_of = |key| snapshot.agent(key).map(|agent| agent.id.to_string()).unwrap_or_default();
        snapshot.offers.iter().map(|(key, offer)| (key, agent_of(offer.agent))).collect()
    };
    let offer = offers.get(usize::from(which) % offers.len().max(1));
    let master = script.master().snapshot().info.id.clone();
    let (offer, on) =
        offer.map_or(("none".to_owned(), agent.to_owned()), |(key, agent)| (format!("{master}-O{key}"), agent.clone()));
    let state = STATES[usize::from(more) % STATES.len()];
    let uuid = more % 5 + 1;
    match kind % 41 {
        0 | 1 => format!("register {agent} cpus:4;mem:4096;disk:100"),
        2 | 3 => {
            let tasks: Vec<String> = (0..which % 4).map(|n| format!("{framework}/t{n}:{state}")).collect();
            format!("reregister {agent} frameworks={framework} tasks={} executors={framework}/e1", tasks.join(","))
        }
        4 => format!("exited {agent}"),
        5 => format!("unregister {agent}"),
        6 | 7 if framework == "d" => format!("driver d failover={}", more % 3),
        6 => format!(
            "subscribe {framework} failover={} roles={},s checkpoint",
            more % 3,
            ["r", "q"][usize::from(which % 2)]
        ),
        7 => format!("subscribe {framework} id={framework} failover=100 roles=r caps=MULTI_ROLE"),
        8 => format!("close {framework}"),
        9 => format!("teardown {framework}"),
        10..=13 => format!("accept {framework} {offer} on={on} launch={task}:cpus:1;mem:64 refuse={}", more % 3),
        14 => format!("accept {framework} {offer} on={on} launch={task}+e{}:cpus:1;mem:64", more % 2),
        15 => format!("accept {framework} {offer} on={on} group=e9:{task},t7:cpus:0.5;mem:64"),
        16 => format!("accept {framework} {offer} on={on} reserve=cpus:1 role=r launch={task}:cpus:1;mem:64"),
        17 => format!("accept {framework} {offer} on={on} unreserve=cpus:1 role=r op=o{}", more % 3),
        18 => format!("decline {framework} {offer} refuse={}", more % 9),
        19..=21 => format!("update {agent} {framework}/{task} {state} uuid={uuid}"),
        22 | 23 => format!("ack {framework} {task} agent={other} uuid={uuid}"),
        24 => format!("kill {framework} {task}"),
        25 => format!("reconcile {framework} {task}@{other} {task}"),
        26 => format!("exited-executor {agent} {framework} e{}", more % 2),
        27 => format!("{} {framework}", ["suppress", "revive"][usize::from(more % 2)]),
        28 => format!("operator {} {agent}", ["gone", "drain", "deactivate", "reactivate"][usize::from(more % 4)]),
        29 => format!("update-agent {agent} revocable=cpus:{}", more % 4),
        30 => format!("after {}secs", [1, 7, 80, 700][usize::from(more % 4)]),
        31 => {
            format!("operator quota {}/cpus:{}/cpus:{} force", ["r", "q"][usize::from(which % 2)], more % 3, more % 5)
        }
        32 => format!("operator {} {agent} cpus:{} role=r", ["reserve", "unreserve"][usize::from(which % 2)], more % 3),
        33 => format!(
            "operator {} {agent} 8 by=2 role=r",
            ["create", "destroy", "grow", "shrink"][usize::from(which % 4)]
        ),
        34 => format!("operator reserve {agent} disk:{} role=r", more % 64),
        35 => format!("operator schedule {agent}@10.0.2.{}:{}", which % 4, more),
        36 => format!("operator {} {agent}@10.0.2.{}", ["down", "up"][usize::from(more % 2)], which % 4),
        37 => format!(
            "{}-inverse {framework} {master}-O{} refuse={}",
            ["accept", "decline"][usize::from(more % 2)],
            which,
            more % 3
        ),
        38 => format!("operator weights {}:{}", ["r", "q", "s"][usize::from(which % 3)], more % 4),
        39 if more % 4 == 0 => "operator schedule".to_owned(),
        _ if more % 8 == 0 => "restart".to_owned(),
        _ => format!("exited {framework}"),
    }
}

fn play(steps: &[Step]) -> Result<Vec<String>, TestCaseError> {
    let mut script = Script::new();
    let (mut transcript, mut offered) = (Vec::new(), BTreeSet::new());
    for step in steps {
        let line = line(&mut script, *step);
        let found = script.line(&line);
        let restarted = line == "restart";
        if restarted {
            offered.clear();
        }
        for text in &found {
            prop_assert!(!text.starts_with("BROKEN"), "{line}: {text}\n{}", transcript.join("\n"));
            if text.contains(" OFFERS ") || text.contains(" ResourceOffers ") {
                for id in text.split(' ').filter_map(|word| word.split_once("-O")).filter_map(|(_, rest)| number(rest))
                {
                    prop_assert!(offered.insert(id), "offer {id} twice: {line}");
                }
            }
            if text.contains(" RESCIND ") || text.contains(" RescindResourceOffer ") {
                let id = text.rsplit_once("-O").and_then(|(_, rest)| number(rest));
                prop_assert!(id.is_some_and(|id| offered.contains(&id)), "{line}: {text}");
            }
        }
        transcript.push(line);
        transcript.extend(found);
    }
    Ok(transcript)
}

fn number(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..digits].parse().ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_histories(steps in prop::collection::vec(any::<Step>(), 1..80)) {
        let first = play(&steps)?;
        prop_assert_eq!(first, play(&steps)?);
    }
}
