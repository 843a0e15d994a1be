//! Tests of the scheduler against a small cluster without I/O.

mod lineage;
mod priority;
mod random;
mod removal;
mod tuning;
mod world;

use std::time::Duration;

use sdk::Ending;
use sdk::v1::TaskState;
use sdk::v1::container_info::docker_info;

use super::{JobEvent, Outcome, Request, Settings, State, WorkItem};
use crate::split::{File, Piece, Pieces};
use crate::task::{Spec, VARIABLE};
use world::World;

const THREE: &str = "name = 'job'\n\
    [[stage]]\nname = 'last'\nafter = 'mid'\ncommand = 'true'\n\
    [[stage]]\nname = 'first'\ntasks = 3\ncommand = 'echo {index} of {count}'\n\
    [[stage]]\nname = 'mid'\nafter = ['first']\ntasks = 2\ncommand = 'true'\n";

#[test]
fn stages_run_one_after_the_other() {
    let mut world = World::new(Settings::default(), 2, 1.0);
    world.submit(THREE);
    world.soon();
    assert_eq!(world.tasks.len(), 3, "all of the first stage, and nothing else");
    let id = "job.1.first.2.1";
    assert_eq!(world.tasks[id].info.command.as_ref().unwrap().value.as_deref(), Some("echo 2 of 3"));
    assert_eq!(world.environment(id, "TEPUI_INDEX").as_deref(), Some("2"));
    assert_eq!(world.environment(id, "TEPUI_COUNT").as_deref(), Some("3"));
    world.finish("job.1.first.0.1");
    world.finish("job.1.first.2.1");
    world.soon();
    assert_eq!(world.tasks.len(), 1);
    let view = world.show("job");
    assert_eq!(view.stages.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["first", "mid", "last"]);
    assert!(view.why.contains(&"mid: waits for first".to_owned()), "{:?}", view.why);
    world.run_dry();
    assert_eq!(world.state("job"), State::Finished);
    assert_eq!(world.launched.len(), 6);
    let stages: Vec<String> = world
        .events()
        .into_iter()
        .filter_map(|h| match h {
            JobEvent::Stage { stage, phase, .. } => Some(format!("{stage} {phase:?}")),
            _ => None,
        })
        .collect();
    assert_eq!(stages, ["first Open", "first Done", "mid Open", "mid Done", "last Open", "last Done"]);
}

#[test]
fn killed_at_every_step_nothing_runs_twice() {
    let mut world = World::new(Settings::default(), 2, 1.0);
    world.submit(THREE);
    world.restart();
    world.soon();
    while let Some(id) = world.tasks.keys().next().cloned() {
        world.restart();
        world.update(&id, TaskState::TaskRunning, "");
        world.restart();
        world.finish(&id);
        world.restart();
        world.soon();
    }
    assert_eq!(world.state("job"), State::Finished);
    assert_eq!(world.launched.len(), 6, "{:?}", world.launched);
    world.restart();
    assert_eq!(world.state("job"), State::Finished);
}

#[test]
fn failures_are_tried_again_and_then_end_the_job() {
    let mut world = World::new(Settings::default(), 1, 4.0);
    world.submit(
        "name = 'job'\n[[stage]]\nname = 's'\ntasks = 2\nretries = 1\ncommand = 'x'\nrestart = { first = '2s' }\n",
    );
    world.soon();
    world.update("job.1.s.0.1", TaskState::TaskFailed, "exited with status 1");
    world.offer();
    assert_eq!(world.tasks.len(), 1, "it waits");
    assert!(world.show("job").why[0].contains("wait for their next attempt"));
    world.pass(Duration::from_secs(3));
    world.soon();
    assert!(world.tasks.contains_key("job.1.s.0.2"));
    world.update("job.1.s.0.2", TaskState::TaskFailed, "exited with status 7");
    assert_eq!(world.state("job"), State::Failed);
    assert!(world.tasks.is_empty(), "the other task is ended");
    let why = world.show("job").summary.why;
    assert_eq!(why, "task 0 of stage 's' has failed: TASK_FAILED: exited with status 7");
    let ended = world.events().into_iter().any(|h| matches!(h, JobEvent::Ended { outcome: Outcome::Failed, .. }));
    assert!(ended);
}

#[test]
fn constraints_keep_tasks_off_agents() {
    let mut world = World::new(Settings::default(), 3, 4.0);
    let job = |host: &str| {
        format!(
            "name = 'job'\n[[stage]]\nname = 's'\ntasks = 6\ncpus = 1\ncommand = 'x'\n\
             constraints = [['hostname', 'like', '{host}']]\n"
        )
    };
    world.submit(&job("host[01]"));
    world.soon();
    assert_eq!(world.tasks.len(), 6);
    assert!(world.tasks.values().all(|task| task.agent < 2));
    world.restart();
    world.run_dry();
    assert_eq!(world.state("job"), State::Finished);

    world.submit(&job("other"));
    world.soon();
    assert!(world.tasks.is_empty());
    let why = &world.show("job").why;
    assert_eq!(why[..], ["warning: s: no agent that has offered so far satisfies 'hostname like other'"]);
}

#[test]
fn lost_tasks_are_no_failures() {
    let mut world = World::new(Settings::default(), 1, 4.0);
    world.submit("name = 'job'\n[[stage]]\nname = 's'\ncommand = 'x'\n");
    for attempt in 1..5 {
        world.pass(Duration::from_secs(5));
        world.soon();
        world.update(&format!("job.1.s.0.{attempt}"), TaskState::TaskLost, "");
    }
    world.pass(Duration::from_secs(5));
    world.run_dry();
    assert_eq!(world.state("job"), State::Finished);
}

#[test]
fn a_silent_agent_is_given_up() {
    let mut world = World::new(Settings::default(), 1, 4.0);
    world.submit("name = 'job'\n[[stage]]\nname = 's'\ncommand = 'x'\n");
    world.soon();
    world.update("job.1.s.0.1", TaskState::TaskUnreachable, "");
    world.pass(Duration::from_secs(59));
    assert_eq!(world.show("job").stages[0].tasks.live, 1);
    world.pass(Duration::from_secs(5));
    world.soon();
    assert!(world.tasks.contains_key("job.1.s.0.2"));
}

#[test]
fn cancelled_jobs_end_and_names_are_free_again() {
    let mut world = World::new(Settings::default(), 1, 4.0);
    world.submit(THREE);
    world.soon();
    let again = crate::job::read("t", THREE, crate::job::Syntax::Toml).unwrap();
    let refused = world.request(Request::Submit(again)).unwrap_err().to_string();
    assert!(refused.contains("has not ended; cancel it first"), "{refused}");
    world.request(Request::Cancel { name: "job".into() }).unwrap();
    assert_eq!(world.state("job"), State::Cancelled);
    assert!(world.tasks.is_empty());
    world.submit(THREE);
    world.soon();
    assert!(world.tasks.contains_key("job.2.first.0.1"));
    world.request(Request::Cancel { name: "job".into() }).unwrap();
    world.request(Request::Forget { name: "job".into() }).unwrap();
    let tasks = world.store.keys().filter(|key| key.contains("task/00000000000000000002")).count();
    assert_eq!(tasks, 0, "nothing is kept of it");
}

fn files() -> Pieces {
    let files = (0..3).map(|n| File { path: format!("/data/f{n}"), size: 100 }).collect();
    let pieces = (0..3).flat_map(|n| (0..10).map(move |at| Piece(n, at * 10, 10, 10))).collect();
    Pieces { files, pieces }
}

#[test]
fn input_files_are_looked_at_and_shared_out() {
    let mut world = World::new(Settings::default(), 1, 4.0);
    let job = "name = 'job'\n[[stage]]\nname = 's'\ncpus = 1\ncommand = 'wc'\n\
               input = { files = '/data/*', by = 'bytes', size = 30 }\nenv = { A = 'b' }\n";
    world.submit(job);
    let work_items = world.take_work_items();
    let [WorkItem::Scan { serial, stage, .. }] = work_items[..] else { panic!("{work_items:?}") };
    world.restart();
    assert_eq!(world.take_work_items().len(), 1, "asked for again");
    world.request(Request::Scanned { serial, stage, found: Ok(files()) }).unwrap();
    world.restart();
    world.soon();
    let mut seen = Vec::new();
    while let Some(id) = world.tasks.keys().next().cloned() {
        let spec: Spec = serde_json::from_str(&world.environment(&id, VARIABLE).unwrap()).unwrap();
        let extent = &spec.extents[0];
        seen.push((extent.path.clone(), extent.offset, extent.length));
        assert_eq!(world.environment(&id, "TEPUI_OFFSET"), Some(extent.offset.to_string()));
        assert_eq!(world.environment(&id, "A").as_deref(), Some("b"));
        assert_eq!(world.environment(&id, "TEPUI_COUNT").as_deref(), Some("12"));
        world.restart();
        world.finish(&id);
        world.offer();
        world.soon();
    }
    seen.sort();
    let each = [(0, 30), (30, 30), (60, 30), (90, 10)];
    let all: Vec<(String, u64, u64)> =
        (0..3).flat_map(|n| each.map(|(offset, length)| (format!("/data/f{n}"), offset, length))).collect();
    assert_eq!(seen, all, "every byte once");
    assert_eq!(world.state("job"), State::Finished);
}

#[test]
fn parts_that_are_standard_input_span_files() {
    let mut world = World::new(Settings::default(), 1, 4.0);
    let job = "name = 'job'\n[[stage]]\nname = 's'\ncpus = 1\ncommand = 'wc'\nstdin = true\n\
               input = { files = '/data/*', by = 'bytes', size = 150 }\n";
    world.submit(job);
    let work_items = world.take_work_items();
    let [WorkItem::Scan { serial, stage, .. }] = work_items[..] else { panic!("{work_items:?}") };
    world.request(Request::Scanned { serial, stage, found: Ok(files()) }).unwrap();
    world.soon();
    let specs: Vec<Spec> =
        world.tasks.keys().map(|id| serde_json::from_str(&world.environment(id, VARIABLE).unwrap()).unwrap()).collect();
    let lengths: Vec<Vec<u64>> = specs.iter().map(|spec| spec.extents.iter().map(|e| e.length).collect()).collect();
    assert_eq!(lengths, [[100, 50], [50, 100]]);
    assert!(specs.iter().all(|spec| spec.lines && spec.stdin));
    let id = world.tasks.keys().next().cloned().unwrap();
    assert_eq!(world.environment(&id, "TEPUI_COUNT").as_deref(), Some("2"));
    assert_eq!(world.environment(&id, "TEPUI_INPUTS").as_deref(), Some("/data/f0\n/data/f1"));
    assert_eq!(world.environment(&id, "TEPUI_OFFSET"), None, "the part is not of one file");
    world.restart();
    world.run_dry();
    assert_eq!(world.state("job"), State::Finished);
}

#[test]
fn sizes_are_found_and_remembered() {
    let mut world = World::new(Settings::default(), 2, 4.0);
    let job = |name: &str| {
        format!(
            "name = '{name}'\n[[stage]]\nname = 's'\ncpus = 1\ncommand = 'work'\ninput = {{ range = [0, 100000], size = 'auto' }}\n"
        )
    };
    world.submit(&job("one"));
    world.soon();
    let mut covered = 0;
    while let Some(id) = world.tasks.keys().next().cloned() {
        let length: u64 = world.environment(&id, "TEPUI_LENGTH").unwrap().parse().unwrap();
        covered += length;
        // A task takes a second, and another second for 2,000 numbers.
        world.pass(Duration::from_millis(1_000 + length / 2));
        world.finish(&id);
        world.offer();
    }
    assert_eq!(covered, 100_000);
    let view = world.show("one");
    assert_eq!(view.summary.state, State::Finished);
    let sizing = view.stages[0].sizing.clone().unwrap();
    assert!(!sizing.waves.is_empty(), "{sizing:?}");
    world.restart();
    world.submit(&job("two"));
    let why = world.show("two").stages[0].sizing.clone().unwrap().why;
    assert!(why.contains("found in 1 earlier runs"), "{why}");
}

#[test]
fn an_input_that_cannot_be_used_fails_the_job() {
    let mut world = World::new(Settings::default(), 1, 4.0);
    world.submit("name = 'job'\n[[stage]]\nname = 'a'\ncommand = 'x'\n[[stage]]\nname = 's'\ncommand = 'wc'\ninput = { files = '/no/*' }\n");
    world.soon();
    let work_items = world.take_work_items();
    let [WorkItem::Scan { serial, stage, .. }] = work_items[..] else { panic!("{work_items:?}") };
    let found = Err("'/no/*' matches no file".to_owned());
    world.request(Request::Scanned { serial, stage, found }).unwrap();
    assert_eq!(world.state("job"), State::Failed);
    assert_eq!(world.show("job").summary.why, "stage 's': '/no/*' matches no file");
    assert!(world.tasks.is_empty());
}

#[test]
fn damaged_state_stops_it() {
    let mut world = World::new(Settings::default(), 1, 4.0);
    world.submit(THREE);
    world.soon();
    let before = world.tasks.len();
    let key = world.store.keys().find(|key| key.starts_with("own/job/")).unwrap().clone();
    world.store.insert(key, b"{}".to_vec());
    world.restart();
    assert!(matches!(&world.ending, Some(Ending::State(why)) if why.contains("cannot be read")), "{:?}", world.ending);
    assert_eq!(world.tasks.len(), before, "the tasks go on");
}

#[test]
fn a_learned_order_places_tasks_and_explains_itself() {
    use crate::learned::{Model, Order, tests::everything};
    let built_in = Order::built_in().unwrap();
    let anything = Model { seen: everything(), ..(*built_in).clone() };
    let why = |order: Order| {
        let mut world = World::new(Settings { order, ..Settings::default() }, 2, 4.0);
        let job = |name: &str, tasks: u32| {
            format!("name = '{name}'\n[[stage]]\nname = 's'\ntasks = {tasks}\ncpus = 1\ncommand = 'x'\n")
        };
        world.submit(&job("one", 20));
        world.submit(&job("two", 3));
        world.soon();
        assert_eq!(world.tasks.len(), 8, "all of both agents is used");
        let changes = world.events().into_iter().filter(|event| matches!(event, JobEvent::Order { .. }));
        (changes.count(), ["one", "two"].map(|name| world.show(name).why.join("\n")).join("\n"))
    };
    let (changes, model) = why(Order::Learned(anything.into()));
    assert!(model.contains("order: the model gives s up to ") && changes == 0, "{model}");
    assert!(model.contains("order: the heuristic would give s up to "), "{model}");
    // The model was not trained on so small a cluster.
    let (changes, fallen) = why(Order::Learned(built_in));
    let said = "order: using remaining instead of the model: the feature 'all executors' is ";
    assert!(fallen.contains(said) && changes == 1, "{fallen}");
    assert!(fallen.contains("order: the heuristic gives s up to "), "{fallen}");
}

#[test]
fn tasks_of_stages_that_wait_count() {
    let mut world = World::new(Settings::default(), 1, 1.0);
    world.submit(
        "name = 'long'\n[[stage]]\nname = 'a'\ncpus = 1\ncommand = 'x'\n\
         [[stage]]\nname = 'b'\nafter = 'a'\ntasks = 1000\ncpus = 1\ncommand = 'x'\n",
    );
    world.submit("name = 'short'\n[[stage]]\nname = 'a'\ntasks = 5\ncpus = 1\ncommand = 'x'\n");
    world.soon();
    let tasks: Vec<&String> = world.tasks.keys().collect();
    assert!(tasks.len() == 1 && tasks[0].starts_with("short."), "the least remaining work goes first: {tasks:?}");
}

#[test]
fn shares_of_jobs_are_kept() {
    let mut world = World::new(Settings { order: crate::order::Heuristic::Fair.into(), ..Settings::default() }, 1, 4.0);
    let job = |name: &str| format!("name = '{name}'\n[[stage]]\nname = 's'\ntasks = 20\ncpus = 1\ncommand = 'x'\n");
    world.submit(&job("one"));
    world.submit(&job("two"));
    world.soon();
    let count = |world: &World, name: &str| world.tasks.keys().filter(|id| id.starts_with(name)).count();
    assert_eq!((count(&world, "one"), count(&world, "two")), (2, 2), "fair");
    let mut world = World::new(Settings { order: crate::order::Heuristic::Fifo.into(), ..Settings::default() }, 1, 4.0);
    world.submit(&job("one"));
    world.submit(&job("two"));
    world.soon();
    assert_eq!((count(&world, "one"), count(&world, "two")), (4, 0), "first in, first out");
}

#[test]
fn a_container_of_an_image_has_what_its_runner_needs() {
    let settings = Settings { shared: Some("/nfs".into()), runner: "/opt/tepui".into(), ..Settings::default() };
    let mut world = World::new(settings, 1, 4.0);
    world.submit(
        "name = 'job'\n[[stage]]\nname = 'plain'\nimage = 'i:1'\ncommand = 'x'\n\
         [[stage]]\nname = 'writes'\nimage = 'i:1'\ncommand = 'x'\noutputs = ['o']\n",
    );
    world.soon();
    let container = |stage: &str| world.tasks[&format!("job.1.{stage}.0.1")].info.container.clone().unwrap();
    assert!(container("plain").volumes.is_empty());
    let volumes: Vec<(Option<String>, String, i32)> =
        container("writes").volumes.into_iter().map(|v| (v.host_path, v.container_path, v.mode)).collect();
    let volume = |path: &str, mode: sdk::v1::volume::Mode| (Some(path.to_owned()), path.to_owned(), mode as i32);
    use sdk::v1::volume::Mode::{Ro, Rw};
    assert_eq!(volumes, [volume("/nfs", Rw), volume("/opt/tepui", Ro)]);
}

#[test]
fn docker_runs_stages_as_the_agents_own_containerizer() {
    let settings = Settings { shared: Some("/nfs".into()), runner: "/opt/tepui".into(), ..Settings::default() };
    let mut world = World::new(settings, 1, 4.0);
    let stage = |name: &str, fields: &str| {
        format!("[[stage]]\nname = '{name}'\nimage = 'i:1'\ncontainerizer = 'docker'\n{fields}\n")
    };
    let stages = [
        stage("plain", "command = 'x'"),
        stage("list", "argv = ['/bin/x', 'y']"),
        stage("writes", "command = 'x'\noutputs = ['o']"),
    ];
    world.submit(&format!("name = 'job'\n{}", stages.join("")));
    world.soon();
    let of = |stage: &str| {
        let info = &world.tasks[&format!("job.1.{stage}.0.1")].info;
        let (container, command) = (info.container.clone().unwrap(), info.command.clone().unwrap());
        assert!(container.mesos.is_none() && container.volumes.is_empty());
        let docker = container.docker.unwrap();
        assert_eq!((docker.image.as_str(), docker.network()), ("i:1", docker_info::Network::Host));
        let parameters: Vec<String> = docker.parameters.into_iter().map(|p| format!("{}={}", p.key, p.value)).collect();
        (command.value, command.arguments, parameters)
    };
    assert_eq!(of("plain"), (Some("x".to_owned()), vec![], vec![]));
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    assert_eq!(of("list"), (None, words(&["y"]), words(&["entrypoint=/bin/x"])));
    let mounts =
        ["mount=type=bind,source=/nfs,target=/nfs", "mount=type=bind,source=/opt/tepui,target=/opt/tepui,readonly"];
    let parameters = words(&[mounts[0], mounts[1], "entrypoint=/opt/tepui"]);
    assert_eq!(of("writes"), (None, words(&["framework", "dag-task"]), parameters));
}
