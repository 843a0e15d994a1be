//! Tests gangs: all ranks or none, held offers within a limit, and restarts after the end of a rank.

use sdk::v1::TaskState;
use sdk::v1::scheduler::call::Type;

use super::world::World;
use super::{SECOND, array, gang, job, stop};
use crate::constraint::Constraint;
use crate::core::{AgentTotals, Reply, Request, RequiredCapacity, State};
use crate::job::{GangEnd, Job};
use crate::{Knobs, Need, Pace};

#[test]
fn all_ranks_or_none() {
    let mut world = World::new(Knobs::default(), &["cpus:2;mem:1000", "cpus:2;mem:1000"]);
    world.submit(vec![gang("g", 4, 1.0)]);
    world.offer_of(&[0]);
    assert!(world.tasks.is_empty(), "two of four ranks have room: none is launched, the offer is held");
    let why = world.show("g").why;
    assert!(why[0].starts_with("the gang gathers: 2 of 4 ranks have room on the offers held"), "{why:?}");
    world.pass(SECOND);
    world.offer_of(&[1]);
    assert_eq!(world.tasks.len(), 4);
    let command = world.tasks["g.1.2.0"].info.command.clone().unwrap();
    let variables = command.environment.unwrap().variables;
    let value = |name: &str| variables.iter().find(|v| v.name == name).unwrap().value.clone().unwrap();
    assert_eq!((value("TEPUI_RANK"), value("TEPUI_SIZE")), ("2".into(), "4".into()));
    assert_eq!(value("TEPUI_HOSTS"), "host0,host0,host1,host1");
    world.run_all();
    for id in world.of_job("g") {
        assert_eq!(world.state("g"), State::Running);
        world.update(&id, TaskState::TaskFinished);
    }
    assert_eq!(world.state("g"), State::Finished);
}

#[test]
fn offers_are_given_back_when_the_time_is_over_and_others_go_first() {
    let mut world = World::new(Knobs::default(), &["cpus:2;mem:1000"]);
    world.submit(vec![Job { gather: 10 * SECOND, ..gang("g", 3, 1.0) }, job("small", 1.0)]);
    world.offer();
    assert!(world.tasks.is_empty(), "the gang came first and holds the offer");
    world.kinds();
    world.pass(9 * SECOND);
    assert_eq!(world.kinds(), []);
    world.pass(SECOND);
    // The rest of the accepted offer returns to the master with the launch; while the gang rests nothing else waits.
    assert_eq!(world.kinds(), [Type::Accept, Type::Suppress]);
    assert_eq!(world.of_job("small").len(), 1);
    let why = world.show("g").why;
    assert!(why[0].starts_with("the gang could not form (2 of 3 ranks had room)"), "{why:?}");
    world.pass(11 * SECOND);
    world.offer();
    let why = world.show("g").why;
    assert!(why[0].starts_with("the gang gathers: 1 of 3"), "it tries again: {why:?}");
}

#[test]
fn a_pace_that_is_used_up_takes_nothing_from_a_gang() {
    let pace = Some(Pace { tasks: 1, every: SECOND });
    let mut world = World::new(Knobs { pace, ..Knobs::default() }, &["cpus:1;mem:1000"; 5]);
    (world.agents[3].total, world.agents[4].total) = ("cpus:0.5;mem:1000".into(), "cpus:0.5;mem:1000".into());
    world.submit(vec![gang("g", 3, 1.0), array("a", 9, 0.1)]);
    world.offer_of(&[0]);
    world.offer_of(&[1]);
    assert!(world.of_job("g").is_empty() && world.of_job("a").is_empty(), "the gang keeps both");
    // The array's first task uses up the pace, on an offer that the gang cannot use.
    world.offer_of(&[3]);
    assert_eq!(world.of_job("a").len(), 1);
    world.offer_of(&[4]);
    assert!(world.show("g").why[0].starts_with("the gang gathers: 2 of 3"), "{:?}", world.show("g").why);
    world.pass(2 * SECOND);
    world.offer_of(&[2]);
    assert_eq!(world.of_job("g").len(), 3, "it had kept what it had: {:?}", world.show("g").why);
}

#[test]
fn two_gangs_do_not_wait_for_each_other() {
    let mut world = World::new(Knobs::default(), &["cpus:2;mem:1000", "cpus:2;mem:1000"]);
    world.submit(vec![gang("g", 3, 1.0), gang("h", 3, 1.0)]);
    world.offer_of(&[0]);
    assert!(world.show("h").why[0].contains("another gang gathers offers: 'g'"));
    world.offer_of(&[1]);
    assert_eq!(world.of_job("g").len(), 3);
    world.run_all();
    for id in world.of_job("g") {
        world.update(&id, TaskState::TaskFinished);
    }
    world.pass(6 * SECOND);
    world.offer();
    assert_eq!(world.of_job("h").len(), 3);
}

#[test]
fn one_failed_rank_ends_all_and_all_begin_anew() {
    let mut world = World::new(Knobs::default(), &["cpus:4;mem:1000"]);
    world.submit(vec![Job { retries: 1, ..gang("g", 3, 1.0) }]);
    world.offer();
    world.run_all();
    world.update("g.1.0.0", TaskState::TaskFinished);
    world.update("g.1.1.0", TaskState::TaskFailed);
    assert!(world.tasks.is_empty(), "the third was ended");
    world.restart();
    world.pass(2 * SECOND);
    world.offer();
    assert_eq!(world.of_job("g"), ["g.1.0.1", "g.1.1.1", "g.1.2.1"]);
    world.run_all();
    world.update("g.1.2.1", TaskState::TaskFailed);
    assert_eq!(world.state("g"), State::Failed);
    assert!(world.tasks.is_empty());
}

#[test]
fn a_lost_rank_is_no_failure() {
    let mut world = World::new(Knobs::default(), &["cpus:4;mem:1000"]);
    world.submit(vec![gang("g", 2, 1.0)]);
    world.offer();
    world.update("g.1.0.0", TaskState::TaskLost);
    world.pass(5 * SECOND);
    world.offer();
    assert_eq!(world.of_job("g"), ["g.1.0.1", "g.1.1.1"]);
}

#[test]
fn rank_0_can_end_it() {
    let mut world = World::new(Knobs::default(), &["cpus:4;mem:1000"]);
    world.submit(vec![Job { ends: GangEnd::First, ..gang("g", 3, 1.0) }]);
    world.offer();
    world.run_all();
    world.update("g.1.0.0", TaskState::TaskFinished);
    assert!(world.tasks.is_empty());
    assert_eq!(world.state("g"), State::Finished);
}

#[test]
fn a_rescinded_or_void_offer_is_not_counted_on() {
    let mut world = World::new(Knobs::default(), &["cpus:2;mem:1000", "cpus:2;mem:1000"]);
    world.submit(vec![gang("g", 4, 1.0)]);
    world.offer_of(&[0]);
    world.rescind(0);
    world.offer_of(&[1]);
    assert!(world.tasks.is_empty());
    world.restart();
    world.offer_of(&[0]);
    assert!(world.tasks.is_empty(), "the offer from before the restart is void");
    world.offer_of(&[1]);
    assert_eq!(world.tasks.len(), 4);
}

#[test]
fn a_stopped_gang_gives_its_offers_back() {
    let mut world = World::new(Knobs::default(), &["cpus:2;mem:1000"]);
    world.submit(vec![gang("g", 4, 1.0)]);
    world.offer();
    world.kinds();
    world.request(stop("g")).unwrap();
    assert_eq!(world.state("g"), State::Stopped);
    assert_eq!(world.kinds(), [Type::Decline, Type::Suppress]);
}

/// Returns a report of agents like those of the world.
fn totals(cpus: &[f64]) -> Request {
    let total = |(number, cpus): (usize, &f64)| AgentTotals {
        agent_id: format!("agent{number}"),
        host: format!("host{number}"),
        all: Need::of(*cpus, 1_000.0),
        ..AgentTotals::default()
    };
    Request::Agents(cpus.iter().enumerate().map(total).collect())
}

#[test]
fn a_gang_that_no_agents_could_hold_holds_nothing() {
    let mut world = World::new(Knobs::default(), &["cpus:4;mem:1000", "cpus:4;mem:1000"]);
    assert_eq!(world.request(Request::RequiredCapacity), Ok(Reply::RequiredCapacity(RequiredCapacity::default())));
    world.request(totals(&[4.0, 4.0])).unwrap();
    world.submit(vec![gang("g", 20, 1.0), job("small", 0.1)]);
    assert_eq!(
        world.request(Request::RequiredCapacity),
        Ok(Reply::RequiredCapacity(RequiredCapacity { totals: true, ..RequiredCapacity::default() }))
    );
    world.offer();
    assert_eq!(world.of_job("small").len(), 1, "nothing is held, so it starts at once");
    assert_eq!(
        world.show("g").why[0],
        "warning: the gang cannot form: all agents together have room for 8 of 20 ranks (cpus 8, mem 80), cpus 12, \
         mem 120 is missing; it holds no offers"
    );
    let impossible = world.show("g").impossible.unwrap();
    let reason = "the gang cannot form: all agents together have room for 8 of 20 ranks";
    assert_eq!((impossible.reason.as_str(), impossible.agents), (reason, 2));
    // More agents join.
    world.request(totals(&[4.0, 4.0, 12.0])).unwrap();
    world.pass(6 * SECOND);
    world.offer();
    assert!(world.show("g").why[0].starts_with("the gang gathers: 7 of 20"), "{:?}", world.show("g").why);
    // One agent leaves: the held offers are declined.
    world.kinds();
    world.request(totals(&[4.0, 12.0])).unwrap();
    assert!(world.kinds().contains(&Type::Decline));
}

#[test]
fn constraints_count_for_what_is_possible() {
    let mut world = World::new(Knobs::default(), &["cpus:4;mem:1000", "cpus:4;mem:1000"]);
    world.request(totals(&[4.0, 4.0])).unwrap();
    let unique = Constraint::new("hostname", "unique", None).unwrap();
    world.submit(vec![Job { constraints: vec![unique], ..gang("g", 3, 1.0) }]);
    world.offer();
    assert!(world.show("g").why[0].contains("room for 2 of 3 ranks"), "{:?}", world.show("g").why);
}

/// Returns a world of agents with these cores, racks and zones, which are also reported.
fn racks(agents: &[(u32, &'static str, &'static str)]) -> World {
    let sizes: Vec<String> = agents.iter().map(|(cpus, ..)| format!("cpus:{cpus};mem:1000")).collect();
    let mut world = World::new(Knobs::default(), &sizes.iter().map(String::as_str).collect::<Vec<_>>());
    let mut totals = Vec::new();
    for (number, (cpus, rack, zone)) in agents.iter().copied().enumerate() {
        world.agents[number].attributes = vec![("rack", rack), ("zone", zone)];
        totals.push(AgentTotals {
            agent_id: format!("agent{number}"),
            host: format!("host{number}"),
            attributes: [("rack", rack), ("zone", zone)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            all: Need::of(f64::from(cpus), 1_000.0),
            ..AgentTotals::default()
        });
    }
    world.request(Request::Agents(totals)).unwrap();
    world
}

/// Returns a gang whose ranks must agree on these attributes.
fn together(name: &str, count: u32, fields: &[&str]) -> Job {
    let constraints = fields.iter().map(|field| Constraint::new(field, "cluster", None).unwrap()).collect();
    Job { constraints, ..gang(name, count, 1.0) }
}

#[test]
fn a_gang_on_one_rack_takes_the_rack_with_room_for_all() {
    let mut world = racks(&[(4, "r1", "z"), (24, "r2", "z")]);
    world.submit(vec![together("large", 25, &["rack"]), together("g", 10, &["rack"])]);
    world.offer();
    assert!(world.show("large").why[0].contains("room for 24 of 25 ranks"), "{:?}", world.show("large").why);
    let ranks = world.of_job("g");
    assert_eq!(ranks.len(), 10, "{:?}", world.show("g").why);
    assert!(ranks.iter().all(|id| world.tasks[id].agent == 1), "the first agent by the policy has too few cores");
}

#[test]
fn a_gang_on_one_rack_and_one_zone_takes_the_pair_with_room_for_all() {
    let mut world = racks(&[(4, "r1", "z1"), (2, "r1", "z2"), (5, "r2", "z1"), (3, "r2", "z2"), (3, "r2", "z2")]);
    world.submit(vec![together("large", 7, &["rack", "zone"]), together("g", 6, &["rack", "zone"])]);
    world.offer();
    assert!(world.show("large").why[0].contains("room for 6 of 7 ranks"), "{:?}", world.show("large").why);
    let ranks = world.of_job("g");
    assert_eq!(ranks.len(), 6, "{:?}", world.show("g").why);
    assert!(ranks.iter().all(|id| world.tasks[id].agent >= 3));
}

#[test]
fn a_gang_in_vain_holds_offers_for_an_ever_smaller_part_of_the_time() {
    let mut world = World::new(Knobs::default(), &["cpus:2;mem:1000"]);
    world.submit(vec![Job { gather: 10 * SECOND, ..gang("g", 3, 1.0) }]);
    let mut rests = Vec::new();
    for _ in 0..5 {
        world.offer();
        assert!(world.show("g").why[0].starts_with("the gang gathers"), "{:?}", world.show("g").why);
        world.pass(10 * SECOND);
        let mut rest = 0;
        while world.show("g").why[0].starts_with("the gang could not form") {
            world.pass(SECOND);
            rest += 1;
        }
        rests.push(rest);
    }
    assert_eq!(rests, [10, 20, 40, 80, 80]);
}

#[test]
fn short_tasks_use_what_a_gang_keeps_in_the_first_half_of_its_time() {
    let mut world = World::new(Knobs::default(), &["cpus:2;mem:1000", "cpus:2;mem:1000"]);
    let short = |name: &str, seconds: u32| Job { time_limit: Some(seconds * SECOND), ..job(name, 0.5) };
    world.submit(vec![Job { gather: 20 * SECOND, ..gang("g", 4, 1.0) }]);
    world.offer_of(&[0]);
    world.submit(vec![short("too_long", 11), job("no_limit", 0.5), short("short", 9)]);
    assert_eq!(world.of_job("short").len(), 1, "it ends within 10 s");
    assert!(world.of_job("too_long").is_empty() && world.of_job("no_limit").is_empty());
    assert_eq!(world.tasks["short.4.0.0"].info.max_completion_time.as_ref().unwrap().nanoseconds, 9_000_000_000);
    let accepts = world.calls.iter().filter_map(|call| call.accept.as_ref());
    let refusals: Vec<f64> = accepts.map(|a| a.filters.as_ref().unwrap().refuse_seconds.unwrap()).collect();
    assert_eq!(refusals, [0.0], "the rest comes back at once");
    world.update("short.4.0.0", TaskState::TaskFinished);
    world.pass(2 * SECOND);
    world.offer();
    assert_eq!(world.of_job("g").len(), 4);
}
