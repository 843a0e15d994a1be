//! Tests of the outputs that jobs leave in a shared directory, and of their removal.

use sdk::v1::TaskState;

use super::world::World;
use crate::core::{JobEvent, Removal, Reply, Request, Settings, StageRemoval, WorkItem};
use crate::order::Heuristic;
use crate::task::{Spec, VARIABLE};

fn pipeline(keep: &str) -> String {
    format!(
        "name = 'job'\n{keep}\n\
         [[stage]]\nname = 'map'\ntasks = 3\ncommand = 'x'\noutputs = ['out']\n\
         [[stage]]\nname = 'wait'\nafter = 'map'\ncommand = 'x'\n\
         [[stage]]\nname = 'sum'\nafter = 'wait'\ncommand = 'x'\ninput = {{ stage = 'map' }}\noutputs = ['total']\n"
    )
}

fn shared() -> Settings {
    Settings { shared: Some("/shared".into()), ..Settings::default() }
}

/// Returns the removals that the scheduler requests.
fn removals(world: &mut World) -> Vec<(u64, Removal)> {
    let removal = |item| match item {
        WorkItem::Remove { serial, removal } => (serial, removal),
        other => panic!("{other:?}"),
    };
    world.take_work_items().into_iter().map(removal).collect()
}

fn stage_removal(stage: &str, tasks: u32, keeps_outputs: bool) -> StageRemoval {
    StageRemoval { stage: stage.into(), tasks, keeps_outputs }
}

#[test]
fn what_no_stage_reads_any_more_is_removed_after_the_end() {
    for (keep, of_sum) in [("", true), ("keep = 'outputs'", true), ("keep = 'none'", false)] {
        let mut world = World::new(shared(), 1, 4.0);
        world.submit(&pipeline(keep));
        world.soon();
        let spec: Spec = serde_json::from_str(&world.environment("job.1.map.0.1", VARIABLE).unwrap()).unwrap();
        assert_eq!(spec.directory.as_deref(), Some("/shared/job.1.F/map"));
        world.finish("job.1.map.0.1");
        assert!(removals(&mut world).is_empty(), "it has not ended");
        world.run_dry();
        let [(1, removal)] = &removals(&mut world)[..] else { panic!() };
        assert_eq!((removal.shared.as_str(), removal.directory.as_str()), ("/shared", "job.1.F"));
        assert_eq!(
            removal.stages,
            [stage_removal("map", 3, false), stage_removal("sum", 1, of_sum)],
            "the other has no directory"
        );
        let removed =
            |world: &mut World| world.show("job").stages.iter().map(|stage| stage.removed).collect::<Vec<_>>();
        assert_eq!(removed(&mut world), [false; 3], "it is not done yet");
        world.request(Request::Removed { serial: 1, failed: None }).unwrap();
        assert_eq!(removed(&mut world), [true, false, !of_sum]);
    }
}

#[test]
fn jobs_that_keep_all_or_share_nothing_leave_nothing_to_be_removed() {
    for (settings, keep) in [(shared(), "keep = 'all'"), (Settings::default(), "")] {
        let mut world = World::new(settings, 1, 4.0);
        world.submit(&pipeline(keep));
        world.run_dry();
        assert!(removals(&mut world).is_empty());
        assert!(world.show("job").stages.iter().all(|stage| !stage.removed));
    }
}

#[test]
fn jobs_that_fail_or_are_cancelled_leave_nothing_behind_either() {
    let mut world = World::new(shared(), 1, 4.0);
    world.submit(&pipeline("").replace("job", "fails"));
    world.soon();
    world.update("fails.1.map.1.1", TaskState::TaskFailed, "exited with status 1");
    assert_eq!(removals(&mut world)[0].1.stages, [stage_removal("map", 3, false)], "what has begun");
    world.submit(&pipeline("").replace("job", "waits"));
    world.request(Request::Cancel { name: "waits".into() }).unwrap();
    assert!(removals(&mut world).is_empty(), "nothing of it was launched");
}

#[test]
fn what_is_to_be_removed_is_known_until_it_is_done() {
    let mut world = World::new(shared(), 1, 4.0);
    world.submit(&pipeline(""));
    world.run_dry();
    let first = removals(&mut world);
    assert_eq!(world.store.keys().filter(|key| key.contains("remove/")).count(), 1);
    world.restart();
    assert_eq!(removals(&mut world), first, "it was killed meanwhile");
    // Even if the job is not known any more.
    world.request(Request::Forget { name: "job".into() }).unwrap();
    world.restart();
    assert_eq!(removals(&mut world), first);
    world.events();
    world.request(Request::Removed { serial: 1, failed: Some("no room".into()) }).unwrap();
    assert_eq!(world.events(), [JobEvent::NotRemoved { name: "job".into(), why: "no room".into() }]);
    let Ok(Reply::Status(status)) = world.request(Request::Status) else { panic!() };
    assert_eq!(status.removing, 0, "nothing is tried before the next start");
    world.restart();
    assert_eq!(removals(&mut world), first);
    world.request(Request::Removed { serial: 1, failed: None }).unwrap();
    world.request(Request::Removed { serial: 1, failed: None }).unwrap();
    assert_eq!(world.events(), [JobEvent::Removed { name: "job".into() }]);
    assert!(!world.store.keys().any(|key| key.contains("remove/")), "{:?}", world.store.keys());
    world.restart();
    assert!(removals(&mut world).is_empty());
}

/// Checks that jobs of a version that did not save the name keep their directory, and that jobs that have not started
/// get the new one.
#[test]
fn directories_of_older_versions_keep_their_names() {
    // The first job uses all resources.
    let mut world = World::new(Settings { order: Heuristic::Fifo.into(), ..shared() }, 1, 0.3);
    world.submit(&pipeline(""));
    world.submit(&pipeline("").replace("job", "late"));
    world.soon();
    let mut heads = 0;
    for (key, value) in world.store.iter_mut().filter(|(key, _)| key.contains("job/")) {
        let mut head: serde_json::Value = serde_json::from_slice(value).unwrap();
        assert!(head.as_object_mut().unwrap().remove("directory").is_some(), "{key}");
        *value = serde_json::to_vec(&head).unwrap();
        heads += 1;
    }
    assert_eq!(heads, 2);
    world.restart();
    world.run_dry();
    let names: Vec<String> = removals(&mut world).into_iter().map(|(_, removal)| removal.directory).collect();
    assert_eq!(names, ["job.1", "late.2.F"]);
}
