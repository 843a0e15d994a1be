//! Campaigns break no rule for some seeds, are deterministic, and detect deliberate defects.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::run::play_with;
use super::shrink::shrink_by;
use super::*;
use crate::world::uuids::Uuids;
use crate::world::{DiskError, Process, Sabotage};

/// Seeds that are run by default. `cargo xtask test` runs many more with the release binary.
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

#[test]
fn a_quarter_of_all_seeds_has_disks_that_refuse() {
    let refusing = (1..=4000).filter(|seed| Plan::draw(*seed).refuses_writes()).count();
    assert!(refusing >= 1000, "{refusing}");
}

#[test]
fn every_uuid_on_every_wire_is_one() {
    let found = std::rc::Rc::default();
    for seed in 1..=8 {
        play_with(&Plan::draw(seed), false, |world| world.uuids = Some(std::rc::Rc::clone(&found)));
    }
    let found: std::cell::Ref<'_, Uuids> = found.borrow();
    assert!(found.wrong.is_empty(), "{} in all: {:?}", found.wrong.len(), found.wrong.first());
    for field in ["uuid", "operation_uuid", "resource_version_uuid", "status_uuid", "status_update_uuid"] {
        assert!(found.seen.contains_key(field), "no {field} in {:?}", found.seen);
    }
}

/// Lines that the logs of a few seeds must contain; otherwise the campaign does not reach far enough.
const REACHED: [&str; 29] = [
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
    "refuses writes with",
    "and its disk refuses",
    "writes nothing, and tries again",
    "is told that its disk is well",
    "cannot write its registry",
];

#[test]
fn seeds_reach_far_and_are_the_same_twice() {
    let mut missing = REACHED.to_vec();
    for seed in 1..=48 {
        let plan = Plan::draw(seed);
        let played = play(&plan, true);
        missing.retain(|text| !played.log.iter().any(|line| line.contains(text)));
        if seed % 8 == 0 {
            let again = play(&Plan::draw(seed), false);
            assert_eq!((played.digest, played.events, played.tasks), (again.digest, again.events, again.tasks));
        }
    }
    assert!(missing.is_empty(), "no seed has {missing:?}");
}

/// In so many plans a sabotage must show as what it is.
const PLANS: u64 = 300;
/// The deliberate defects, and the text of the rule that detects each.
const SABOTAGES: [(Sabotage, &str); 40] = [
    (Sabotage::Acknowledgements, "tasks to do"),
    (Sabotage::Agents, "ids are given once: agent"),
    (Sabotage::Books, "all books agree"),
    (Sabotage::Checkpoints, "was safe, and is not told"),
    (Sabotage::Damage, "what an agent wrote lets it start"),
    (Sabotage::Deposed, "only the master that leads is obeyed"),
    (Sabotage::Doubles, "a volume is made once"),
    (Sabotage::Early, "are acknowledged"),
    (Sabotage::Endings, "the end of a task is its end"),
    (Sabotage::Flags, "reservations are kept: agent"),
    (Sabotage::Directories, "no volume is lost: nobody wanted"),
    (Sabotage::FullDisks, "are acknowledged"),
    (Sabotage::GivesUp, "a master does not give up"),
    (Sabotage::Groups, "a part was started"),
    (Sabotage::Ids, "ids are given once: framework"),
    (Sabotage::Journals, "was safe, and is not told"),
    (Sabotage::Launches, "no task is started twice"),
    (Sabotage::Limits, "quota limits are kept"),
    (Sabotage::Lingering, "a volume is used by one task at a time"),
    (Sabotage::Links, "a task sees its volumes"),
    (Sabotage::Offers, "an offer is made once"),
    // Frameworks ask for the reservations again at each offer, without end.
    (Sabotage::Operations, "the world comes to rest"),
    (Sabotage::Owners, "updates go to their owners"),
    (Sabotage::Receipts, "tasks to do"),
    (Sabotage::Refusals, "a good call is taken"),
    (Sabotage::Registry, "what operators were told is done stays done"),
    (Sabotage::Remade, "a volume is made once"),
    (Sabotage::Room, "nothing is given away twice"),
    (Sabotage::Saves, "a task is launched once"),
    (Sabotage::Shutdowns, "knows"),
    (Sabotage::Snatches, "reservations are kept: a stranger"),
    (Sabotage::Strangers, "volumes are made on request"),
    (Sabotage::Tasks, "tasks to do"),
    (Sabotage::Times, "a framework is kept"),
    (Sabotage::Unhealed, "for one that refuses"),
    (Sabotage::Untold, "nothing begins on a disk that refuses"),
    (Sabotage::Unwritten, "what operators were told is done stays done"),
    (Sabotage::Updates, "no update is lost or overtaken"),
    (Sabotage::Volumes, "a volume keeps its data"),
    (Sabotage::Lingering, "no volume is lost"),
];

#[test]
fn what_is_broken_on_purpose_is_found() {
    // Few events in the hours that a world without rest is waited for; and something to notice.
    let calm = |plan: &Plan| plan.frameworks.iter().all(|framework| framework.refuse > Duration::from_secs(2));
    let deposes = |plan: &Plan| plan.faults.iter().any(|fault| matches!(fault.kind, Kind::Depose { .. }));
    let quits =
        |plan: &Plan| plan.frameworks.iter().any(|framework| framework.quits.is_some() && framework.services > 0);
    // An agent ends while its disk is full and none of its messages arrive: only its journal has what it wrote last.
    let ends_unheard = |plan: &Plan| {
        let unheard = plan.faults.iter().filter_map(|fault| match fault.kind {
            Kind::Part { process: Process::Agent(agent), span } => Some((agent, fault.at, span)),
            _ => None,
        });
        unheard.into_iter().any(|(agent, at, span)| {
            let of = Process::Agent(agent);
            let is_full = |error| matches!(error, DiskError::NoSpace | DiskError::Quota);
            let is_full = |fault: &Fault| matches!(fault.kind, Kind::RefuseWrites { process, refusal, .. } if process == of && is_full(refusal.error));
            let ends = |fault: &Fault| matches!(fault.kind, Kind::Crash { process, .. } if process == of);
            plan.faults.iter().any(|fault| is_full(fault) && fault.at == at)
                && plan.faults.iter().any(|fault| ends(fault) && (at..at + span).contains(&fault.at))
        })
    };
    // An operator sets something while the registry cannot be written, and another master leads later.
    let forgets = |plan: &Plan| {
        let refusals = plan.faults.iter().filter_map(|fault| match fault.kind {
            Kind::RefuseWrites { process: Process::Master, span, .. } => Some(fault.at..fault.at + span),
            _ => None,
        });
        refusals.into_iter().any(|refuses| {
            let sets = plan.faults.iter().find(|fault| {
                let sets = matches!(fault.kind, Kind::Operate(Action::Limit { .. } | Action::Guarantee { .. }));
                sets && refuses.contains(&fault.at)
            });
            let ends = |fault: &Fault| {
                matches!(fault.kind, Kind::Crash { process: Process::Master, .. } | Kind::FailOver { .. })
            };
            sets.is_some_and(|sets| plan.faults.iter().any(|fault| ends(fault) && fault.at > sets.at))
        })
    };
    let fit = |sabotage, plan: &Plan| match sabotage {
        Sabotage::Deposed => deposes(plan),
        Sabotage::Shutdowns => quits(plan),
        Sabotage::Early => true,
        Sabotage::Journals => ends_unheard(plan),
        Sabotage::FullDisks | Sabotage::Unhealed | Sabotage::Untold => calm(plan) && plan.refuses_writes(),
        Sabotage::Unwritten => forgets(plan),
        Sabotage::Groups => calm(plan) && plan.frameworks.iter().any(|framework| framework.groups > 0),
        Sabotage::Lingering | Sabotage::Operations => {
            calm(plan) && plan.frameworks.iter().any(|framework| framework.volumes > 0)
        }
        _ => calm(plan),
    };
    let (next, unnoticed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((sabotage, rule)) = SABOTAGES.get(next.fetch_add(1, Ordering::Relaxed)).copied() {
            // A single one, to work on its rule.
            if std::env::var("FAULTS_SABOTAGE").is_ok_and(|name| name != format!("{sabotage:?}")) {
                continue;
            }
            let mut seen = BTreeSet::new();
            // Few seeds have what it takes.
            let is_rare = matches!(sabotage, Sabotage::FullDisks | Sabotage::Journals | Sabotage::Unwritten);
            let plans = if is_rare { 10 * PLANS } else { PLANS };
            let found = (1..=plans).map(Plan::draw).filter(|plan| fit(sabotage, plan)).find_map(|plan| {
                let broken = play_with(&plan, false, |world| world.sabotage = Some(sabotage)).broken?.to_string();
                seen.insert(broken.clone());
                broken.contains(rule).then(|| format!("seed {}: {broken}", plan.seed))
            });
            println!("{sabotage:?}: {found:?} {seen:?}");
            if found.is_none() {
                unnoticed.lock().unwrap().push((sabotage, seen));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(work);
        }
    });
    let unnoticed = unnoticed.into_inner().unwrap();
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
