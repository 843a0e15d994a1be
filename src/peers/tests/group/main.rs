//! A group of masters under faults: at most one process answers, and nothing that was acknowledged is lost.
//!
//! `PEERS_SEEDS` runs more random histories, from `PEERS_FIRST` on.

mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use peers::Standing;
use world::{Defect, LEASE, World};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A group with a leader.
fn group(seed: u64, count: usize) -> World {
    let mut world = World::new(seed, count, None);
    world.run(LEASE * 3);
    assert!(world.leader().is_some(), "no leader in a group without faults");
    world
}

fn history(seed: u64, defect: Option<Defect>) {
    let mut world = World::new(seed, if seed.is_multiple_of(3) { 5 } else { 3 }, defect);
    world.run(LEASE * 2);
    world.trouble(Duration::from_secs(20));
    world.settle_down();
}

#[test]
fn random_histories() {
    let first = number("PEERS_FIRST", 1);
    for seed in first..first + number("PEERS_SEEDS", 200) {
        if catch_unwind(AssertUnwindSafe(|| history(seed, None))).is_err() {
            panic!("seed {seed}");
        }
    }
}

/// Each rule is needed: without it, some history breaks.
#[test]
fn defects_are_found() {
    for defect in [Defect::SendFirst, Defect::IgnoreLease, Defect::ForgetPromises, Defect::AnswerFirst] {
        let found = (1..400).any(|seed| catch_unwind(AssertUnwindSafe(|| history(seed, Some(defect)))).is_err());
        assert!(found, "{defect:?} is not found");
    }
}

#[test]
fn a_leader_that_dies_is_replaced() {
    for seed in 0..50 {
        let mut world = group(seed, 3);
        let leader = world.leader().unwrap();
        let key = world.write().unwrap();
        world.run(LEASE / 2);
        assert!(world.acknowledged.contains(&key));
        world.crash(leader);
        let died = world.now;
        while world.leader().is_none() {
            world.run(Duration::from_millis(10));
            assert!(world.now.since(died) < LEASE * 3, "seed {seed}: no leader for {:?}", world.now.since(died));
        }
        world.settle_down();
    }
}

#[test]
fn a_leader_hands_over_without_a_pause() {
    for seed in 0..50 {
        let mut world = group(seed, 3);
        let leader = world.leader().unwrap();
        assert_eq!(world.change(|peer, now| peer.hand_over(None, now)), "");
        let asked = world.now;
        while world.leader().is_none_or(|next| next == leader) {
            world.run(Duration::from_millis(5));
            assert!(world.now.since(asked) < LEASE, "seed {seed}");
        }
    }
}

#[test]
fn members_come_and_go() {
    let mut world = group(7, 3);
    let key = world.write().unwrap();
    assert_eq!(
        world.change(|peer, now| peer.add("m3:5050", now)),
        "no master at m3:5050 asks to join: start it with --peers=m0:5050,m1:5050,m2:5050 and an empty work directory"
    );
    world.add("m3:5050");
    world.run(LEASE);
    assert_eq!(world.standing(3), Some(Standing::Stranger { members: "m0:5050,m1:5050,m2:5050".to_owned() }));
    assert_eq!(world.change(|peer, now| peer.add("m3:5050", now)), "");
    world.run(LEASE);
    assert_eq!(world.standing(3), Some(Standing::Member));
    let leader = world.leader().unwrap();
    let leaving = (0..3).find(|index| *index != leader).unwrap();
    let address = format!("m{leaving}:5050");
    assert_eq!(world.change(|peer, now| peer.remove(&address, now)), "");
    world.run(LEASE);
    assert!(matches!(world.standing(leaving), Some(Standing::Removed { .. })), "{:?}", world.standing(leaving));
    assert_eq!(world.leader(), Some(leader), "a change of the members replaces no leader");
    assert_eq!(world.members(3).len(), 3);
    assert!(world.acknowledged.contains(&key));
    world.settle_down();
}

#[test]
fn a_member_with_an_empty_disk_is_none() {
    let mut world = group(8, 3);
    let leader = world.leader().unwrap();
    let other = (leader + 1) % 3;
    world.erase(other);
    world.restart(other);
    world.run(LEASE * 2);
    assert_eq!(world.standing(other), Some(Standing::Stranger { members: "m0:5050,m1:5050,m2:5050".to_owned() }));
    assert_eq!(world.leader(), Some(leader));
    // With one more failure there is no majority, and none is made of a disk that has forgotten what it had.
    let third = (0..3).find(|index| *index != leader && *index != other).unwrap();
    world.crash(third);
    world.run(LEASE * 5);
    assert_eq!(world.leader(), None);
}

#[test]
fn a_paused_leader_does_not_answer() {
    let mut world = group(9, 3);
    let leader = world.leader().unwrap();
    world.pause(leader, LEASE * 4);
    world.run(LEASE * 3);
    assert!(world.leader().is_some_and(|next| next != leader));
    world.run(LEASE * 2);
    world.ask_all();
    world.settle_down();
}

/// In each direction, and between all pairs.
#[test]
fn partitions_leave_a_leader_that_reaches_a_majority() {
    for cut in 0..6 {
        let mut world = group(20 + cut, 3);
        let (from, to) = ((cut / 2) as usize, ((cut / 2 + 1 + cut % 2) % 3) as usize);
        world.cut(from, to);
        world.run(LEASE * 8);
        assert!(world.leader().is_some(), "{from} does not reach {to}, and there is no leader");
        world.settle_down();
    }
    let mut world = group(30, 5);
    let leader = world.leader().unwrap();
    for other in (0..5).filter(|other| *other != leader) {
        world.cut(leader, other);
        world.cut(other, leader);
    }
    world.run(LEASE * 5);
    assert!(world.leader().is_some_and(|next| next != leader));
    world.settle_down();
}

#[test]
fn a_registry_is_brought_into_a_new_group() {
    for seed in 0..20 {
        let mut world = World::new(seed, 3, None);
        world.bring((seed % 3) as usize, "old");
        world.run(LEASE * 3);
        assert!(world.leader().is_some());
        (0..3).for_each(|index| assert_eq!(world.keys(index), ["old"]));
        world.settle_down();
    }
    // Two registries are one too many.
    let mut world = World::new(1, 3, None);
    world.bring(0, "old");
    world.bring(1, "older");
    world.run(LEASE * 3);
    assert_eq!(world.leader(), None);
    assert_eq!(world.standing(0), Some(Standing::Forming { missing: Vec::new() }));
}

/// A process that knows no secret of the group, not even which one it is.
#[test]
fn a_process_outside_learns_addresses_only_and_changes_nothing() {
    let mut world = group(11, 3);
    let leader = world.leader().unwrap();
    let key = world.write().unwrap();
    world.add("m3:5050");
    world.run(LEASE * 2);
    let heard = world.heard_outside(3);
    assert!(!heard.is_empty());
    for message in heard {
        assert!(message.len() < 120, "an address list is short: {}", message.len());
    }
    assert_eq!((world.leader(), world.standing(leader)), (Some(leader), Some(Standing::Member)));
    assert!(world.acknowledged.contains(&key));
}

/// The process that hands over ends, as a daemon does. Then each of the two others is needed, and each message.
#[test]
fn the_named_member_leads_next() {
    for seed in 0..300 {
        let mut world = group(seed, 3);
        let leader = world.leader().unwrap();
        let chosen = (leader + 1 + (seed % 2) as usize) % 3;
        let address = format!("m{chosen}:5050");
        assert_eq!(world.change(|peer, now| peer.hand_over(Some(&address), now)), "");
        world.crash(leader);
        let asked = world.now;
        while world.leader().is_none() {
            world.run(Duration::from_millis(1));
            assert!(world.now.since(asked) < LEASE, "seed {seed}: no leader for {:?}", world.now.since(asked));
        }
        assert_eq!(world.leader(), Some(chosen), "seed {seed}");
    }
}
