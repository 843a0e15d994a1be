//! Tests the second-level settings by the calls that the master receives.

use std::time::Duration;

use sdk::v1::TaskState;
use sdk::v1::scheduler::call::Type;

use super::world::World;
use super::{SECOND, array, job};
use crate::place::Policy;
use crate::{Behaviour, Knobs, Pace};

fn refusals(world: &mut World) -> Vec<(Type, f64)> {
    let calls = std::mem::take(&mut world.calls);
    let refusal = |call: &sdk::v1::scheduler::Call| {
        let filters = match call.r#type() {
            Type::Accept => call.accept.as_ref()?.filters,
            Type::Decline => call.decline.as_ref()?.filters,
            _ => return None,
        };
        Some((call.r#type(), filters?.refuse_seconds?))
    };
    calls.iter().filter_map(refusal).collect()
}

#[test]
fn without_work_offers_are_suppressed_and_revived_with_it() {
    let mut world = World::new(Knobs::default(), &["cpus:2;mem:1000"]);
    assert_eq!(world.kinds(), [Type::Suppress]);
    world.submit(vec![job("b", 1.0)]);
    assert_eq!(world.kinds(), [Type::Revive]);
    world.offer();
    assert_eq!(world.kinds(), [Type::Accept, Type::Suppress]);
    // A second job arrives soon after: no second revive within half a second.
    world.submit(vec![job("c", 1.0)]);
    assert_eq!(world.kinds(), []);
    world.pass(SECOND);
    assert_eq!(world.kinds(), [Type::Revive]);
}

#[test]
fn a_new_subscription_starts_from_what_the_master_knows() {
    let mut world = World::new(Knobs::default(), &["cpus:2;mem:1000"]);
    world.kinds();
    world.restart();
    assert_eq!(world.kinds(), [Type::Suppress]);
    world.submit(vec![job("b", 1.0)]);
    world.restart();
    assert_eq!(world.kinds(), [Type::Revive], "of the submission; after the restart offers come by themselves");
    world.offer();
    assert_eq!(world.tasks.len(), 1);
}

#[test]
fn marathon_refuses_for_two_minutes_and_revives_for_new_work() {
    let mut world = World::new(Behaviour::Marathon.knobs(), &["cpus:2;mem:1000"]);
    world.submit(vec![job("huge", 64.0)]);
    world.offer();
    assert_eq!(refusals(&mut world), [(Type::Decline, 120.0)]);
    world.pass(60 * SECOND);
    world.offer();
    assert_eq!(world.kinds(), [], "it is refused for another minute");
    world.submit(vec![job("small", 1.0)]);
    assert_eq!(world.kinds(), [Type::Revive]);
    world.offer();
    assert_eq!(refusals(&mut world), [(Type::Accept, 0.0)], "only what is declined is refused");
    world.offer();
    assert_eq!(refusals(&mut world), [(Type::Decline, 120.0)], "as the rest is when it comes");
    world.submit(vec![job("small2", 1.0)]);
    assert_eq!(world.kinds(), [], "5 s between revives");
    world.pass(5 * SECOND);
    assert_eq!(world.kinds(), [Type::Revive]);
}

#[test]
fn marathon_launches_so_many_on_an_offer() {
    let knobs = Knobs { tasks_per_offer: Some(3), ..Behaviour::Marathon.knobs() };
    let mut world = World::new(knobs, &["cpus:8;mem:1000", "cpus:8;mem:1000"]);
    world.submit(vec![array("a", 10, 0.1)]);
    world.offer();
    assert_eq!(world.tasks.values().filter(|t| t.agent == 0).count(), 3);
    assert_eq!(world.tasks.len(), 6);
}

#[test]
fn aurora_holds_for_minutes_and_refuses_for_seconds() {
    let mut world = World::new(Behaviour::Aurora.knobs(), &["cpus:2;mem:1000"]);
    assert_eq!(world.kinds(), [], "it does not suppress");
    world.offer();
    world.pass(300 * SECOND);
    assert_eq!(refusals(&mut world), [], "jitter comes on top");
    world.pass(60 * SECOND);
    assert_eq!(refusals(&mut world), [(Type::Decline, 5.0)]);
    world.pass(6 * SECOND);
    world.offer();
    world.pass(10 * SECOND);
    world.submit(vec![job("b", 1.0)]);
    assert_eq!(world.tasks.len(), 1, "placed on the offer that was held");
}

#[test]
fn aurora_places_five_at_a_time_and_forty_times_a_second() {
    let mut world = World::new(Behaviour::Aurora.knobs(), &["cpus:64;mem:10000"; 40]);
    world.offer();
    world.submit(vec![array("a", 100, 0.5)]);
    assert_eq!(world.tasks.len(), 5);
    world.pass(Duration::from_millis(100));
    assert_eq!(world.tasks.len(), 25);
}

#[test]
fn spark_spreads_and_refuses_long_when_it_has_enough() {
    let mut world = World::new(Behaviour::Spark.knobs(), &["cpus:4;mem:1000", "cpus:4;mem:1000"]);
    world.offer();
    assert_eq!(refusals(&mut world), [(Type::Decline, 120.0)]);
    let mut world = World::new(Behaviour::Spark.knobs(), &["cpus:4;mem:1000", "cpus:4;mem:1000"]);
    world.submit(vec![array("e", 2, 1.0)]);
    world.offer();
    let mut agents: Vec<usize> = world.tasks.values().map(|t| t.agent).collect();
    agents.sort_unstable();
    assert_eq!(agents, [0, 1]);
    assert_eq!(refusals(&mut world), [(Type::Accept, 5.0), (Type::Accept, 5.0)]);
}

#[test]
fn held_offers_are_given_back_fast_if_wanted() {
    let knobs = Knobs { hold: 60 * SECOND, suppress_idle: false, ..Knobs::default() };
    let mut world = World::new(knobs.clone(), &["cpus:2;mem:1000", "cpus:2;mem:1000"]);
    world.offer();
    assert_eq!(refusals(&mut world), [(Type::Decline, 5.0)], "nothing waits");
    let mut world = World::new(Knobs { decline_fast: false, ..knobs }, &["cpus:2;mem:1000"]);
    world.offer();
    assert_eq!(refusals(&mut world), []);
    world.pass(60 * SECOND);
    assert_eq!(refusals(&mut world), [(Type::Decline, 5.0)]);
}

#[test]
fn a_pace_smooths_arrivals() {
    let pace = Some(Pace { tasks: 2, every: SECOND });
    let knobs = Knobs { pace, hold: 60 * SECOND, ..Knobs::default() };
    let mut world = World::new(knobs, &["cpus:9;mem:1000"; 20]);
    world.submit(vec![array("a", 10, 1.0)]);
    world.offer();
    assert_eq!(world.tasks.len(), 2);
    for expected in [4, 6, 8, 10] {
        world.pass(SECOND);
        world.offer();
        assert_eq!(world.tasks.len(), expected);
    }
}

#[test]
fn decreasing_places_the_largest_jobs_first() {
    let knobs = Knobs { policy: Policy::FirstFitDecreasing, ..Knobs::default() };
    let mut world = World::new(knobs, &["cpus:1;mem:1000", "cpus:1;mem:1000"]);
    world.submit(vec![array("small", 2, 0.4), array("large", 2, 0.6)]);
    world.offer();
    assert_eq!(world.tasks.len(), 4);
    world.update("large.2.0.0", TaskState::TaskFinished);
    assert_eq!(world.tasks.len(), 3);
}
