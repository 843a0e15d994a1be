//! Tests of outputs that are lost with their agents, or that readers do not find.

use std::time::Duration;

use sdk::v1::TaskState;

use super::world::World;
use crate::core::{Reply, Request, Settings, State};
use crate::task::{Fault, Missing, Report, Spec, VARIABLE};

const PIPELINE: &str = "name = 'job'\n\
    [[stage]]\nname = 'map'\ntasks = 4\ncpus = 1\ncommand = 'x'\noutputs = ['out.{partition}']\npartitions = 2\n\
    [[stage]]\nname = 'reduce'\ncpus = 1\ncommand = 'x'\noutputs = ['sum']\ninput = { stage = 'map', by = 'partition' }\n\
    [[stage]]\nname = 'gather'\ncpus = 1\ncommand = 'x'\ninput = { stage = 'reduce' }\n";

fn missing(stage: &str, index: u32, attempt: u32) -> Report {
    let missing = vec![Missing { stage: stage.into(), index, attempt: Some(attempt) }];
    Report { missing, ..Report::default() }
}

#[test]
fn readers_receive_the_places_of_outputs() {
    let mut world = World::new(Settings::default(), 2, 2.0);
    world.submit(PIPELINE);
    world.soon();
    for id in world.of_stage("map") {
        world.finish(&id);
    }
    world.soon();
    let readers = world.of_stage("reduce");
    assert_eq!(readers, ["job.1.reduce.0.1", "job.1.reduce.1.1"]);
    let spec: Spec = serde_json::from_str(&world.environment(&readers[1], VARIABLE).unwrap()).unwrap();
    assert_eq!(spec.sources.unwrap().partition, Some(1));
    let Ok(Reply::Sources(sources)) = world.request(Request::Sources { task: readers[1].clone() }) else { panic!() };
    assert_eq!(sources.len(), 4);
    assert_eq!(sources[2].path, "/frameworks/F/executors/job.1.map.2.1/runs/latest");
    assert!(sources[2].agent.starts_with("10.0.0."), "{}", sources[2].agent);
    assert!(world.request(Request::Sources { task: "job.1.reduce.7.1".into() }).is_err());
}

#[test]
fn what_is_gone_with_an_agent_is_made_again() {
    let mut world = World::new(Settings::default(), 2, 2.0);
    world.submit(PIPELINE);
    world.soon();
    let there = |world: &World, agent: usize| world.tasks.values().filter(|task| task.agent == agent).count();
    assert_eq!((there(&world, 0), there(&world, 1)), (2, 2));
    for id in world.of_stage("map") {
        world.finish(&id);
    }
    world.lose(0);
    world.soon();
    assert!(world.of_stage("reduce").is_empty(), "its input is not there");
    assert_eq!(world.of_stage("map").len(), 2, "those of the lost agent run again");
    assert_eq!(world.show("job").stages[0].state, State::Running);
    world.find(0);
    world.restart();
    world.run_dry();
    assert_eq!(world.state("job"), State::Finished);
    // Four mappers, two that ran again, two reducers and the gatherer.
    assert_eq!(world.launched.len(), 4 + 2 + 2 + 1);
}

#[test]
fn what_no_stage_reads_any_more_is_not_made_again() {
    let mut world = World::new(Settings::default(), 2, 2.0);
    world.submit(PIPELINE);
    world.soon();
    for stage in ["map", "reduce"] {
        for id in world.of_stage(stage) {
            world.finish(&id);
        }
        world.soon();
    }
    assert_eq!(world.of_stage("gather").len(), 1);
    let before = world.launched.len();
    // The reducers' outputs are still to be read. Those of the mappers are not, unless a reducer runs again.
    let lost = world.tasks["job.1.gather.0.1"].agent;
    world.lose(lost);
    world.find(lost);
    world.pass(Duration::from_secs(3));
    world.soon();
    world.run_dry();
    assert_eq!(world.state("job"), State::Finished);
    let again: Vec<&String> = world.launched[before..].iter().collect();
    assert!(again.iter().any(|id| id.contains(".reduce.")), "{again:?}");
    assert!(again.iter().filter(|id| id.contains(".map.")).count() <= 2, "those of one agent at most: {again:?}");
}

#[test]
fn what_a_reader_does_not_find_is_made_again_once() {
    let mut world = World::new(Settings { shared: Some("/shared".into()), ..Settings::default() }, 2, 4.0);
    world.submit(PIPELINE);
    world.soon();
    for id in world.of_stage("map") {
        world.finish(&id);
    }
    world.lose(1);
    world.find(1);
    world.soon();
    assert!(world.of_stage("map").is_empty(), "a shared directory is not lost with an agent");
    let readers = world.of_stage("reduce");
    let spec: Spec = serde_json::from_str(&world.environment(&readers[0], VARIABLE).unwrap()).unwrap();
    let sources = spec.sources.unwrap();
    assert_eq!((sources.shared[0].directory.as_str(), sources.shared[0].count), ("/shared/job.1.F/map", 4));
    assert_eq!(spec.directory.as_deref(), Some("/shared/job.1.F/reduce"));
    for reader in &readers {
        world.request(Request::Report { task: reader.clone(), report: missing("map", 2, 1) }).unwrap();
        let message = format!("Command exited with status {}", Fault::Source.code());
        world.update(reader, TaskState::TaskFailed, &message);
    }
    world.soon();
    assert_eq!(world.of_stage("map"), ["job.1.map.2.2"], "once, although two readers have missed it");
    world.finish("job.1.map.2.2");
    // A report about the old attempt arrives late.
    world.soon();
    let reader = world.of_stage("reduce")[0].clone();
    world.request(Request::Report { task: reader, report: missing("map", 2, 1) }).unwrap();
    world.soon();
    assert!(world.of_stage("map").is_empty());
    world.run_dry();
    assert_eq!(world.state("job"), State::Finished, "a missing source is not a failure of its reader");
}

#[test]
fn an_input_that_has_vanished_is_not_tried_again() {
    let mut world = World::new(Settings::default(), 1, 4.0);
    world.submit("name = 'job'\n[[stage]]\nname = 's'\nretries = 5\ncommand = 'x'\noutputs = ['a']\n");
    world.soon();
    let report = Report { message: "the input file /data/a cannot be read".into(), ..Report::default() };
    world.request(Request::Report { task: "job.1.s.0.1".into(), report }).unwrap();
    let message = format!("Command exited with status {}", Fault::Input.code());
    world.update("job.1.s.0.1", TaskState::TaskFailed, &message);
    assert_eq!(world.state("job"), State::Failed);
    let why = world.show("job").summary.why;
    assert!(why.ends_with("the input file /data/a cannot be read"), "{why}");
}
