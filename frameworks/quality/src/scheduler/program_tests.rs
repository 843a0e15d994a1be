//! Scripted runs with users' programs: their tasks, and changes of their cores.

use std::time::Duration;

use sdk::v1::TaskState;

use super::tests::World;
use super::*;
use crate::job::parse;
use crate::trainer::Capabilities;

const PROGRAM: &str = r#"
[[job]]
name = "own"
algorithm = { kind = "program", command = ["train"], mem = 100 }
max_cores = 4
"#;

const ELASTIC: Capabilities = Capabilities { elastic: true, checkpoints: true };

fn world(text: &str) -> World {
    let mut world = World::new(Policy::Fair);
    assert_eq!(world.take(parse("j", text).unwrap()), Ok(()));
    world
}

fn iterate(world: &mut World, number: u64, capabilities: Capabilities, task: &str) -> Directive {
    let iteration = Iteration { number, loss: 1.0 / (number + 1) as f64, seconds: 1.0, ..Iteration::default() };
    let iteration = Some(Iteration { workers: 1.0, busy: 1.0, ..iteration });
    let (job, capabilities, free) = ("own".into(), Some(capabilities), vec![task.to_owned()]);
    world.progress(Progress { job, capabilities, iteration, free, ..Progress::default() })
}

fn cores(task: &sdk::v1::TaskInfo) -> (String, String) {
    let words = &task.command.as_ref().unwrap().arguments;
    let place = words.iter().position(|w| w == "--cores").unwrap();
    (words[place + 1].clone(), format!("{}", sdk::task::from_v1(&task.resources).unwrap()))
}

/// Runs epochs with an iteration of the program in each, and returns the tasks that are requested to leave their jobs.
fn epochs(world: &mut World, numbers: std::ops::Range<u64>, capabilities: Capabilities, task: &str) -> Vec<String> {
    let mut left = Vec::new();
    for number in numbers {
        world.pass(Duration::from_millis(1001));
        left = iterate(world, number, capabilities, task).leave;
    }
    left
}

#[test]
fn an_elastic_program_gets_more_cores_by_a_new_start_and_no_second_program_runs() {
    let mut world = world(PROGRAM);
    let first = world.launch_workers(6);
    assert_eq!(first.len(), 1, "one worker");
    // The scheduler knows nothing about the program yet, so the program keeps its cores.
    assert_eq!(epochs(&mut world, 0..3, ELASTIC, &first[0]), Vec::<String>::new());
    world.offer(5);
    assert!(world.look().0.is_empty(), "a program has one worker");
    assert_eq!(epochs(&mut world, 3..8, ELASTIC, &first[0]), first);
    world.offer(5);
    assert!(world.look().0.is_empty(), "its successor waits until it has ended");
    world.update(&first[0], TaskState::TaskFinished);
    world.pass(Duration::from_millis(1001));
    world.offer(6);
    let (launched, _) = world.look();
    assert_eq!(launched.len(), 1);
    assert_eq!(cores(&launched[0]), ("4".into(), "cpus:4; mem:100".into()));
    let second = launched[0].task_id.value.to_string();
    world.update(&second, TaskState::TaskRunning);
    assert_eq!((world.job("own").cores, world.job("own").wanted_cores), (4, 4));
    // The program keeps its cores for some time, and their number outlives a restart.
    assert_eq!(epochs(&mut world, 8..16, ELASTIC, &second), Vec::<String>::new());
    let mut world = world.restarted();
    assert_eq!(world.job("own").cores, 4);
}

#[test]
fn a_program_that_is_not_elastic_keeps_one_place_and_its_task_is_given_to_no_other_job() {
    let mut world = world(PROGRAM);
    let first = world.launch_workers(2);
    for capabilities in [Capabilities::default(), Capabilities { checkpoints: true, elastic: false }] {
        assert_eq!(epochs(&mut world, 0..8, capabilities, &first[0]), Vec::<String>::new());
    }
    assert_eq!((world.job("own").cores, world.job("own").wanted_cores), (1, 1));
    // The worker ends with the program, although another job lacks workers.
    world.submit("a");
    world.pass(Duration::from_millis(1001));
    let directive = match world.ask(Question::Ended {
        job: "own".into(),
        outcome: Outcome::Finished("done".into()),
        free: first.clone(),
    }) {
        Answer::Directive(directive) => directive,
        other => panic!("{other:?}"),
    };
    assert_eq!((directive.leave, directive.moves), (first, Vec::new()));
}

#[test]
fn workers_of_other_jobs_are_not_moved_to_a_program() {
    let mut world = World::new(Policy::Fair);
    world.submit("a");
    let workers = world.launch_workers(6);
    assert_eq!(workers.len(), 6);
    assert_eq!(world.take(parse("j", PROGRAM).unwrap()), Ok(()));
    world.pass(Duration::from_millis(1001));
    let directive = world.free("a", 0, 1.0, &workers);
    assert_eq!((directive.leave.len(), directive.moves.len()), (1, 0), "{directive:?}");
    world.update(&directive.leave[0], TaskState::TaskFinished);
    world.offer(1);
    let launched = world.look().0;
    assert_eq!((launched.len(), cores(&launched[0]).0.as_str()), (1, "1"));
}

#[test]
fn a_program_without_checkpoints_is_not_made_to_wait() {
    // There are two cores for three jobs. Other jobs take turns; the program would lose its progress.
    let mut world = world(PROGRAM);
    let own = world.launch_workers(1);
    world.submit("a");
    world.submit("b");
    let others = world.launch_workers(1);
    for number in 0..40 {
        world.pass(Duration::from_millis(1001));
        assert_eq!(iterate(&mut world, number, Capabilities::default(), &own[0]).leave, Vec::<String>::new());
        world.free("a", number, 1.0, &others);
    }
    assert_eq!(world.job("own").cores, 1);
}

#[test]
fn an_elastic_program_ends_only_when_others_have_left_it_room() {
    let mut world = world(PROGRAM);
    world.submit("a");
    let workers = world.launch_workers(6);
    let own = workers.iter().find(|task| world.job("own").tasks.contains(task)).unwrap().clone();
    let others: Vec<String> = workers.into_iter().filter(|task| *task != own).collect();
    assert_eq!(others.len(), 5);
    // Its share is three, and all cores are taken: the other job must release some.
    let (mut freed, mut number) = (Vec::new(), 0);
    while freed.is_empty() {
        world.pass(Duration::from_millis(1001));
        assert_eq!(iterate(&mut world, number, ELASTIC, &own).leave, Vec::<String>::new(), "there is no room yet");
        freed = world.free("a", number, 1.0, &others).leave;
        number += 1;
        assert!(number < 20, "nothing is released");
    }
    assert_eq!(freed.len(), 2);
    freed.iter().for_each(|task| world.update(task, TaskState::TaskFinished));
    assert_eq!(epochs(&mut world, number..number + 1, ELASTIC, &own), std::slice::from_ref(&own));
    world.update(&own, TaskState::TaskFinished);
    world.pass(Duration::from_millis(1001));
    world.offer(3);
    let launched = world.look().0;
    assert_eq!(launched.iter().map(|task| cores(task).0).collect::<Vec<_>>(), ["3"]);
}

/// Returns the agent of each launched task.
fn agents(launched: &[sdk::v1::TaskInfo]) -> BTreeMap<String, String> {
    launched.iter().map(|t| (t.task_id.value.to_string(), t.agent_id.value.to_string())).collect()
}

#[test]
fn workers_leave_the_agent_of_a_program_that_is_to_grow_first() {
    let mut world = world(PROGRAM);
    world.submit("a");
    world.offer_all(&[("one", 3), ("two", 3)]);
    let agents = agents(&world.look().0);
    agents.keys().for_each(|task| world.update(task, TaskState::TaskRunning));
    let own = world.job("own").tasks[0].clone();
    let others = world.job("a").tasks.clone();
    assert_eq!((agents[&own].as_str(), others.len()), ("one", 5));
    // The newest workers are on the other agent.
    let mut freed = Vec::new();
    for number in 0..20 {
        world.pass(Duration::from_millis(1001));
        iterate(&mut world, number, ELASTIC, &own);
        freed = world.free("a", number, 1.0, &others).leave;
        if !freed.is_empty() {
            break;
        }
    }
    assert_eq!(freed.iter().map(|task| agents[task].as_str()).collect::<Vec<_>>(), ["one", "one"]);
}

#[test]
fn a_worker_makes_room_for_a_program_when_there_is_room_for_it_elsewhere() {
    let mut world = world(PROGRAM);
    world.submit("a");
    world.offer_all(&[("one", 3)]);
    let first = agents(&world.look().0);
    first.keys().for_each(|task| world.update(task, TaskState::TaskRunning));
    let own = world.job("own").tasks[0].clone();
    let others = world.job("a").tasks.clone();
    assert_eq!(others.len(), 2);
    // Each job may have three of the six places now, but the free ones are not on the program's agent.
    let mut number = 0;
    let mut step = |world: &mut World| {
        world.pass(Duration::from_millis(1001));
        let own_leaves = iterate(world, number, ELASTIC, &own).leave;
        let left = world.free("a", number, 1.0, &others);
        number += 1;
        assert!(number < 30 && left.moves.is_empty());
        (own_leaves, left.leave)
    };
    let mut displaced = Vec::new();
    while displaced.len() < 2 {
        let here = world.job("a").tasks.iter().filter(|task| !first.contains_key(*task)).count();
        world.offer_all(&[("two", 3_u32.saturating_sub(here as u32))]);
        let new: Vec<String> = agents(&world.look().0).into_keys().collect();
        new.iter().for_each(|task| world.update(task, TaskState::TaskRunning));
        let (own_leaves, left) = step(&mut world);
        assert_eq!(own_leaves, Vec::<String>::new(), "there is no room yet");
        left.iter().for_each(|task| world.update(task, TaskState::TaskFinished));
        displaced.extend(left);
    }
    assert!(displaced.iter().all(|task| first[task] == "one"));
    let (own_leaves, _) = step(&mut world);
    assert_eq!(own_leaves, std::slice::from_ref(&own));
    // The places of its agent are reserved for the program.
    world.offer_all(&[("one", 2), ("two", 2)]);
    assert!(agents(&world.look().0).values().all(|agent| agent == "two"));
    world.update(&own, TaskState::TaskFinished);
    world.pass(Duration::from_millis(1001));
    world.offer_all(&[("one", 3)]);
    let launched = world.look().0;
    assert_eq!(launched.iter().map(|task| cores(task).0).collect::<Vec<_>>(), ["3"]);
}
