//! Tests that campaigns break no rule for some seeds, are deterministic, and detect deliberate defects.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::run::run_plan_with;
use super::shrink::shrink_by;
use super::uuids::Uuids;
use super::*;
use crate::world::{DiskError, Process};

/// Number of seeds that are run by default. `cargo xtask test` runs many more with the release binary.
const SEEDS: u64 = 12;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn no_seed_breaks_a_rule() {
    let (first, seeds) = (number("FAULTS_FROM").unwrap_or(1), number("FAULTS_SEEDS").unwrap_or(SEEDS));
    let summary = campaign(&Settings { first, seeds, threads: 2, most: 20, defect: None }, &|| true);
    println!("{summary:?}");
    if let Some(seed) = number("FAULTS_LOG") {
        println!("{:#?}\n{}", Plan::draw(seed), run_plan(&Plan::draw(seed), true).log.join("\n"));
    }
    if number("FAULTS_SEEDS").is_none()
        && let Some((seed, _)) = summary.broken.first()
        && let Some(finding) = examine(*seed, None)
    {
        println!("{}\n{:#?}", finding.log.join("\n"), finding.plan);
    }
    assert!(summary.broken.is_empty(), "{:#?}", summary.broken);
    assert!(summary.tasks > summary.seeds, "worlds without work: {summary:?}");
}

#[test]
fn a_quarter_of_all_seeds_refuses_writes() {
    let refusing = (1..=4000).filter(|seed| Plan::draw(*seed).refuses_writes()).count();
    assert!(refusing >= 1000, "{refusing}");
}

#[test]
fn every_uuid_has_version_and_variant() {
    let found: Rc<RefCell<Uuids>> = Rc::default();
    for seed in 1..=8 {
        let seen = Rc::clone(&found);
        run_plan_with(&Plan::draw(seed), false, |world| {
            world.set_trace(Box::new(move |event| seen.borrow_mut().look(&format!("{event:?}"))));
        });
    }
    let found = found.borrow();
    assert!(found.wrong.is_empty(), "{} in all: {:?}", found.wrong.len(), found.wrong.first());
    for field in ["uuid", "operation_uuid", "resource_version_uuid", "status_uuid", "status_update_uuid"] {
        assert!(found.seen.contains_key(field), "no {field} in {:?}", found.seen);
    }
}

/// Lines that must occur in the logs of a few seeds; otherwise the campaign does not cover enough.
const EXPECTED_LINES: [&str; 29] = [
    "from a deposed master",
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
    "receives the acknowledgement",
    "drains agent",
    "reactivates agent",
    "reserves a CPU",
    "LAUNCH_GROUP",
    "is deposed",
    "another master leads",
    "creates /w/volumes",
    "destroys /w/volumes",
    "uses f",
    "DESTROY_VOLUMES",
    "and all its executors are killed",
    "refuses writes with",
    "while its disk fails",
    "retries a refused write",
    "disk recovered",
    "cannot write its registry",
];

#[test]
fn seeds_reach_the_expected_lines_and_are_deterministic() {
    let mut missing = EXPECTED_LINES.to_vec();
    for seed in 1..=48 {
        let plan = Plan::draw(seed);
        let played = run_plan(&plan, true);
        missing.retain(|text| !played.log.iter().any(|line| line.contains(text)));
        if seed % 8 == 0 {
            let again = run_plan(&Plan::draw(seed), false);
            assert_eq!((played.digest, played.events, played.tasks), (again.digest, again.events, again.tasks));
        }
    }
    assert!(missing.is_empty(), "no seed has {missing:?}");
}

/// Number of plans in which a defect must be detected by its rule.
const PLANS: u64 = 300;
/// The deliberate defects, and the text of the rule that detects each.
const DEFECTS: [(Defect, &str); 40] = [
    (Defect::LostAcknowledgements, "unfinished tasks"),
    (Defect::SameAgentIds, "ids are given once: agent"),
    (Defect::UncountedUse, "all tables agree"),
    (Defect::LostUpdateStreams, "was durable, and is not delivered"),
    (Defect::DamagedCheckpoints, "an agent starts from its checkpoints"),
    (Defect::DeposedMasterObeyed, "only the leading master is obeyed"),
    (Defect::VolumesOnTwoAgents, "a volume is made once"),
    (Defect::EarlySentinel, "are acknowledged"),
    (Defect::RunningAfterEnd, "a terminal state is final"),
    (Defect::LostFlagReservations, "reservations are kept: agent"),
    (Defect::LostVolumes, "was destroyed without a request"),
    (Defect::IgnoredRefusals, "are acknowledged"),
    (Defect::MasterGivesUp, "a master does not exit"),
    (Defect::SplitGroups, "a part was started"),
    (Defect::SameFrameworkIds, "ids are given once: framework"),
    (Defect::LostJournal, "was durable, and is not delivered"),
    (Defect::DoubleLaunches, "no task is started twice"),
    (Defect::IgnoredQuota, "quota limits are obeyed"),
    (Defect::LingeringTasks, "a volume is used by one task at a time"),
    (Defect::HiddenVolumes, "a task sees its volumes"),
    (Defect::DoubleOffers, "an offer is made once"),
    // Frameworks request the reservations again at each offer, without end.
    (Defect::LostOperations, "the cluster becomes idle in time"),
    (Defect::MisroutedUpdates, "updates go to their owners"),
    (Defect::RepeatedUpdates, "unfinished tasks"),
    (Defect::RefusedCalls, "a valid call is accepted"),
    (Defect::LostQuota, "confirmed operator calls persist"),
    (Defect::VolumesMadeAgain, "a volume is made once"),
    (Defect::FewerCpus, "no resources are allocated twice"),
    (Defect::LostSchedulerState, "a task is launched once"),
    (Defect::LostShutdowns, "the master has"),
    (Defect::IgnoredReservations, "reservations are kept: an unknown role"),
    (Defect::UnrequestedVolumes, "volumes are made on request"),
    (Defect::LostTasks, "unfinished tasks"),
    (Defect::LostFailoverTimeouts, "a framework is not removed"),
    (Defect::UnreportedDiskRepairs, "as failing"),
    (Defect::UnreportedDiskErrors, "no task starts on a failing disk"),
    (Defect::IgnoredRegistryRefusals, "confirmed operator calls persist"),
    (Defect::UndeliveredUpdates, "no update is lost or overtaken"),
    (Defect::EmptiedVolumes, "a volume keeps its data"),
    (Defect::LingeringTasks, "no volume is lost"),
];

#[test]
fn every_deliberate_defect_is_detected() {
    // Few events in the hours that a world without rest is waited for; and something to notice.
    let calm = |plan: &Plan| plan.frameworks.iter().all(|framework| framework.refuse > Duration::from_secs(2));
    let deposes = |plan: &Plan| plan.faults.iter().any(|fault| matches!(fault.kind, Kind::Depose { .. }));
    let quits =
        |plan: &Plan| plan.frameworks.iter().any(|framework| framework.quits.is_some() && framework.services > 0);
    // An agent ends while its disk is full and none of its messages arrive: only its journal has what it wrote last.
    let ends_unheard = |plan: &Plan| {
        let unheard = plan.faults.iter().filter_map(|fault| match fault.kind {
            Kind::Partition { process: Process::Agent(agent), span } => Some((agent, fault.at, span)),
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
    // An operator changes a setting while the registry cannot be written, and another master leads later.
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
    let fit = |defect, plan: &Plan| match defect {
        Defect::DeposedMasterObeyed => deposes(plan),
        Defect::LostShutdowns => quits(plan),
        Defect::EarlySentinel => true,
        Defect::LostJournal => ends_unheard(plan),
        Defect::IgnoredRefusals | Defect::UnreportedDiskRepairs | Defect::UnreportedDiskErrors => {
            calm(plan) && plan.refuses_writes()
        }
        Defect::IgnoredRegistryRefusals => forgets(plan),
        Defect::SplitGroups => calm(plan) && plan.frameworks.iter().any(|framework| framework.groups > 0),
        Defect::LingeringTasks | Defect::LostOperations => {
            calm(plan) && plan.frameworks.iter().any(|framework| framework.volumes > 0)
        }
        _ => calm(plan),
    };
    let (next, unnoticed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((defect, rule)) = DEFECTS.get(next.fetch_add(1, Ordering::Relaxed)).copied() {
            // Runs a single defect, for work on its rule.
            if std::env::var("FAULTS_DEFECT").is_ok_and(|name| name != format!("{defect:?}")) {
                continue;
            }
            let mut seen = BTreeSet::new();
            // Few seeds meet the conditions of these defects.
            let is_rare =
                matches!(defect, Defect::IgnoredRefusals | Defect::LostJournal | Defect::IgnoredRegistryRefusals);
            let plans = if is_rare { 10 * PLANS } else { PLANS };
            let found = (1..=plans).map(Plan::draw).filter(|plan| fit(defect, plan)).find_map(|plan| {
                let seed = plan.seed;
                let broken = run_plan(&plan.with_defect(Some(defect)), false).broken?.to_string();
                seen.insert(broken.clone());
                broken.contains(rule).then(|| format!("seed {seed}: {broken}"))
            });
            println!("{defect:?}: {found:?} {seen:?}");
            if found.is_none() {
                unnoticed.lock().unwrap().push((defect, seen));
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
fn plans_are_shrunk_to_a_minimum() {
    let reboots = |plan: &Plan| plan.faults.iter().any(|fault| matches!(fault.kind, Kind::Reboot { .. }));
    let seed = (1..).find(|seed| reboots(&Plan::draw(*seed))).unwrap();
    let small = shrink_by(&Plan::draw(seed), &mut |plan| reboots(plan));
    let [Fault { kind: Kind::Reboot { downtime, .. }, .. }] = small.faults[..] else { panic!("{:?}", small.faults) };
    assert!(downtime <= Duration::from_millis(1));
    assert_eq!((small.frameworks.len(), small.frameworks[0].tasks, small.limit), (1, 1, None));
    let last = Process::Agent(small.agents.len() - 1);
    assert!(small.agents.len() == 1 || small.faults[0].concerns(last), "{small:?}");
}
