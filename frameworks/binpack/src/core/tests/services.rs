//! Tests services: their count, restarts with back-off, and replacement by a new version.

use std::time::Duration;

use sdk::v1::TaskState;

use super::world::World;
use super::{SECOND, service, stop};
use crate::Knobs;
use crate::core::{JobEvent, Reply, Request, State};
use crate::job::{Health, Job, Probe, Restart, Run, Update};

fn scale(name: &str, count: u32) -> Request {
    Request::Scale { name: name.to_owned(), count }
}

#[test]
fn a_count_is_kept_and_changed() {
    let mut world = World::new(Knobs::default(), &["cpus:8;mem:1000"]);
    world.submit(vec![service("s", 3, 1.0)]);
    world.soon();
    world.run_all();
    assert_eq!(world.tasks.len(), 3);
    assert_eq!(world.state("s"), State::Running);
    assert_eq!(world.request(scale("s", 5)), Ok(Reply::Done));
    world.soon();
    world.run_all();
    assert_eq!(world.tasks.len(), 5);
    world.request(scale("s", 1)).unwrap();
    assert_eq!(world.of_job("s"), ["s.1.0.0"], "the highest numbers go first");
    world.request(scale("s", 0)).unwrap();
    assert!(world.tasks.is_empty());
    world.request(scale("s", 2)).unwrap();
    world.soon();
    assert_eq!(world.tasks.len(), 2);
    world.request(stop("s")).unwrap();
    assert!(world.tasks.is_empty());
    assert_eq!(world.state("s"), State::Stopped);
}

#[test]
fn a_task_that_dies_is_started_again_and_waits_longer_each_time() {
    let mut world = World::new(Knobs::default(), &["cpus:8;mem:1000"]);
    let restart = Restart { first: SECOND, factor: 2.0, longest: 5 * SECOND, steady: 60 * SECOND };
    world.submit(vec![Job { restart, ..service("s", 1, 1.0) }]);
    let mut waits = Vec::new();
    for attempt in 0..5 {
        let mut waited = 0;
        while world.tasks.is_empty() {
            world.offer();
            if world.tasks.is_empty() {
                world.pass(SECOND / 2);
                waited += 1;
            }
        }
        waits.push(waited);
        let id = format!("s.1.0.{attempt}");
        world.update(&id, TaskState::TaskRunning);
        world.update(&id, TaskState::TaskFailed);
    }
    assert_eq!(waits, [0, 2, 4, 8, 10], "half seconds: 1, 2, 4 and then 5 s at most");
    world.pass(6 * SECOND);
    world.offer();
    world.update("s.1.0.5", TaskState::TaskRunning);
    world.pass(61 * SECOND);
    world.update("s.1.0.5", TaskState::TaskFinished);
    assert_eq!(world.show("s").tasks[0].failures, 1, "after a steady time the waits start anew");
    assert_eq!(world.show("s").past.len(), 6);
}

#[test]
fn a_lost_task_is_replaced_at_once() {
    let mut world = World::new(Knobs::default(), &["cpus:8;mem:1000"]);
    world.submit(vec![service("s", 1, 1.0)]);
    world.soon();
    world.run_all();
    world.update("s.1.0.0", TaskState::TaskLost);
    world.soon();
    assert!(world.tasks.contains_key("s.1.0.1"));
}

/// Replaces a service's 4 tasks by a new version, and returns the minimum of healthy tasks and the maximum of running
/// ones.
fn replace(update: Update) -> (usize, usize) {
    let mut world = World::new(Knobs::default(), &["cpus:50;mem:10000"]);
    let old = Job { update, ..service("s", 4, 1.0) };
    world.submit(vec![old.clone()]);
    world.soon();
    world.run_all();
    world.kills_at_once = false;
    world.submit(vec![Job { run: Run::Command("new".into()), ..old }]);
    assert_eq!(world.state("s"), State::Deploying);
    let (mut fewest, mut most) = (4, 4);
    for _ in 0..50 {
        world.pass(SECOND);
        world.soon();
        most = most.max(world.tasks.len());
        // One new task starts to run, and one that was killed ends.
        if let Some(id) = world.ids_in(TaskState::TaskStaging).first() {
            world.update(&id.clone(), TaskState::TaskRunning);
        }
        let asked: Vec<String> = world.calls.drain(..).filter_map(|c| Some(c.kill?.task_id.value.into())).collect();
        for id in asked {
            world.update(&id, TaskState::TaskKilled);
        }
        fewest = fewest.min(world.ids_in(TaskState::TaskRunning).len());
    }
    assert_eq!(world.state("s"), State::Running);
    let view = world.show("s");
    assert_eq!((view.summary.version, view.tasks.len()), (2, 4));
    assert!(view.tasks.iter().all(|t| t.version == 2));
    let indices: Vec<u32> = view.tasks.iter().map(|t| t.index).collect();
    assert_eq!(indices, [0, 1, 2, 3]);
    let deployed = world.events().iter().filter(|h| matches!(h, JobEvent::Deployed { .. })).count();
    assert_eq!(deployed, 2, "once for each version");
    (fewest, most)
}

#[test]
fn a_new_version_replaces_the_old_one_within_its_bounds() {
    assert_eq!(replace(Update { min_healthy: 1.0, max_over: 1.0 }), (4, 8));
    assert_eq!(replace(Update { min_healthy: 1.0, max_over: 0.0 }), (4, 5));
    assert_eq!(replace(Update { min_healthy: 0.5, max_over: 0.0 }), (2, 4));
    assert_eq!(replace(Update { min_healthy: 0.75, max_over: 0.25 }), (3, 5));
    assert_eq!(replace(Update { min_healthy: 0.0, max_over: 0.0 }), (0, 4));
}

#[test]
fn old_tasks_that_end_slowly_leave_no_room_for_more() {
    let mut world = World::new(Knobs::default(), &["cpus:50;mem:10000"]);
    let update = Update { min_healthy: 0.0, max_over: 0.0 };
    let old = Job { update, ..service("s", 4, 1.0) };
    world.submit(vec![old.clone()]);
    world.soon();
    world.run_all();
    world.kills_at_once = false;
    world.submit(vec![Job { run: Run::Command("new".into()), ..old }]);
    // All four tasks are killed, and do not end at once.
    for slow in ["s.1.0.0", "s.1.1.0", "s.1.2.0", "s.1.3.0"] {
        for _ in 0..3 {
            world.pass(SECOND);
            world.soon();
            world.run_all();
            assert!(world.tasks.len() <= 4, "{:?}", world.tasks.keys());
        }
        world.update(slow, TaskState::TaskKilled);
    }
    world.pass(SECOND);
    world.soon();
    world.run_all();
    assert_eq!(world.state("s"), State::Running);
    assert_eq!(world.show("s").summary.version, 2);
}

#[test]
fn counts_are_noted_under_the_version_that_goes_on() {
    let mut world = World::new(Knobs::default(), &["cpus:50;mem:10000"]);
    world.submit(vec![service("s", 1, 1.0)]);
    world.soon();
    world.run_all();
    let first = world.of_job("s");
    for count in 2..20 {
        world.pass(SECOND);
        world.request(scale("s", count)).unwrap();
    }
    assert_eq!(world.of_job("s")[..1], first[..], "nothing is replaced");
    let versions = world.show("s").versions;
    assert_eq!(versions.len(), 10);
    assert_eq!((versions[0].job.count, versions[9].job.count), (1, 19), "the first and the last counts are there");
    assert!(versions.iter().all(|v| v.number == 1));
    assert!(versions.is_sorted_by(|a, b| a.since < b.since));
    world.request(Request::Restart { name: "s".into() }).unwrap();
    assert_eq!(world.show("s").summary.version, 2);
}

#[test]
fn a_service_of_no_tasks_is_as_wanted() {
    let mut world = World::new(Knobs::default(), &["cpus:8;mem:1000"]);
    world.submit(vec![service("s", 0, 1.0)]);
    assert_eq!(world.state("s"), State::Running);
}

#[test]
fn versions_of_one_instant_are_distinguished() {
    let mut world = World::new(Knobs::default(), &["cpus:8;mem:1000"]);
    world.submit(vec![service("s", 1, 1.0)]);
    for count in 2..5 {
        world.request(scale("s", count)).unwrap();
    }
    world.request(Request::Restart { name: "s".to_owned() }).unwrap();
    let Ok(Reply::Job(view)) = world.request(Request::Show { name: "s".to_owned() }) else { panic!("no view") };
    let millis: Vec<u64> = view.versions.iter().map(|v| (v.since * 1_000.0).round() as u64).collect();
    assert_eq!(millis.len(), 5);
    assert!(millis.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{millis:?}");
}

#[test]
fn a_new_version_that_is_not_well_keeps_the_old_one_running() {
    let mut world = World::new(Knobs::default(), &["cpus:50;mem:10000"]);
    let health = Health {
        probe: Probe::Command("check".into()),
        grace: Duration::ZERO,
        interval: SECOND,
        timeout: SECOND,
        failures: 1,
    };
    let old = Job { health: Some(health), ..service("s", 2, 1.0) };
    world.submit(vec![old.clone()]);
    world.soon();
    for id in world.of_job("s") {
        world.update_with(&id, TaskState::TaskRunning, Some(true));
    }
    assert_eq!(world.state("s"), State::Running);
    world.submit(vec![Job { run: Run::Command("bad".into()), ..old.clone() }]);
    world.soon();
    world.run_all();
    world.pass(60 * SECOND);
    assert_eq!(world.tasks.len(), 4, "nothing was heard of the new ones' health");
    for id in world
        .ids_in(TaskState::TaskRunning)
        .into_iter()
        .filter(|id| !id.starts_with("s.1.0") && !id.starts_with("s.1.1"))
    {
        world.update_with(&id, TaskState::TaskRunning, Some(false));
        world.update(&id, TaskState::TaskFailed);
    }
    world.pass(60 * SECOND);
    assert_eq!(world.ids_in(TaskState::TaskRunning), ["s.1.0.0", "s.1.1.0"]);
    // After a return to the former definition, the tasks of the bad version end, and the old ones are replaced by equal
    // ones.
    world.submit(vec![old]);
    for _ in 0..10 {
        world.pass(SECOND);
        world.soon();
        for id in world.ids_in(TaskState::TaskStaging) {
            world.update_with(&id, TaskState::TaskRunning, Some(true));
        }
    }
    assert_eq!(world.state("s"), State::Running);
    assert_eq!(world.tasks.len(), 2);
}

#[test]
fn the_same_again_changes_nothing_and_another_count_replaces_nothing() {
    let mut world = World::new(Knobs::default(), &["cpus:8;mem:1000"]);
    world.submit(vec![service("s", 2, 1.0)]);
    world.soon();
    world.run_all();
    let before = world.of_job("s");
    assert_eq!(world.submit(vec![service("s", 2, 1.0)])[0].taken, crate::core::SubmissionEffect::Unchanged);
    assert_eq!(world.submit(vec![service("s", 3, 1.0)])[0].taken, crate::core::SubmissionEffect::Scaled);
    world.soon();
    world.run_all();
    assert_eq!(world.of_job("s")[..2], before[..]);
    assert_eq!(world.tasks.len(), 3);
    world.request(Request::Restart { name: "s".into() }).unwrap();
    for _ in 0..5 {
        world.soon();
        world.run_all();
    }
    assert!(world.of_job("s").iter().all(|id| !before.contains(id)));
    assert_eq!(world.tasks.len(), 3);
}

#[test]
fn killed_tasks_are_replaced_or_not_as_requested() {
    let mut world = World::new(Knobs::default(), &["cpus:8;mem:1000"]);
    world.submit(vec![service("s", 3, 1.0)]);
    world.soon();
    world.run_all();
    world.request(Request::Kill { name: "s".into(), numbers: vec![1], scale: false }).unwrap();
    world.soon();
    world.run_all();
    assert_eq!(world.of_job("s"), ["s.1.0.0", "s.1.1.1", "s.1.2.0"]);
    world.request(Request::Kill { name: "s".into(), numbers: vec![0, 0], scale: true }).unwrap();
    world.soon();
    assert_eq!(world.of_job("s"), ["s.1.1.1", "s.1.2.0"]);
    assert_eq!(world.show("s").summary.count, 2);
}
