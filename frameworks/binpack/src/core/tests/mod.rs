//! Scripted scenarios of the scheduler; `random` has the properties, `world` the cluster that they run on.

mod avoid;
mod behaviour;
mod gangs;
mod random;
mod services;
mod sizing;
mod world;

use std::time::Duration;

use sdk::v1::TaskState;

use super::{Ability, AgentTotals, Reply, Request, RequestError, RequiredCapacity, State, SubmissionEffect, Submitted};
use crate::constraint::Constraint;
use crate::job::{Job, Kind, Syntax};
use crate::{Knobs, Need};
use world::World;

const SECOND: Duration = Duration::from_secs(1);

fn job(name: &str, cpus: f64) -> Job {
    Job::new(name, "true", Need::of(cpus, 10.0))
}

fn array(name: &str, count: u32, cpus: f64) -> Job {
    Job { kind: Kind::Array, count, ..job(name, cpus) }
}

fn service(name: &str, count: u32, cpus: f64) -> Job {
    Job { kind: Kind::Service, count, ..job(name, cpus) }
}

fn gang(name: &str, count: u32, cpus: f64) -> Job {
    Job { kind: Kind::Gang, count, ..job(name, cpus) }
}

fn stop(name: &str) -> Request {
    Request::Stop { name: name.to_owned() }
}

#[test]
fn an_array_runs_as_room_permits_and_finishes_once() {
    let mut world = World::new(Knobs::default(), &["cpus:2;mem:1000", "cpus:1;mem:1000"]);
    world.submit(vec![array("a", 5, 1.0)]);
    world.offer();
    assert_eq!(world.tasks.len(), 3);
    world.run_all();
    assert_eq!(world.state("a"), State::Running);
    while !world.tasks.is_empty() {
        for id in world.of_job("a") {
            world.update(&id, TaskState::TaskFinished);
        }
        world.offer();
        world.run_all();
    }
    assert_eq!(world.state("a"), State::Finished);
    assert_eq!(world.ended.len(), 5);
    assert!(world.suppressed, "nothing waits, so nothing is wanted");
}

#[test]
fn a_failed_task_is_tried_again_after_a_wait_and_then_given_up() {
    let mut world = World::new(Knobs::default(), &["cpus:2;mem:1000"]);
    world.submit(vec![Job { retries: 1, ..job("b", 1.0) }]);
    world.offer();
    world.update("b.1.0.0", TaskState::TaskFailed);
    assert_eq!(world.state("b"), State::Restarting);
    world.offer();
    assert!(world.tasks.is_empty(), "it waits a second first");
    world.pass(SECOND);
    world.offer();
    world.update("b.1.0.1", TaskState::TaskFailed);
    assert_eq!(world.state("b"), State::Failed);
    world.pass(60 * SECOND);
    world.offer();
    assert!(world.tasks.is_empty());
}

#[test]
fn a_lost_task_is_no_failure() {
    let mut world = World::new(Knobs::default(), &["cpus:2;mem:1000"]);
    world.submit(vec![job("b", 1.0)]);
    world.offer();
    for attempt in 0..5 {
        world.update(&format!("b.1.0.{attempt}"), TaskState::TaskLost);
        world.pass(10 * SECOND);
        world.offer();
    }
    world.update("b.1.0.5", TaskState::TaskFinished);
    assert_eq!(world.state("b"), State::Finished);
}

#[test]
fn priorities_come_first_and_constraints_are_kept() {
    let mut world = World::new(Knobs::default(), &["cpus:1;mem:1000", "cpus:1;mem:1000"]);
    world.agents[0].attributes = vec![("rack", "r1")];
    let on_r1 = Constraint::new("rack", "equal", Some("r1")).unwrap();
    world.submit(vec![
        job("low", 1.0),
        Job { priority: 1, constraints: vec![on_r1], ..job("high", 1.0) },
        Job { constraints: vec![Constraint::new("rack", "like", Some("r[23]")).unwrap()], ..job("never", 0.1) },
    ]);
    world.offer();
    assert_eq!(world.tasks["high.2.0.0"].agent, 0);
    assert_eq!(world.tasks["low.1.0.0"].agent, 1);
    let why = world.show("never").why;
    let known = "warning: no agent that was seen so far satisfies the constraint 'rack like r[23]': they have r1";
    assert_eq!(why, [known, "2 agents: the constraint 'rack like r[23]' excludes it"]);
    let unsatisfied = world.show("never").unsatisfied.unwrap();
    assert_eq!((unsatisfied.constraint.as_str(), unsatisfied.agents), ("rack like r[23]", 2));
    assert_eq!(world.show("low").unsatisfied, None);
    let impossible = world.show("never").impossible.unwrap();
    assert_eq!(
        (impossible.reason.as_str(), impossible.agents),
        ("no agent satisfies the constraint 'rack like r[23]'", 2)
    );
    assert_eq!(world.show("low").impossible, None);
}

#[test]
fn unique_counts_tasks_of_earlier_rounds() {
    let mut world = World::new(Knobs::default(), &["cpus:4;mem:1000", "cpus:4;mem:1000"]);
    let unique = Constraint::new("hostname", "unique", None).unwrap();
    world.submit(vec![Job { constraints: vec![unique], ..array("u", 3, 1.0) }]);
    world.offer();
    assert_eq!(world.tasks.len(), 2);
    world.pass(10 * SECOND);
    world.offer();
    assert_eq!(world.tasks.len(), 2, "the third has no host of its own");
    world.update("u.1.0.0", TaskState::TaskFinished);
    world.offer();
    assert_eq!(world.tasks.len(), 2);
}

#[test]
fn the_view_of_a_job_says_why_a_task_waits() {
    let mut world = World::new(Knobs::default(), &["cpus:2;mem:1000", "cpus:4;mem:500"]);
    world.submit(vec![job("huge", 64.0)]);
    assert_eq!(world.show("huge").why, ["no offers have arrived yet"]);
    world.offer();
    let why = world.show("huge").why;
    assert_eq!(why[0], "warning: a task needs cpus 64, and no agent has offered more than 4 so far");
    assert_eq!(why[1], "2 agents: offers of too little cpus (a task needs 64, the most is 4)");
    world.submit(vec![job("fills", 3.0)]);
    world.offer();
    world.submit(vec![job("big", 3.0)]);
    world.offer();
    world.pass(6 * SECOND);
    world.offer();
    assert_eq!(world.show("big").why, ["2 agents: offers of too little cpus (a task needs 3, the most is 2)"]);
}

/// Returns a report of agents, which lack an ability or not.
fn lacking(ability: Ability, agents: &[bool]) -> Request {
    let total = |(number, lacks): (usize, &bool)| AgentTotals {
        agent_id: format!("S{number}"),
        lacks: lacks.then_some(ability).into_iter().collect(),
        ..AgentTotals::default()
    };
    Request::Agents(agents.iter().enumerate().map(total).collect())
}

#[test]
fn images_go_where_they_are_provided() {
    let mut world = World::new(Knobs::default(), &["cpus:2;mem:1000"; 2]);
    world.request(lacking(Ability::Images, &[true, true])).unwrap();
    let with_image = |name: &str| Job { image: Some("i".to_owned()), ..job(name, 1.0) };
    world.submit(vec![with_image("a"), job("plain", 1.0)]);
    let required = RequiredCapacity { images: true, ..RequiredCapacity::default() };
    assert_eq!(world.request(Request::RequiredCapacity), Ok(Reply::RequiredCapacity(required)));
    world.offer();
    assert_eq!((world.of_job("a").len(), world.of_job("plain").len()), (0, 1));
    let view = world.show("a");
    assert_eq!(view.why[1], "2 agents: no provider of images; start agents with --image_providers=docker");
    assert!(view.impossible.unwrap().reason.starts_with("no agent has a provider of images"));
    world.request(lacking(Ability::Images, &[true, false])).unwrap();
    world.pass(6 * SECOND);
    world.offer();
    assert_eq!(world.of_job("a").iter().map(|id| world.tasks[id].agent).collect::<Vec<_>>(), [1]);
    assert_eq!(Ability::Images.is_given_by(None), Some(false));
    assert_eq!(Ability::Images.is_given_by(Some("APPC,DOCKER")), Some(true));
    assert_eq!((Ability::Docker.is_given_by(None), Ability::Docker.is_given_by(Some("mesos"))), (None, Some(false)));
}

#[test]
fn containers_are_described_and_go_where_docker_is() {
    let mut world = World::new(Knobs::default(), &["cpus:2;mem:1000;ports:[1000-1003]"; 2]);
    let text = "name = 'web'\nkind = 'service'\nimage = 'nginx'\ncontainerizer = 'docker'\nnetwork = 'bridge'\n\
                ports = 2\ncontainer_ports = [80]\nprogram = ['nginx', '-g', 'x']\nhealth = { http = '/' }\n\
                docker = { force_pull = true, parameters = [['label', 'a=b']] }\n";
    let jobs = crate::job::read("web.toml", text, Syntax::Toml).unwrap();
    world.request(lacking(Ability::Docker, &[true, true])).unwrap();
    world.submit(jobs);
    world.offer();
    assert!(world.tasks.is_empty());
    let why = world.show("web").why;
    assert_eq!(why[1], "2 agents: no Docker containerizer; start agents with --containerizers=docker,mesos");
    let impossible = world.show("web").impossible.unwrap();
    let reason = "no agent has a Docker containerizer; start agents with --containerizers=docker,mesos";
    assert_eq!((impossible.reason.as_str(), impossible.agents), (reason, 2));
    world.request(lacking(Ability::Docker, &[true, false])).unwrap();
    world.pass(6 * SECOND);
    world.offer();
    let task = world.tasks.values().next().unwrap();
    assert_eq!(task.agent, 1);
    let container = task.info.container.as_ref().unwrap();
    let docker = container.docker.as_ref().unwrap();
    let mappings: Vec<_> = docker.port_mappings.iter().map(|m| (m.host_port, m.container_port)).collect();
    assert_eq!(mappings, [(1000, 80), (1001, 1001)]);
    assert_eq!((docker.image.as_str(), docker.network), ("nginx", Some(2)));
    assert_eq!((docker.parameters[0].key.as_str(), docker.force_pull_image), ("label", Some(true)));
    let command = task.info.command.as_ref().unwrap();
    assert_eq!((command.value.as_deref(), &command.arguments[..]), (Some("nginx"), &["-g", "x"].map(String::from)[..]));
    let check = task.info.health_check.as_ref().unwrap().http.as_ref().unwrap();
    assert_eq!(check.port, 80, "the check runs in the container's network");
}

#[test]
fn ports_and_environment_reach_the_task() {
    let mut world = World::new(Knobs::default(), &["cpus:2;mem:1000;ports:[1000-1003]"]);
    let need = Need([500, 10_000, 0, 0, 2_000]);
    world.submit(vec![Job { need, env: [("A".to_owned(), "b".to_owned())].into(), ..array("p", 2, 1.0) }]);
    world.offer();
    let command = world.tasks["p.1.1.0"].info.command.clone().unwrap();
    let variables = command.environment.unwrap().variables;
    let value = |name: &str| variables.iter().find(|v| v.name == name).map(|v| v.value.clone().unwrap());
    assert_eq!(value("PORTS").as_deref(), Some("1002,1003"));
    assert_eq!(value("PORT1").as_deref(), Some("1003"));
    assert_eq!(value("TEPUI_INDEX").as_deref(), Some("1"));
    assert_eq!(value("A").as_deref(), Some("b"));
    assert_eq!(value("HOST").as_deref(), Some("host0"));
}

#[test]
fn what_a_job_says_of_its_tasks_reaches_them() {
    let mut world = World::new(Knobs::default(), &["cpus:8;mem:1000;ports:[1000-1009]"]);
    let text = |check: &str| {
        format!(
            "name = 'j'\nprogram = ['a', 'b c']\nports = 2\nuser = 'u'\nimage = 'i:1'\nlabels = {{ team = 'x' }}\n\
             kill_grace = 3\nuris = [{{ value = 'http://h/b', executable = true, output = 'c' }}]\nhealth = {{ {check}, \
             interval = '2s', timeout = 1, grace = '500ms', failures = 2 }}\n"
        )
    };
    let mut launched = |check: &str| {
        let job = crate::job::read("j.toml", &text(check), Syntax::Toml).unwrap().remove(0);
        let name = format!("j{}", world.tasks.len());
        world.submit(vec![Job { name: name.clone(), ..job }]);
        world.soon();
        world.offer();
        world.tasks[&world.of_job(&name)[0]].info.clone()
    };
    let task = launched("http = '/well', port = 1");
    let command = task.command.unwrap();
    assert_eq!(
        (command.shell, command.arguments, command.user),
        (Some(false), vec!["a".into(), "b c".into()], Some("u".into()))
    );
    let uri = &command.uris[0];
    assert_eq!((uri.value.as_str(), uri.executable, uri.output_file.as_deref()), ("http://h/b", Some(true), Some("c")));
    assert_eq!(task.labels.unwrap().labels[0].key, "team");
    assert_eq!(task.kill_policy.unwrap().grace_period.unwrap().nanoseconds, 3_000_000_000);
    assert_eq!(task.container.unwrap().mesos.unwrap().image.unwrap().docker.unwrap().name, "i:1");
    let check = task.health_check.unwrap();
    assert_eq!(
        (check.interval_seconds, check.timeout_seconds, check.grace_period_seconds),
        (Some(2.0), Some(1.0), Some(0.5))
    );
    assert_eq!(check.consecutive_failures, Some(2));
    let http = check.http.unwrap();
    assert_eq!((http.port, http.path.as_deref()), (1001, Some("/well")));
    let tcp = launched("tcp = true").health_check.unwrap().tcp.unwrap();
    assert_eq!(tcp.port, 1000, "the first port if none is named");
    let own = launched("command = 'test -e well'").health_check.unwrap().command.unwrap();
    assert_eq!((own.shell, own.value.as_deref()), (Some(true), Some("test -e well")));
}

#[test]
fn requests_that_cannot_be_are_refused_and_change_nothing() {
    let mut world = World::new(Knobs::default(), &["cpus:2;mem:1000"]);
    world.submit(vec![job("b", 1.0), service("s", 1, 0.5)]);
    let refused = |world: &mut World, request| world.request(request).unwrap_err();
    let name = || "b".to_owned();
    assert_eq!(refused(&mut world, stop("x")), RequestError::NoSuchJob("x".into()));
    let submit = Request::Submit(vec![job("new", 1.0), job("b", 1.0)]);
    assert_eq!(refused(&mut world, submit), RequestError::NameTaken(name()));
    assert_eq!(refused(&mut world, Request::Show { name: "new".into() }), RequestError::NoSuchJob("new".into()));
    let scale = Request::Scale { name: name(), count: 2 };
    assert_eq!(refused(&mut world, scale), RequestError::NotAService(name(), Kind::Batch));
    let many = Request::Scale { name: "s".into(), count: 1_000_000 };
    assert_eq!(refused(&mut world, many), RequestError::TooMany);
    let kill = Request::Kill { name: name(), numbers: vec![7], scale: false };
    assert_eq!(refused(&mut world, kill), RequestError::NoSuchTask(name(), 7));
    assert_eq!(refused(&mut world, Request::Forget { name: name() }), RequestError::Runs(name()));
    world.offer();
    assert_eq!(world.request(stop("b")), Ok(Reply::Done));
    assert_eq!(world.state("b"), State::Stopped);
    assert_eq!(refused(&mut world, stop("b")), RequestError::Ended(name()));
    let again = world.submit(vec![job("b", 1.0)]);
    assert_eq!(again, [Submitted { name: name(), version: 1, taken: SubmissionEffect::New }]);
    world.soon();
    assert!(world.tasks.contains_key("b.3.0.0"), "{:?}", world.tasks.keys());
}

#[test]
fn a_restart_doubles_and_loses_nothing() {
    let mut world = World::new(Knobs::default(), &["cpus:3;mem:1000"]);
    world.submit(vec![array("a", 5, 1.0), service("s", 2, 0.1)]);
    world.offer();
    world.run_all();
    world.update("a.1.0.0", TaskState::TaskFinished);
    let before = world.tasks.keys().cloned().collect::<Vec<_>>();
    world.restart();
    assert_eq!(world.tasks.keys().cloned().collect::<Vec<_>>(), before);
    assert_eq!(world.show("a").summary.tasks.finished, 1);
    world.offer();
    world.run_all();
    while !world.of_job("a").is_empty() {
        let id = world.of_job("a").remove(0);
        world.update(&id, TaskState::TaskFinished);
        world.restart();
        world.offer();
        world.run_all();
    }
    assert_eq!(world.state("a"), State::Finished);
    assert_eq!(world.ended.len(), 5);
    assert_eq!(world.of_job("s").len(), 2);
    let ended = world.show("a").summary.tasks;
    assert_eq!((ended.finished, ended.waiting, ended.live), (5, 0, 0));
}

#[test]
fn a_task_that_no_job_wants_is_ended() {
    let mut world = World::new(Knobs::default(), &["cpus:3;mem:1000"]);
    world.submit(vec![job("b", 1.0)]);
    world.offer();
    world.run_all();
    world.kinds();
    world.update("b.1.0.0", TaskState::TaskUnreachable);
    assert_eq!(world.state("b"), State::Unreachable);
    world.kills_at_once = false;
    world.pass(61 * SECOND);
    world.pass(2 * SECOND);
    world.offer();
    assert!(world.tasks.contains_key("b.1.0.1"), "it is replaced after a minute");
    world.kills_at_once = true;
    world.update("b.1.0.0", TaskState::TaskRunning);
    assert!(!world.tasks.contains_key("b.1.0.0"), "the old one is ended when it comes back");
}

#[test]
fn damaged_state_stops_everything_and_leaves_the_tasks_alone() {
    let mut world = World::new(Knobs::default(), &["cpus:3;mem:1000"]);
    world.submit(vec![service("s", 2, 1.0)]);
    world.soon();
    world.run_all();
    let (tasks, calls) = (world.tasks.clone().into_keys().collect::<Vec<_>>(), world.calls.len());
    let head = world.store.get_mut("own/job/00000000000000000001").unwrap();
    *head = b"{}".to_vec();
    let before = world.store.clone();
    world.restart();
    let ending = world.ending.clone();
    assert!(
        matches!(&ending, Some(sdk::Ending::State(why)) if why.contains("'job/00000000000000000001' cannot be read")
            && why.contains("the tasks continue")),
        "{ending:?}"
    );
    world.offer();
    world.pass(100 * SECOND);
    for id in &tasks {
        world.update(id, TaskState::TaskRunning);
    }
    assert_eq!(world.calls.len(), calls, "no kill, no teardown, not even a subscription");
    assert_eq!(world.store, before);
}

#[test]
fn what_an_older_version_kept_is_read() {
    let mut world = World::new(Knobs::default(), &["cpus:3;mem:1000"]);
    world.submit(vec![array("a", 2, 1.0)]);
    world.offer();
    world.run_all();
    // Newer fields are missing, and there are fields that this version does not know.
    let head = world.store.get_mut("own/job/00000000000000000001").unwrap();
    let mut value: serde_json::Value = serde_json::from_slice(head).unwrap();
    for field in ["gang", "deploying", "outcome"] {
        value.as_object_mut().unwrap().remove(field).unwrap();
    }
    for field in ["labels", "priority", "kill_grace", "policy", "ends", "health"] {
        value["versions"][0]["job"].as_object_mut().unwrap().remove(field).unwrap();
    }
    value["versions"][0]["job"]["colour"] = "red".into();
    *head = serde_json::to_vec(&value).unwrap();
    let task = world.store.get_mut("own/task/00000000000000000001/0000000000").unwrap();
    let mut value: serde_json::Value = serde_json::from_slice(task).unwrap();
    for field in ["failures", "losses", "message"] {
        value.as_object_mut().unwrap().remove(field).unwrap();
    }
    value["phase"]["live"].as_object_mut().unwrap().remove("healthy").unwrap();
    *task = serde_json::to_vec(&value).unwrap();
    world.restart();
    assert_eq!(world.state("a"), State::Running);
    assert_eq!(world.tasks.len(), 2);
}

#[test]
fn a_task_on_a_silent_agent_is_replaced_and_not_killed_again_and_again() {
    let mut world = World::new(Knobs::default(), &["cpus:2;mem:1000", "cpus:2;mem:1000"]);
    world.submit(vec![array("a", 4, 1.0)]);
    world.offer();
    world.run_all();
    world.silence(1);
    world.pass(61 * SECOND);
    let kills = world.kills;
    assert!(kills <= 4, "{kills} kills of two tasks");
    world.pass(600 * SECOND);
    assert!(world.kills <= kills + 2 * 21, "twice a minute at most: {}", world.kills);
    world.restart();
    let kills = world.kills;
    world.pass(25 * SECOND);
    assert_eq!(world.kills, kills);
    // The agent returns.
    let back = world.of_agent(1);
    for id in back {
        world.update(&id, TaskState::TaskRunning);
        assert!(!world.tasks.contains_key(&id), "it is ended at once");
    }
}

#[test]
fn a_task_that_no_master_knows_is_forgotten() {
    let mut world = World::new(Knobs::default(), &["cpus:2;mem:1000", "cpus:2;mem:1000"]);
    world.submit(vec![array("a", 4, 1.0)]);
    world.offer();
    world.run_all();
    world.silence(1);
    world.pass(61 * SECOND);
    world.forget_agent(1);
    world.pass(120 * SECOND);
    assert_eq!(world.in_ledger(), 2, "those on the other agent");
    let kills = world.kills;
    world.pass(600 * SECOND);
    assert_eq!(world.kills, kills);
}

#[test]
fn the_same_jobs_at_the_next_start_are_left_as_they_are() {
    let mut world = World::new(Knobs::default(), &["cpus:9;mem:1000"]);
    let with_secret = |mut job: Job, secret: &str| {
        job.env.insert("TEPUI_TOKEN".into(), secret.into());
        job
    };
    let jobs = |secret: &str| {
        vec![job("done", 1.0), array("runs", 2, 1.0), service("s", 1, 1.0), with_secret(gang("g", 2, 1.0), secret)]
    };
    let resume = |world: &mut World, jobs| match world.request(Request::Resume(jobs)) {
        Ok(Reply::Submitted(submitted)) => submitted.into_iter().map(|s| s.taken).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(resume(&mut world, jobs("first")), [SubmissionEffect::New; 4]);
    world.offer();
    world.run_all();
    world.update("done.1.0.0", TaskState::TaskFinished);
    let before: Vec<String> = world.tasks.keys().cloned().collect();
    world.restart();
    assert_eq!(resume(&mut world, jobs("second")), [SubmissionEffect::Unchanged; 4]);
    world.soon();
    assert_eq!(world.tasks.keys().cloned().collect::<Vec<_>>(), before);
    let changed = vec![job("done", 2.0), job("more", 1.0), array("runs", 2, 1.0)];
    assert_eq!(
        resume(&mut world, changed),
        [SubmissionEffect::New, SubmissionEffect::New, SubmissionEffect::Unchanged]
    );
    let other = Request::Resume(vec![array("runs", 3, 1.0)]);
    assert_eq!(world.request(other), Err(RequestError::NameTaken("runs".into())));
    let twice = Request::Submit(vec![job("x", 1.0), job("x", 1.0)]);
    assert_eq!(world.request(twice), Err(RequestError::Twice("x".into())));
}

#[test]
fn a_clock_that_was_set_back_makes_no_task_wait_for_it() {
    let mut world = World::new(Knobs::default(), &["cpus:3;mem:1000"]);
    world.submit(vec![Job { retries: 1, ..job("b", 1.0) }]);
    world.offer();
    world.update("b.1.0.0", TaskState::TaskFailed);
    world.now = base::Time::from_secs(10);
    world.restart();
    world.pass(301 * SECOND);
    world.offer();
    assert!(world.tasks.contains_key("b.1.0.1"), "after the longest wait of the job at most");
}

#[test]
fn gpus_are_kept_for_jobs_that_need_them() {
    let mut world = World::new(Knobs::default(), &["cpus:4;mem:1000;gpus:2", "cpus:4;mem:1000"]);
    let need = Need([1_000, 10_000, 0, 1_000, 0]);
    world.submit(vec![array("plain", 3, 1.0), Job { need, ..array("gpu", 2, 1.0) }]);
    world.offer();
    assert!(world.of_job("plain").iter().all(|id| world.tasks[id].agent == 1), "they have room elsewhere");
    assert!(world.of_job("gpu").iter().all(|id| world.tasks[id].agent == 0) && world.of_job("gpu").len() == 2);
    let mut world = World::new(Knobs::default(), &["cpus:4;mem:1000;gpus:2", "cpus:1;mem:1000"]);
    world.submit(vec![array("plain", 3, 1.0)]);
    world.offer();
    assert_eq!(world.tasks.len(), 3, "rather there than nowhere");
}

#[test]
fn a_value_that_is_gone_keeps_no_task_off_the_others() {
    let mut world = World::new(Knobs::default(), &["cpus:4;mem:1000", "cpus:4;mem:1000"]);
    (world.agents[0].attributes, world.agents[1].attributes) = (vec![("rack", "r1")], vec![("rack", "r2")]);
    let evenly = Constraint::new("rack", "group_by", None).unwrap();
    world.submit(vec![Job { constraints: vec![evenly], ..service("s", 4, 1.0) }]);
    world.soon();
    assert_eq!((world.of_agent(0).len(), world.of_agent(1).len()), (2, 2));
    // The agents of the rack are removed while the scheduler is down.
    for id in world.of_agent(1) {
        world.update(&id, TaskState::TaskLost);
    }
    world.agents[1].total = "cpus:0;mem:0".into();
    world.restart();
    for _ in 0..5 {
        world.pass(10 * SECOND);
        world.offer();
    }
    assert_eq!(world.of_agent(0).len(), 4);
}

#[test]
fn the_limits_hold() {
    let mut world = World::new(Knobs::default(), &["cpus:1;mem:1000"]);
    let full = |world: &mut World, jobs| matches!(world.request(Request::Submit(jobs)), Err(RequestError::Full));
    let many = |n: usize| -> Vec<Job> { (0..n).map(|k| job(&format!("j{k}"), 1.0)).collect() };
    assert!(full(&mut world, many(super::JOBS_MAX + 1)));
    assert!(full(&mut world, (0..11).map(|k| array(&format!("a{k}"), 100_000, 1.0)).collect()));
    // A service that is updated or scaled counts once.
    let services = (0..10).map(|k| service(&format!("s{k}"), 90_000, 1.0)).collect();
    assert!(!full(&mut world, services));
    assert!(!full(&mut world, vec![service("s0", 90_000, 2.0)]), "a new version is not a second service");
    let scale = |count| Request::Scale { name: "s0".into(), count };
    assert_eq!(world.request(scale(100_000)), Ok(Reply::Done));
    assert!(full(&mut world, vec![array("b", 90_001, 1.0)]));
    for k in 1..10 {
        assert_eq!(world.request(Request::Scale { name: format!("s{k}"), count: 100_000 }), Ok(Reply::Done));
    }
    assert!(full(&mut world, vec![job("one", 1.0)]));
    assert_eq!(world.request(Request::Scale { name: "s0".into(), count: 100_000 }), Ok(Reply::Done));
}

#[test]
fn what_has_ended_is_remembered_within_limits() {
    let mut world = World::new(Knobs::default(), &["cpus:0.001;mem:1"]);
    for k in 0..3 {
        world.submit(vec![array(&format!("large{k}"), 90_000, 1.0)]);
        world.request(stop(&format!("large{k}"))).unwrap();
    }
    assert!(world.request(Request::Show { name: "large0".into() }).is_err(), "200,000 tasks are remembered at most");
    assert_eq!(world.state("large1"), State::Stopped);
    for k in 0..super::ENDED_MAX {
        world.submit(vec![job(&format!("j{k}"), 1.0)]);
        world.request(stop(&format!("j{k}"))).unwrap();
    }
    assert!(world.request(Request::Show { name: "large2".into() }).is_err());
    assert_eq!(world.state("j0"), State::Stopped);
    let kept = world.store.keys().filter(|key| key.starts_with("own/job/")).count();
    assert_eq!(kept, super::ENDED_MAX);
}

#[test]
fn a_large_service_is_looked_at_now_and_then() {
    let mut world = World::new(Knobs::default(), &["cpus:999;mem:90000"]);
    world.submit(vec![service("s", 600, 1.0)]);
    world.soon();
    assert_eq!(world.tasks.len(), 600);
    world.run_all();
    world.pass(SECOND);
    assert_eq!(world.state("s"), State::Running);
    world.update("s.1.7.0", TaskState::TaskFailed);
    world.request(Request::Scale { name: "s".into(), count: 590 }).unwrap();
    world.pass(SECOND);
    assert_eq!(world.tasks.len(), 590);
    world.request(stop("s")).unwrap();
    world.pass(SECOND);
    assert_eq!(world.state("s"), State::Stopped);
}
