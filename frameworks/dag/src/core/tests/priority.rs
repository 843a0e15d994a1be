//! Tests of dropped tasks, estimates, and sprints.

use std::time::Duration;

use super::world::World;
use crate::core::{Request, Settings, Sprinting, State};
use crate::task::Report;

fn job(name: &str, approximate: &str) -> String {
    format!(
        "name = '{name}'\npriority = 'low'\n[[stage]]\nname = 's'\ntasks = 20\ncpus = 1\ncommand = 'x'\noutputs = ['n']\n\
         approximate = {approximate}\n[[stage]]\nname = 'after'\nafter = 's'\ncommand = 'x'\n"
    )
}

/// Runs all tasks of the stage, each with the value for its number.
fn run_stage(world: &mut World, value: impl Fn(u32) -> f64) {
    loop {
        world.soon();
        let ids = world.of_stage("s");
        if ids.is_empty() {
            return;
        }
        for id in ids {
            let index = id.split('.').nth(3).unwrap().parse().unwrap();
            let report = Report { value: Some(value(index)), ..Report::default() };
            world.request(Request::Report { task: id.clone(), report }).unwrap();
            world.finish(&id);
        }
    }
}

fn settings(drop: f64) -> Settings {
    Settings { drop, drop_under_load: false, ..Settings::default() }
}

#[test]
fn a_share_is_left_out_and_the_estimate_has_its_bound() {
    let mut world = World::new(settings(0.5), 2, 4.0);
    world.submit(&job("job", "{ drop = 0.25, error = 0.5, value = 'n' }"));
    run_stage(&mut world, |index| 10.0 + f64::from(index % 3));
    let view = world.show("job");
    assert_eq!(view.stages[0].tasks.dropped, 5, "no more than the job accepts, although the settings say half");
    let estimate = view.stages[0].estimate.clone().unwrap();
    assert_eq!((estimate.tasks, estimate.of), (15, 20));
    let truth: f64 = (0..20).map(|index| 10.0 + f64::from(index % 3)).sum();
    let bound = estimate.bound.unwrap();
    assert!(bound > 0.0 && (estimate.value - truth).abs() <= bound, "{estimate:?} of {truth}");
    world.restart();
    assert_eq!(world.show("job").stages[0].estimate.clone().unwrap(), estimate, "kept");
    world.run_dry();
    assert_eq!(world.state("job"), State::Finished);
}

#[test]
fn what_was_left_out_runs_if_the_estimate_is_not_good_enough() {
    let mut world = World::new(settings(0.25), 2, 4.0);
    world.submit(&job("job", "{ drop = 0.25, error = 0.01, value = 'n' }"));
    run_stage(&mut world, |index| if index % 2 == 0 { 1_000.0 } else { 1.0 });
    let view = world.show("job");
    assert_eq!((view.stages[0].tasks.dropped, view.stages[0].tasks.finished), (0, 20));
    let estimate = view.stages[0].estimate.clone().unwrap();
    assert_eq!((estimate.value, estimate.bound), (10_010.0, Some(0.0)), "of all tasks there is no doubt");
}

#[test]
fn nothing_is_left_out_while_no_other_job_waits() {
    let mut world = World::new(Settings { drop: 0.25, ..Settings::default() }, 2, 4.0);
    world.submit(&job("alone", "true"));
    assert_eq!(world.show("alone").stages[0].tasks.dropped, 0);
    run_stage(&mut world, |_| 1.0);
    assert_eq!(world.show("alone").stages[0].tasks.dropped, 0);
    world.run_dry();
    world.submit(&job("one", "true"));
    world.submit(&job("two", "true"));
    run_stage(&mut world, |_| 1.0);
    // The first job was opened before the second arrived.
    assert_eq!(world.show("two").stages[0].tasks.dropped, 4, "drop is 0.2 where the job says nothing else");
}

#[test]
fn an_agent_that_takes_no_limits_gets_none() {
    let sprint = Sprinting { boost: 0.5, budget: 1e6, ..Sprinting::default() };
    let mut world = World::new(Settings { sprint, ..Settings::default() }, 1, 4.0);
    world.submit("name = 'urgent'\npriority = 'high'\n[[stage]]\nname = 's'\ntasks = 2\ncpus = 2\ncommand = 'x'\n");
    world.soon();
    let dropped: Vec<String> = world.tasks.keys().cloned().collect();
    assert!(world.tasks.values().all(|task| !task.info.limits.is_empty()));
    for id in &dropped {
        world.update(id, sdk::v1::TaskState::TaskDropped, "CPU limits need the agent's isolator cgroups/cpu");
    }
    world.pass(Duration::from_secs(5));
    world.soon();
    assert_eq!(world.tasks.len(), 2);
    assert!(world.tasks.values().all(|task| task.info.limits.is_empty()));
    world.run_dry();
    assert_eq!(world.state("urgent"), State::Finished);
}

#[test]
fn high_priority_sprints_while_its_budget_lasts() {
    let sprint = Sprinting { boost: 0.5, budget: 10.0, refill: 0.0, ..Sprinting::default() };
    let mut world = World::new(Settings { sprint, ..Settings::default() }, 1, 4.0);
    let job = |name: &str, priority: &str| {
        format!("name = '{name}'\npriority = '{priority}'\n[[stage]]\nname = 's'\ntasks = 2\ncpus = 2\ncommand = 'x'\n")
    };
    world.submit(&job("usual", "normal"));
    world.soon();
    assert!(world.tasks.values().all(|task| task.info.limits.is_empty()));
    world.run_dry();
    world.submit(&job("urgent", "high"));
    world.soon();
    assert!(world.tasks.values().all(|task| task.info.limits["cpus"].value == 3.0));
    // Two cores above requests for five seconds use up the budget.
    world.pass(Duration::from_secs(6));
    world.run_dry();
    world.submit(&job("late", "high"));
    world.soon();
    assert_eq!(world.tasks.len(), 2);
    assert!(world.tasks.values().all(|task| task.info.limits.is_empty()));
}
