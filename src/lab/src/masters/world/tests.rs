//! Tests of groups of masters with scripted histories: which master leads, the members, and what a master outside
//! learns.
//!
//! Random histories and deliberate defects are in `masters/tests.rs`.

use peers::ChangeError;

use super::*;
use crate::masters::run::restore;

/// Returns a group whose processes have not started yet.
fn prepared(seed: u64, founders: usize, spares: usize) -> World {
    let setup = Setup {
        founders,
        spares,
        clients: 0,
        latency: Dist::Exponential(Duration::from_millis(3)),
        write: Dist::Exponential(Duration::from_millis(1)),
        compact_after: 4096,
        ends_when_deposed: false,
        defect: None,
    };
    World::new(setup, Seed::root(seed).child("groups"), false)
}

/// Returns a group that has a leader, and the leader.
fn group(seed: u64, founders: usize, spares: usize) -> (World, usize) {
    let mut world = prepared(seed, founders, spares);
    world.run(LEASE * 3);
    let leader = world.leader().unwrap_or_else(|| panic!("seed {seed}: no leader in a group without faults"));
    (world, leader)
}

/// Ends all faults, and checks that the group recovers in time and that no rule was broken.
fn settle(mut world: World, what: &str) {
    restore(&mut world);
    assert!(world.broken().is_none(), "{what}: {:?}", world.broken());
}

/// Checks a condition every `step` until it holds, which must be within `limit`.
fn until(world: &mut World, step: Duration, limit: Duration, what: &str, is_so: impl Fn(&mut World) -> bool) {
    let began = world.now();
    while !is_so(world) {
        world.run(step);
        assert!(world.now().since(began) < limit, "{what}: not within {limit:?}");
    }
}

fn keys(world: &World, at: usize) -> Vec<String> {
    let state = world.peer(at).and_then(Peer::state);
    state.map(|state| state.entries.keys().cloned().collect()).unwrap_or_default()
}

fn members(world: &World, at: usize) -> usize {
    world.peer(at).and_then(Peer::members).map_or(0, |(configuration, _)| configuration.members.len())
}

fn stranger() -> Option<MembershipState> {
    Some(MembershipState::Stranger { members: "m0:5050,m1:5050,m2:5050".to_owned() })
}

#[test]
fn a_leader_that_dies_is_replaced() {
    for seed in 0..50 {
        let (mut world, leader) = group(seed, 3, 0);
        let write = world.write("k0").unwrap();
        world.run(LEASE / 2);
        assert!(world.is_acknowledged(write));
        world.crash(leader, 0, None);
        until(&mut world, Duration::from_millis(10), LEASE * 3, &format!("seed {seed}: a leader"), |world| {
            world.leader().is_some()
        });
        settle(world, &format!("seed {seed}"));
    }
}

/// A message that names the successor is ignored if it arrives after later ones; then a leader is elected as if the
/// former one had died.
#[test]
fn a_leader_hands_over_without_a_pause() {
    let mut at_once = 0;
    for seed in 0..50 {
        let (mut world, leader) = group(seed, 3, 0);
        world.operate(&[OperatorAction::HandOver(None)]);
        let asked = world.now();
        let step = Duration::from_millis(5);
        until(&mut world, step, LEASE, &format!("seed {seed}: it hands over"), |world| !world.answers(leader));
        until(&mut world, step, LEASE * 3, &format!("seed {seed}: a leader"), |world| world.leader().is_some());
        at_once += u32::from(world.leader() != Some(leader) && world.now().since(asked) < LEASE / 2);
    }
    assert!(at_once >= 45, "{at_once}");
}

/// The process that hands over ends. Then both other members and every message are needed.
#[test]
fn the_named_member_leads_next() {
    for seed in 0..300 {
        let (mut world, leader) = group(seed, 3, 0);
        let chosen = (leader + 1 + (seed % 2) as usize) % 3;
        world.operate(&[OperatorAction::HandOver(Some(chosen))]);
        let step = Duration::from_micros(100);
        until(&mut world, step, LEASE, &format!("seed {seed}: it hands over"), |world| !world.answers(leader));
        world.crash(leader, 0, None);
        let step = Duration::from_millis(1);
        until(&mut world, step, LEASE, &format!("seed {seed}: a leader"), |world| world.leader().is_some());
        assert_eq!(world.leader(), Some(chosen), "seed {seed}");
    }
}

#[test]
fn members_come_and_go() {
    let (mut world, leader) = group(7, 3, 1);
    let write = world.write("k0").unwrap();
    let now = world.hosts[leader].shown(world.now());
    let peer = &mut world.hosts[leader].process.as_mut().unwrap().peer;
    let silent = peer.add("m3:5050", now).unwrap_err();
    assert_eq!(silent, ChangeError::Silent("m3:5050".to_owned(), "m0:5050,m1:5050,m2:5050".to_owned()));
    assert_eq!(
        silent.to_string(),
        "no master at m3:5050 asks to join: start it with --peers=m0:5050,m1:5050,m2:5050 and an empty work directory"
    );
    world.restart(3);
    world.run(LEASE);
    assert_eq!(world.membership_state(3), stranger());
    world.operate(&[OperatorAction::Add(3)]);
    world.run(LEASE * 2);
    assert_eq!((world.membership_state(3), world.operators_rest()), (Some(MembershipState::Member), true));

    let leaving = (leader + 1) % 3;
    world.operate(&[OperatorAction::Remove(leaving)]);
    world.run(LEASE * 2);
    assert!(world.operators_rest() && world.hosts[leaving].removed, "it knows that it was removed");
    assert_eq!(world.leader(), Some(leader), "a change of the members replaces no leader");
    assert_eq!(members(&world, 3), 3);
    assert!(world.is_acknowledged(write));
    settle(world, "afterwards");
}

#[test]
fn a_member_with_an_empty_disk_is_none() {
    let (mut world, leader) = group(8, 3, 0);
    let (other, third) = ((leader + 1) % 3, (leader + 2) % 3);
    world.replace_disk(other, Duration::ZERO);
    world.run(LEASE * 2);
    assert_eq!(world.membership_state(other), stranger());
    assert_eq!(world.leader(), Some(leader));
    // With one more failure there is no majority, and a disk that has lost its content does not count towards one.
    world.crash(third, 0, None);
    world.run(LEASE * 5);
    assert_eq!(world.leader(), None);
}

#[test]
fn a_paused_leader_does_not_answer() {
    let (mut world, leader) = group(9, 3, 0);
    world.stop(leader, LEASE * 4);
    world.run(LEASE * 3);
    assert!(world.leader().is_some_and(|next| next != leader));
    world.run(LEASE * 2);
    assert!(!world.answers(leader));
    settle(world, "afterwards");
}

/// Partitions in each direction, and between all pairs.
#[test]
fn partitions_leave_a_leader_that_reaches_a_majority() {
    for cut in 0..6 {
        let (mut world, _) = group(20 + cut, 3, 0);
        let (from, to) = ((cut / 2) as usize, ((cut / 2 + 1 + cut % 2) % 3) as usize);
        world.partition(from, to, LEASE * 60, false);
        world.run(LEASE * 8);
        assert!(world.leader().is_some(), "{from} does not reach {to}, and there is no leader");
        settle(world, &format!("{from} did not reach {to}"));
    }
    let (mut world, leader) = group(30, 5, 0);
    for other in (0..5).filter(|other| *other != leader) {
        world.partition(leader, other, LEASE * 60, false);
        world.partition(other, leader, LEASE * 60, false);
    }
    world.run(LEASE * 5);
    assert!(world.leader().is_some_and(|next| next != leader));
    settle(world, "one of five was alone");
}

#[test]
fn a_registry_is_brought_into_a_new_group() {
    let registry = |key: &str| Some(BTreeMap::from([(key.to_owned(), vec![1])]));
    for seed in 0..20 {
        let mut world = prepared(seed, 3, 0);
        world.hosts[(seed % 3) as usize].registry = registry("old");
        world.run(LEASE * 3);
        assert!(world.leader().is_some(), "seed {seed}");
        (0..3).for_each(|at| assert_eq!(keys(&world, at), ["old"], "seed {seed}"));
        settle(world, &format!("seed {seed}"));
    }
    // A group must not start from two different registries.
    let mut world = prepared(1, 3, 0);
    world.log = Log::new(true);
    (world.hosts[0].registry, world.hosts[1].registry) = (registry("old"), registry("older"));
    world.run(LEASE * 3);
    assert_eq!(world.leader(), None);
    assert_eq!(world.membership_state(0), Some(MembershipState::Forming { missing: Vec::new() }));
    let log = world.into_log();
    let said =
        "m0:5050 and m1:5050 have a registry each: keep one, and move the file 'registry.redb' of the others away";
    assert!(log.iter().any(|line| line.contains(said)), "{log:?}");
}

/// The clocks of daemons never jump. The test stands for a machine that slept while its clock went on.
#[test]
fn a_leader_whose_clock_jumps_does_not_answer_before_it_has_confirmed_its_lease() {
    let (mut world, leader) = group(10, 3, 0);
    let write = world.write("k0").unwrap();
    world.run(LEASE / 2);
    world.hosts[leader].clock.as_mut().unwrap().ahead(LEASE * 10);
    assert!(!world.answers(leader));
    until(&mut world, Duration::from_millis(10), LEASE * 3, "a leader", |world| world.leader().is_some());
    assert!(world.is_acknowledged(write));
    settle(world, "afterwards");
}

/// The process outside does not know the group's secret, nor its own identity.
#[test]
fn a_process_outside_learns_addresses_only_and_changes_nothing() {
    let (mut world, leader) = group(11, 3, 1);
    let write = world.write("k0").unwrap();
    world.restart(3);
    world.run(LEASE * 2);
    let received_by_spares = world.received_by_spares.get(&3).cloned().unwrap_or_default();
    assert!(!received_by_spares.is_empty());
    for message in received_by_spares {
        assert!(message.len() < 120, "an address list is short: {}", message.len());
    }
    assert_eq!((world.leader(), world.membership_state(leader)), (Some(leader), Some(MembershipState::Member)));
    assert!(world.is_acknowledged(write));
}
