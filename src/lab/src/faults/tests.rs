//! Campaigns find nothing wrong in some seeds, are the same twice, and do find what is broken on purpose.

use std::collections::BTreeSet;
use std::time::Duration;

use super::play::play_with;
use super::shrink::shrink_by;
use super::*;
use crate::world::{Process, Sabotage};

/// So many seeds are played where nobody says otherwise. The release binary plays many more in `cargo xtask test`.
const SEEDS: u64 = 12;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn no_seed_breaks_a_rule() {
    let (first, seeds) = (number("FAULTS_FROM").unwrap_or(1), number("FAULTS_SEEDS").unwrap_or(SEEDS));
    let summary = campaign(first, seeds, 2, 20, &|| true);
    println!("{summary:?}");
    if let Some(seed) = number("FAULTS_LOG") {
        println!("{:#?}\n{}", Plan::draw(seed), play(&Plan::draw(seed), true).log.join("\n"));
    }
    if number("FAULTS_SEEDS").is_none()
        && let Some((seed, _)) = summary.broken.first()
        && let Some(finding) = examine(*seed)
    {
        println!("{}\n{:#?}", finding.log.join("\n"), finding.plan);
    }
    assert!(summary.broken.is_empty(), "{:#?}", summary.broken);
    assert!(summary.tasks > summary.seeds, "worlds without work: {summary:?}");
}

/// What some of a few seeds must have in their logs; else the campaign has come to nothing.
const REACHED: [&str; 24] = [
    "from a master that it has left",
    "TASK_FINISHED",
    "TASK_FAILED",
    "TASK_KILLED",
    "TASK_LOST",
    "RECONCILIATION",
    "CONTAINER_LAUNCH_FAILED",
    "EXECUTOR_TERMINATED",
    "RESCIND",
    "leads on host 1",
    "m1 leads",
    "TEARDOWN",
    "is safe",
    "drains agent",
    "reactivates agent",
    "reserves a CPU",
    "LAUNCH_GROUP",
    "is deposed",
    "another master leads",
    "makes /w/volumes",
    "destroys /w/volumes",
    "uses f",
    "DESTROY_VOLUMES",
    "and all its executors are killed",
];

#[test]
fn seeds_reach_far_and_are_the_same_twice() {
    let mut missing = REACHED.to_vec();
    for seed in 1..=24 {
        let plan = Plan::draw(seed);
        let played = play(&plan, true);
        missing.retain(|text| !played.log.iter().any(|line| line.contains(text)));
        if seed % 4 == 0 {
            let again = play(&Plan::draw(seed), false);
            assert_eq!((played.digest, played.events, played.tasks), (again.digest, again.events, again.tasks));
        }
    }
    assert!(missing.is_empty(), "no seed has {missing:?}");
}

/// In so many plans a sabotage must show as what it is.
const PLANS: u64 = 300;
/// What is broken on purpose, and the rule that is to notice.
const SABOTAGES: [(Sabotage, &str); 18] = [
    (Sabotage::Acknowledgements, "the world comes to rest"),
    (Sabotage::Checkpoints, "the world comes to rest"),
    (Sabotage::Damage, "what an agent wrote lets it start"),
    (Sabotage::Deposed, "only the master that leads is obeyed"),
    (Sabotage::Endings, "the end of a task is its end"),
    (Sabotage::Flags, "reservations are kept"),
    (Sabotage::Folders, "no volume is lost"),
    (Sabotage::Launches, "no task is started twice"),
    (Sabotage::Offers, "an offer is made once"),
    (Sabotage::Owners, "updates go to their owners"),
    (Sabotage::Registry, "what operators were told is done stays done"),
    (Sabotage::Refusals, "a good call is taken"),
    (Sabotage::Room, "nothing is given away twice"),
    (Sabotage::Saves, "a task is launched once"),
    (Sabotage::Tasks, "the world comes to rest"),
    (Sabotage::Times, "a framework is kept"),
    (Sabotage::Updates, "no update is lost or overtaken"),
    (Sabotage::Volumes, "a volume keeps its data"),
];

#[test]
fn what_is_broken_on_purpose_is_found() {
    // Few events in the hours that a world without rest is waited for; and something to notice.
    let calm = |plan: &Plan| plan.frameworks.iter().all(|framework| framework.refuse > Duration::from_secs(2));
    let deposes = |plan: &Plan| plan.faults.iter().any(|fault| matches!(fault.kind, Kind::Depose { .. }));
    let fit = |sabotage, plan: &Plan| if sabotage == Sabotage::Deposed { deposes(plan) } else { calm(plan) };
    let mut unnoticed = Vec::new();
    for (sabotage, rule) in SABOTAGES {
        let mut seen = BTreeSet::new();
        let found = (1..=PLANS).map(Plan::draw).filter(|plan| fit(sabotage, plan)).find_map(|plan| {
            let broken = play_with(&plan, false, |world| world.sabotage = Some(sabotage)).broken?;
            seen.insert(broken.rule);
            (broken.rule == rule).then(|| format!("seed {}: {broken}", plan.seed))
        });
        println!("{sabotage:?}: {found:?} {seen:?}");
        if found.is_none() {
            unnoticed.push((sabotage, seen));
        }
    }
    assert!(unnoticed.is_empty(), "not noticed by the rule that is for it: {unnoticed:#?}");
}

#[test]
fn a_plan_is_made_as_small_as_it_can_be() {
    let reboots = |plan: &Plan| plan.faults.iter().any(|fault| matches!(fault.kind, Kind::Reboot { .. }));
    let seed = (1..).find(|seed| reboots(&Plan::draw(*seed))).unwrap();
    let small = shrink_by(&Plan::draw(seed), &mut |plan| reboots(plan));
    let [Fault { kind: Kind::Reboot { away, .. }, .. }] = small.faults[..] else { panic!("{:?}", small.faults) };
    assert!(away <= Duration::from_millis(1));
    assert_eq!((small.frameworks.len(), small.frameworks[0].tasks, small.limit), (1, 1, None));
    let last = Process::Agent(small.agents.len() - 1);
    assert!(small.agents.len() == 1 || small.faults[0].concerns(last), "{small:?}");
}
