//! Tests that campaigns of masters break no rule for some seeds, are deterministic, and detect deliberate defects.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::faults::Settings;

/// Number of seeds that are run by default. `cargo xtask test` runs many more with the release binary.
const SEEDS: u64 = 40;
/// The deliberate defects, the rules that detect each, and a seed shortly before the first one that reveals it. A
/// change of the core moves these seeds: `tepui lab faults --masters --defect` finds others.
const DEFECTS: [(Defect, &[&str], u64); 7] = [
    (Defect::AnswerBeforeCommit, &["linearizable", "is lost"], 3),
    (Defect::EmptyDiskLetIn, &["linearizable", "is lost", "the same entries", "does not go back"], 680),
    (Defect::ForgottenPromises, &["linearizable", "is lost", "the same entries", "after a later leader"], 230),
    (Defect::IgnoredLease, &["after a later leader"], 1),
    (Defect::ImpatientMembers, &["after a later leader"], 580),
    (Defect::SendBeforeDurable, &["linearizable", "is lost", "the same entries", "after a later leader"], 2125),
    (Defect::StaleReads, &["linearizable"], 1),
];
/// Seeds that broke a rule before a defect was fixed: members with a promise to another candidate, members that are
/// admitted and their round, masters that are added while no founder is a member, processes that start at the same
/// time, groups that form beside another one, leaders that take the registry over twice in a round, members without the
/// log of the round that they have promised.
const FIXED_SEEDS: [u64; 39] = [
    3194, 9983, 11_682, 12_262, 12_852, 14_694, 18_873, 20_896, 21_747, 22_531, 22_618, 27_891, 33_687, 35_269, 39_286,
    42_595, 48_556, 49_025, 49_699, 53_984, 54_165, 55_667, 56_487, 57_393, 58_812, 59_464, 59_927, 61_173, 62_717,
    65_661, 67_937, 71_581, 73_524, 74_435, 74_512, 78_420, 80_011, 80_189, 80_966,
];
/// Number of seeds within which a defect must be detected by its rule.
const PLANS: u64 = 20;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn no_seed_breaks_a_rule() {
    let (first, seeds) = (number("FAULTS_FROM").unwrap_or(1), number("FAULTS_SEEDS").unwrap_or(SEEDS));
    let summary = campaign(&Settings { first, seeds, threads: 2, most: 20, defect: None }, &|| true);
    println!("{summary:?}");
    assert!(summary.broken.is_empty(), "{:#?}", summary.broken);
    assert!(summary.leaders > summary.seeds && summary.operations > 20 * summary.seeds, "{summary:?}");
}

#[test]
fn fixed_seeds_break_no_rule() {
    for seed in FIXED_SEEDS {
        let broken = run_plan(&Plan::draw(seed), false).broken;
        assert!(broken.is_none(), "seed {seed}: {broken:?}");
    }
}

/// Lines that must occur in the logs of a few seeds; otherwise the campaign does not cover enough.
const EXPECTED_LINES: [&str; 14] = [
    "a crash in a write",
    "the disk fails with ENOSPC",
    "it has lost the lead",
    "its disk is lost",
    "keeps its disk",
    "it was removed from the group",
    "done: adds master",
    "done: removes master",
    "handed over: begun",
    "is not a member of the group",
    "is done or not",
    "reads k0",
    "deletes k1",
    "in epoch 4",
];

#[test]
fn seeds_reach_the_expected_lines_and_are_deterministic() {
    let mut missing = EXPECTED_LINES.to_vec();
    for seed in 1..=40 {
        let played = run_plan(&Plan::draw(seed), true);
        missing.retain(|text| !played.log.iter().any(|line| line.contains(text)));
        if seed % 8 == 0 {
            let again = run_plan(&Plan::draw(seed), false);
            assert_eq!((played.digest, played.events), (again.digest, again.events));
        }
    }
    assert!(missing.is_empty(), "no seed has {missing:?}");
}

#[test]
fn defects_are_detected_by_the_rules_for_them() {
    let (next, unnoticed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((defect, rules, first)) = DEFECTS.get(next.fetch_add(1, Ordering::Relaxed)).copied() {
            let found = (first..first + PLANS).find_map(|seed| {
                let broken = run_plan(&Plan::draw(seed).with_defect(Some(defect)), false).broken?;
                rules.iter().any(|rule| broken.rule.contains(rule)).then_some((seed, broken.rule))
            });
            println!("{defect:?}: {found:?}");
            if found.is_none() {
                unnoticed.lock().unwrap().push(defect);
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let unnoticed = unnoticed.into_inner().unwrap();
    assert!(unnoticed.is_empty(), "not detected by the rules for them: {unnoticed:?}");
}

#[test]
fn plans_are_shrunk() {
    let seed = (1..).find(|seed| examine(*seed, Some(Defect::IgnoredLease)).is_some()).unwrap();
    let found = examine(seed, Some(Defect::IgnoredLease)).unwrap();
    assert!(found.plan.faults.len() <= found.faults && found.plan.faults.len() <= 5, "{:?}", found.plan);
    assert!(found.log.last().is_some_and(|line| line.contains("BROKEN")), "{:?}", found.log.last());
}
