//! Tests random histories: submissions, partial offers, updates of all kinds, losses, restarts and time.
//!
//! Invariants, at every step:
//! 1. no offer is overfilled, and no task id is launched twice (the world checks both);
//! 2. each task of a job has at most one attempt that was not given up;
//! 3. all ranks of a gang are launched in one step, or none.
//!
//! At the end, with enough resources and without further failures:
//! 4. every array has finished, each of its tasks exactly once as far as tasks finish;
//! 5. every service has exactly its count of running tasks, all of the current version;
//! 6. a restart changes none of that.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use sdk::v1::TaskState;

use super::world::World;
use super::{SECOND, array, gang, service};
use crate::Knobs;
use crate::core::{Request, State};
use crate::job::{Job, Restart, Run, Update};
use crate::place::Policy;

#[derive(Clone, Debug)]
enum Step {
    Array(u32, u32),
    Service(u32, u32),
    NewVersion(u32, u32),
    Gang(u32, u32),
    Scale(u32, u32),
    Offer(Vec<usize>),
    Rescind(usize),
    Update(prop::sample::Index, TaskState),
    Pass(u32),
    Restart,
    Kills(bool),
}

fn step() -> impl Strategy<Value = Step> {
    let state = prop::sample::select(vec![
        TaskState::TaskRunning,
        TaskState::TaskRunning,
        TaskState::TaskFinished,
        TaskState::TaskFailed,
        TaskState::TaskKilled,
        TaskState::TaskLost,
        TaskState::TaskUnreachable,
    ]);
    let name = 0..3u32;
    prop_oneof![
        1 => (name.clone(), 1..6u32).prop_map(|(n, c)| Step::Array(n, c)),
        1 => (name.clone(), 0..4u32).prop_map(|(n, c)| Step::Service(n, c)),
        1 => (name.clone(), 0..4u32).prop_map(|(n, c)| Step::NewVersion(n, c)),
        1 => (name.clone(), 1..5u32).prop_map(|(n, c)| Step::Gang(n, c)),
        1 => (name, 0..5u32).prop_map(|(n, c)| Step::Scale(n, c)),
        6 => prop::collection::vec(0..4usize, 1..4).prop_map(Step::Offer),
        1 => (0..4usize).prop_map(Step::Rescind),
        8 => (any::<prop::sample::Index>(), state).prop_map(|(i, s)| Step::Update(i, s)),
        2 => (1..70u32).prop_map(Step::Pass),
        1 => Just(Step::Restart),
        1 => any::<bool>().prop_map(Step::Kills),
    ]
}

fn patient(job: Job) -> Job {
    let restart = Restart { longest: 5 * SECOND, ..Restart::default() };
    Job { retries: 1_000, restart, update: Update { min_healthy: 0.5, max_over: 0.5 }, ..job }
}

fn submit(world: &mut World, job: Job) {
    // A name that another kind of job has is refused, without effect.
    let _ = world.request(Request::Submit(vec![job]));
}

fn take(world: &mut World, step: Step) {
    match step {
        Step::Array(n, count) => submit(world, patient(array(&format!("a{n}"), count, 1.0))),
        Step::Service(n, count) => submit(world, Job { retries: 0, ..patient(service(&format!("s{n}"), count, 1.0)) }),
        Step::NewVersion(n, count) => {
            let run = Run::Command(format!("version {}", world.now.as_nanos()));
            submit(world, Job { run, retries: 0, ..patient(service(&format!("s{n}"), count, 0.5)) });
        }
        Step::Gang(n, count) => submit(world, patient(gang(&format!("g{n}"), count, 1.0))),
        Step::Scale(n, count) => {
            let _ = world.request(Request::Scale { name: format!("s{n}"), count });
        }
        Step::Offer(agents) => world.offer_of(&agents),
        Step::Rescind(agent) => world.rescind(agent),
        Step::Update(which, state) => {
            let ids: Vec<String> = world.tasks.keys().cloned().collect();
            if !ids.is_empty() {
                world.update(&ids[which.index(ids.len())], state);
            }
        }
        Step::Pass(seconds) => world.pass(seconds * SECOND),
        Step::Restart => world.restart(),
        Step::Kills(at_once) => world.kills_at_once = at_once,
    }
}

/// Returns the job and number of a task in one text, and its attempt.
fn parts(id: &str) -> (String, u32) {
    let (task, attempt) = id.rsplit_once('.').unwrap();
    (task.to_owned(), attempt.parse().unwrap())
}

/// Returns the number of ranks on agents for each gang, by name and attempt.
fn ranks(world: &World) -> BTreeMap<(String, u32), usize> {
    let mut ranks = BTreeMap::new();
    for id in world.tasks.keys().filter(|id| id.starts_with('g')) {
        let (task, attempt) = parts(id);
        *ranks.entry((task.rsplit_once('.').unwrap().0.to_owned(), attempt)).or_default() += 1;
    }
    ranks
}

fn check(world: &mut World, before: &BTreeMap<(String, u32), usize>) -> Result<(), TestCaseError> {
    let mut wanted = BTreeSet::new();
    for id in world.tasks.keys().filter(|id| !world.killed.contains(*id)) {
        prop_assert!(wanted.insert(parts(id).0), "two attempts of {id} are wanted at once");
    }
    for (gang, found) in ranks(world) {
        if !before.contains_key(&gang) {
            let name = gang.0.split('.').next().unwrap().to_owned();
            let size = world.show(&name).summary.count as usize;
            prop_assert!(found == size, "{gang:?} was launched with {found} of {size} ranks");
        }
    }
    Ok(())
}

/// Lets all tasks fit, and stops all failures.
fn calm_down(world: &mut World) {
    world.kills_at_once = true;
    for id in world.tasks.keys().cloned().collect::<Vec<_>>() {
        if world.tasks.get(&id).is_some_and(|t| t.state == TaskState::TaskUnreachable) {
            world.update(&id, TaskState::TaskRunning);
        }
    }
    // Kills that were requested without a subscription are repeated after a new one.
    world.restart();
    for _ in 0..60 {
        world.pass(3 * SECOND);
        world.offer();
        world.run_all();
        for id in world.ids_in(TaskState::TaskRunning) {
            if !id.starts_with('s') {
                world.update(&id, TaskState::TaskFinished);
            }
        }
    }
}

fn settled(world: &mut World) -> Result<(), TestCaseError> {
    for name in ["a0", "a1", "a2", "g0", "g1", "g2"] {
        if world.request(Request::Show { name: name.into() }).is_ok() {
            let view = world.show(name);
            prop_assert!(view.summary.state == State::Finished, "{}: {:#?}", name, view);
            prop_assert_eq!(view.summary.tasks.finished, view.summary.count);
        }
    }
    for name in ["s0", "s1", "s2"] {
        if world.request(Request::Show { name: name.into() }).is_ok() {
            let view = world.show(name);
            let (count, version) = (view.summary.count as usize, view.summary.version);
            prop_assert!(view.summary.state == State::Running || count == 0, "{}: {:#?}", name, view);
            prop_assert_eq!(view.tasks.len(), count);
            prop_assert!(view.tasks.iter().all(|t| t.version == version && t.state == State::Running), "{:#?}", view);
            prop_assert_eq!(world.of_job(name).len(), count);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]
    #[test]
    fn nothing_is_lost_and_nothing_doubled(
        steps in prop::collection::vec(step(), 1..80),
        policy in prop::sample::select(Policy::ALL.to_vec()),
    ) {
        // The last agent is offered only at the end: then everything fits.
        let agents = ["cpus:3;mem:1000", "cpus:2;mem:1000", "cpus:4;mem:500", "cpus:1.5;mem:1000", "cpus:99;mem:9000"];
        let mut world = World::new(Knobs { policy, ..Knobs::default() }, &agents);
        for step in steps {
            let before = ranks(&world);
            take(&mut world, step);
            check(&mut world, &before)?;
        }
        calm_down(&mut world);
        settled(&mut world)?;
        let before: Vec<String> = world.tasks.keys().cloned().collect();
        world.restart();
        world.pass(10 * SECOND);
        world.offer();
        settled(&mut world)?;
        let after: Vec<String> = world.tasks.keys().cloned().collect();
        prop_assert_eq!(before, after);
    }
}
