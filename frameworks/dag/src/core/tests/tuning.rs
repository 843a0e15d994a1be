//! Tests of drop fractions and sprint ages that are learned from ended jobs.

use std::collections::BTreeMap;
use std::time::Duration;

use base::Time;

use super::world::World;
use crate::core::{After, Reply, Request, Settings, Sprinting, Targets, TuningView};
use crate::job::Class;

/// Runs a world in steps of a second. `jobs` returns the file of the job that is submitted at a second. A task takes
/// `took` seconds, or `sprinted` if it sprints at twice the cores.
fn drive(world: &mut World, seconds: u64, jobs: impl Fn(u64) -> Option<String>, took: f64, sprinted: f64) {
    let mut launched: BTreeMap<String, Time> = BTreeMap::new();
    for second in 0..seconds {
        if let Some(job) = jobs(second) {
            world.submit(&job);
        }
        world.pass(Duration::from_secs(1));
        let ids: Vec<String> = world.tasks.keys().cloned().collect();
        for id in ids {
            let since = *launched.entry(id.clone()).or_insert(world.now);
            let sprints = !world.tasks[&id].info.limits.is_empty();
            if world.now.since(since).as_secs_f64() >= if sprints { sprinted } else { took } {
                world.finish(&id);
            }
        }
        world.offer();
        let now = world.now;
        world.tasks.keys().for_each(|id| {
            launched.entry(id.clone()).or_insert(now);
        });
    }
}

fn job(number: u64, class: &str, tasks: u32) -> String {
    format!(
        "name = '{class}{number}'\npriority = '{class}'\n[[stage]]\nname = 's'\ntasks = {tasks}\ncpus = 1\ncommand = 'x'\n\
         approximate = {{ drop = 0.5 }}\n"
    )
}

fn tuning(world: &mut World) -> TuningView {
    match world.request(Request::Status) {
        Ok(Reply::Status(status)) => status.tuning.unwrap(),
        other => panic!("{other:?}"),
    }
}

fn targets(class: Class, seconds: u64) -> Targets {
    let mut targets = Targets::default();
    targets.set(class, Duration::from_secs(seconds));
    targets
}

fn drops(target: u64) -> World {
    let settings = Settings {
        drop: 0.99,
        drop_auto: true,
        drop_under_load: false,
        targets: targets(Class::Low, target),
        ..Settings::default()
    };
    World::new(settings, 1, 4.0)
}

#[test]
fn the_share_is_what_the_target_needs() {
    // Four slots, and every 35 s a job of 12 tasks of 10 s: a job takes 30 s of all slots.
    let jobs = |second: u64| second.is_multiple_of(35).then(|| job(second, "low", 12));
    let mut easy = drops(1_000);
    drive(&mut easy, 700, jobs, 10.0, 10.0);
    let view = tuning(&mut easy);
    assert_eq!(view.drop, Some(0.0), "{view:?}");
    assert!(view.why[0].contains("the smallest share that meets all targets"), "{view:?}");

    let mut tight = drops(25);
    drive(&mut tight, 700, jobs, 10.0, 10.0);
    let view = tuning(&mut tight);
    let drop = view.drop.unwrap();
    assert!(drop > 0.1 && drop <= 0.5, "{view:?}");
    let known = tight.show("low665");
    assert!(known.stages[0].tasks.dropped > 0, "{known:?}");
    assert!(known.tuned[0].starts_with("drops"), "{:?}", known.tuned);
    tight.restart();
    assert_eq!(tuning(&mut tight).drop, Some(drop), "kept");

    let mut impossible = drops(1);
    drive(&mut impossible, 700, jobs, 10.0, 10.0);
    let view = tuning(&mut impossible);
    assert_eq!(view.drop, Some(0.5), "all that the stages allow: {view:?}");
    assert!(view.why[0].contains("cannot be met"), "{view:?}");
}

#[test]
fn nothing_is_chosen_before_enough_has_ended() {
    let mut world = drops(1);
    drive(&mut world, 150, |second| second.is_multiple_of(35).then(|| job(second, "low", 12)), 10.0, 10.0);
    let view = tuning(&mut world);
    assert_eq!(view.drop, Some(0.0));
    assert!(view.why[0].contains("are needed"), "{view:?}");
}

fn sprints(target: Option<u64>) -> TuningView {
    let sprint = Sprinting { boost: 1.0, budget: 1e6, refill: 100.0, after: After::Auto };
    let targets = target.map_or(Targets::default(), |target| targets(Class::High, target));
    let mut world = World::new(Settings { sprint, targets, ..Settings::default() }, 1, 4.0);
    let jobs = |second: u64| second.is_multiple_of(60).then(|| job(second, "high", 12));
    drive(&mut world, 4_000, jobs, 15.0, 10.0);
    tuning(&mut world)
}

#[test]
fn jobs_sprint_no_earlier_than_their_target_needs() {
    let fastest = sprints(None);
    let rate = fastest.sprint_rate.unwrap();
    assert!((1.3..1.7).contains(&rate), "tasks take 15 s or 10 s: {fastest:?}");
    let early = fastest.sprint_after.unwrap();
    // A job of three waves takes 45 s without a sprint and 30 s with one.
    let relaxed = sprints(Some(500));
    let late = relaxed.sprint_after.unwrap();
    assert!(late > 40.0, "no sprint is needed: {relaxed:?}");
    assert!(early < 5.0, "{fastest:?}");
    assert!(relaxed.why[0].contains("the latest start with a mean response of 500 s"), "{relaxed:?}");
    let impossible = sprints(Some(1));
    assert!(impossible.why[0].contains("cannot be reached"), "{impossible:?}");
    assert!(impossible.sprint_after.unwrap() < 5.0, "{impossible:?}");
}

#[test]
fn an_age_that_is_set_is_kept() {
    let sprint = Sprinting { boost: 1.0, budget: 1e6, refill: 100.0, after: After::Age(Duration::from_secs(20)) };
    let mut world = World::new(Settings { sprint, ..Settings::default() }, 1, 4.0);
    world.submit(&job(1, "high", 12));
    world.soon();
    assert!(world.tasks.values().all(|task| task.info.limits.is_empty()), "it is young");
    world.pass(Duration::from_secs(20));
    let first: Vec<String> = world.tasks.keys().cloned().collect();
    first.iter().for_each(|id| world.finish(id));
    world.soon();
    assert_eq!(world.tasks.len(), 4);
    assert!(world.tasks.values().all(|task| task.info.limits["cpus"].value == 2.0));
}
