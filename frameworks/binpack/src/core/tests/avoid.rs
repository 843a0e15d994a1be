//! Tests failing agents: how many tasks fail on them with and without avoidance, and which failures do not count
//! against them.

use sdk::v1::TaskState;

use super::world::World;
use super::{SECOND, array, job};
use crate::Knobs;
use crate::core::{Reply, Request, State};
use crate::job::{Job, Restart};

fn avoiding() -> Knobs {
    Knobs { avoid_failing_agents: true, ..Knobs::default() }
}

/// Runs an array of 120 tasks on four agents, of which the first fails every task. Returns the number of failures and
/// the state of the job.
fn failures(knobs: Knobs) -> (usize, State) {
    let mut world = World::new(knobs, &["cpus:2;mem:1000"; 4]);
    let restart = Restart { first: SECOND, factor: 1.0, longest: SECOND, steady: 60 * SECOND };
    world.submit(vec![Job { retries: 1_000, restart, ..array("a", 120, 1.0) }]);
    for _ in 0..400 {
        world.offer();
        world.run_all();
        world.pass(SECOND);
        for id in world.ids_in(TaskState::TaskRunning) {
            let state = if world.tasks[&id].agent == 0 { TaskState::TaskFailed } else { TaskState::TaskFinished };
            world.update(&id, state);
        }
        if world.state("a") == State::Finished {
            break;
        }
    }
    let failed = world.ended.iter().filter(|(_, state)| *state == TaskState::TaskFailed).count();
    (failed, world.state("a"))
}

#[test]
fn an_agent_that_fails_every_task_fails_few() {
    // Without avoidance the last tasks are placed again and again on the failing agent, which is always free first.
    let (without, state) = failures(Knobs::default());
    assert_eq!(state, State::Restarting);
    let (with, state) = failures(avoiding());
    assert_eq!(state, State::Finished);
    assert!(with <= 4 && without >= 5 * with, "{with} with, {without} without");
}

#[test]
fn a_task_that_its_agent_failed_is_tried_again_at_once() {
    let mut world = World::new(avoiding(), &["cpus:4;mem:1000", "cpus:4;mem:1000"]);
    world.submit(vec![array("a", 8, 1.0)]);
    world.offer();
    world.run_all();
    let on = |world: &World, agent: usize| -> Vec<String> {
        world.tasks.iter().filter(|(_, task)| task.agent == agent).map(|(id, _)| id.clone()).collect()
    };
    on(&world, 1).iter().for_each(|id| world.update(id, TaskState::TaskFinished));
    let failed = on(&world, 0);
    failed.iter().take(3).for_each(|id| world.update(id, TaskState::TaskFailed));
    let Ok(Reply::Status(status)) = world.request(Request::Status) else { panic!() };
    assert_eq!(status.avoided, ["S0"]);
    // The first two tasks have no retries left, since they failed before the agent was avoided; the third runs
    // elsewhere.
    let view = world.show("a");
    assert_eq!((view.summary.tasks.failed, view.summary.tasks.waiting), (2, 1));
    assert!(view.why.iter().any(|why| why.contains("1 agent: avoided for a while")), "{:?}", view.why);
    world.soon();
    let again = world.of_job("a").into_iter().find(|id| id.ends_with(".1")).unwrap();
    assert_eq!(world.tasks[&again].agent, 1);
}

#[test]
fn a_job_with_an_error_counts_against_no_agent() {
    let mut world = World::new(avoiding(), &["cpus:2;mem:1000"; 2]);
    world.submit(vec![Job { retries: 2, ..array("a", 8, 1.0) }, job("b", 1.0)]);
    for _ in 0..200 {
        world.offer();
        world.run_all();
        world.pass(SECOND);
        for id in world.ids_in(TaskState::TaskRunning) {
            world.update(&id, if id.starts_with('a') { TaskState::TaskFailed } else { TaskState::TaskFinished });
        }
        let Ok(Reply::Status(status)) = world.request(Request::Status) else { panic!() };
        assert_eq!(status.avoided, Vec::<String>::new());
    }
    assert_eq!((world.state("a"), world.state("b")), (State::Failed, State::Finished));
    assert_eq!(world.ended.len(), 25, "each was tried three times");
}
