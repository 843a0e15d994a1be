//! Tests active sizing: launches follow measurements, running tasks do not change, and a lack of memory is learned.

use advice::Reading;
use sdk::v1::TaskState;
use sdk::v1::task_status::Reason;

use super::world::World;
use super::{SECOND, array, gang};
use crate::core::{JobView, Measurable, Measurement, Reply, Request};
use crate::job::{Job, Kind};
use crate::{Knobs, Need};

fn sizing() -> Knobs {
    Knobs { active_sizing: Some("0.05".parse().unwrap()), ..Knobs::default() }
}

/// Returns a service that requests a core and 256 MB.
fn large(name: &str, count: u32) -> Job {
    Job { kind: Kind::Service, count, ..Job::new(name, "true", Need::of(1.0, 256.0)) }
}

impl World {
    /// Measures the running tasks this many times, once a second, while they use these amounts.
    fn measure(&mut self, times: u32, cores: f64, megabytes: f64) {
        for _ in 0..times {
            self.pass(SECOND);
            let at = self.now.as_secs_f64();
            let reading =
                Reading { at, cpu_seconds: at * cores, rss_bytes: megabytes * 1_048_576.0, ..Reading::default() };
            let measurement = |task_id| Measurement { task_id, reading };
            let measurements = self.ids_in(TaskState::TaskRunning).into_iter().map(measurement).collect();
            assert_eq!(self.request(Request::Measured(measurements)), Ok(Reply::Done));
        }
    }

    fn given(&self, id: &str) -> Need {
        self.tasks[id].need
    }

    /// Returns the applied need, and the reasons as one text.
    fn sized(&mut self, name: &str) -> (Need, String) {
        let JobView { sizing, .. } = self.show(name);
        let sizing = sizing.unwrap();
        (sizing.applied, sizing.why.join("; "))
    }
}

#[test]
fn a_restart_runs_with_what_was_used() {
    let mut world = World::new(sizing(), &["cpus:4;mem:1000"]);
    world.submit(vec![large("s", 2)]);
    world.soon();
    world.run_all();
    world.measure(5, 0.1, 20.0);
    assert_eq!(world.sized("s").0, Need::of(1.0, 256.0), "too few measurements");
    world.measure(30, 0.1, 20.0);
    // Two tasks of 72: a margin of 49 %, and at least Mesos's minimum. 68 measurements of 72: a margin of 12 %.
    assert_eq!(world.sized("s").0, Need::of(0.12, 32.0));
    let view = world.show("s");
    assert_eq!(view.sizing.unwrap().requested, Need::of(1.0, 256.0));
    assert_eq!(view.tasks[0].given, Some(Need::of(1.0, 256.0)), "a running task is not touched");
    assert_eq!((world.kills, world.tasks.len()), (0, 2));

    world.update("s.1.0.0", TaskState::TaskFailed);
    world.pass(2 * SECOND);
    world.soon();
    assert_eq!(world.given("s.1.0.1"), Need::of(0.12, 32.0));
    assert_eq!(world.given("s.1.1.0"), Need::of(1.0, 256.0));
    // Further tasks are launched in the same way, and measurements of an older version do not apply to a new one.
    world.request(Request::Scale { name: "s".to_owned(), count: 3 }).unwrap();
    world.soon();
    assert_eq!(world.given("s.1.2.0"), Need::of(0.12, 32.0));
    world.submit(vec![Job { priority: 1, ..large("s", 3) }]);
    assert_eq!(world.sized("s").0, Need::of(1.0, 256.0));
    world.measure(30, 0.1, 20.0);
    assert_eq!(world.sized("s").0, Need::of(1.0, 256.0), "only tasks of the new version count");
}

#[test]
fn a_lack_of_memory_gives_it_back_and_then_raises_it() {
    let mut world = World::new(sizing(), &["cpus:4;mem:4000"]);
    world.submit(vec![large("s", 1)]);
    world.soon();
    world.run_all();
    world.measure(40, 0.1, 20.0);
    let mut given = Vec::new();
    for attempt in 0..6 {
        let id = format!("s.1.0.{attempt}");
        given.push(world.given(&id).0[1] / 1_000);
        world.run_all();
        world.update_for(&id, TaskState::TaskFailed, Reason::ContainerLimitationMemory);
        if attempt == 0 {
            // The first task was not sized yet, so it had the memory of the file.
            assert_eq!(world.sized("s").0.0[1], 384_000);
        }
        // What was learned survives a restart of the scheduler, the measurements do not.
        world.restart();
        for _ in 0..80 {
            world.pass(SECOND);
            world.offer();
        }
    }
    assert_eq!(given, [256, 384, 512, 512, 512, 512], "at most twice the file's");
    assert!(world.sized("s").1.contains("a task ended for lack of memory"), "{}", world.sized("s").1);
}

#[test]
fn a_task_that_was_sized_too_small_gets_what_the_file_says() {
    let mut world = World::new(sizing(), &["cpus:4;mem:4000"]);
    world.submit(vec![large("s", 1)]);
    world.soon();
    world.run_all();
    world.measure(40, 0.1, 60.0);
    world.update("s.1.0.0", TaskState::TaskFailed);
    world.pass(2 * SECOND);
    world.soon();
    let sized = world.given("s.1.0.1").0[1];
    assert!((60_000..256_000).contains(&sized), "{sized}");
    world.update_for("s.1.0.1", TaskState::TaskFailed, Reason::ContainerLimitationMemory);
    world.pass(4 * SECOND);
    world.soon();
    assert_eq!(world.given("s.1.0.2"), Need([world.given("s.1.0.2").0[0], 256_000, 0, 0, 0]));
}

#[test]
fn what_waits_for_room_fits_when_it_is_sized() {
    let mut world = World::new(sizing(), &["cpus:1;mem:1000"]);
    world.submit(vec![array("a", 6, 0.5)]);
    world.soon();
    world.run_all();
    assert_eq!(world.tasks.len(), 2);
    world.measure(40, 0.05, 5.0);
    world.update("a.1.0.0", TaskState::TaskFinished);
    world.pass(5 * SECOND);
    world.soon();
    assert_eq!(world.tasks.len(), 5, "four of them in the place of one");
    // Memory that the file asks for is not raised to the minimum.
    assert_eq!(world.given("a.1.2.0").0[1], 10_000);
}

#[test]
fn ranks_of_a_gang_are_sized_alike() {
    let mut world = World::new(sizing(), &["cpus:2;mem:1000"]);
    world.submit(vec![Job { retries: 5, ..gang("g", 2, 1.0) }]);
    world.soon();
    world.run_all();
    world.measure(40, 0.2, 5.0);
    world.update("g.1.0.0", TaskState::TaskFailed);
    world.pass(5 * SECOND);
    world.soon();
    let given: Vec<i64> = world.of_job("g").iter().map(|id| world.given(id).0[0]).collect();
    assert_eq!(given, [220, 220]);
}

#[test]
fn nothing_is_measured_unless_it_is_wanted() {
    let mut world = World::new(Knobs::default(), &["cpus:4;mem:1000"]);
    world.submit(vec![large("s", 1)]);
    world.soon();
    world.run_all();
    assert_eq!(world.request(Request::Measurable), Ok(Reply::Measurable(Measurable::default())));
    world.measure(40, 0.1, 20.0);
    assert_eq!(world.show("s").sizing, None);
    world.update_for("s.1.0.0", TaskState::TaskFailed, Reason::ContainerLimitationMemory);
    world.pass(2 * SECOND);
    world.soon();
    assert_eq!(world.given("s.1.0.1"), Need::of(1.0, 256.0));
}
