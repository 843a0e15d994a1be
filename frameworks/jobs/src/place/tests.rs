//! Tests properties of the policies.
//!
//! Invariants, for random queues and rooms and every policy:
//! 1. no room is overfilled, in any kind;
//! 2. every task has a result, and one that was not placed fits into no room in the end;
//! 3. the result is that of the naive reference;
//! 4. all-or-none places all tasks, or leaves every room as it was.

use proptest::prelude::*;

use super::{Anywhere, Placer, Policy, naive, place, place_all};
use crate::Need;
use crate::need::KINDS;

fn needs(count: std::ops::Range<usize>, most: i64) -> impl Strategy<Value = Vec<Need>> {
    let one = (1..=most, 0..=most, 0..3i64, 0..2i64, 0..3i64);
    prop::collection::vec(
        one.prop_map(|(a, b, c, d, e)| Need([a * 100, b * 1_000, c * 50, d * 1_000, e * 1_000])),
        count,
    )
}

fn policy() -> impl Strategy<Value = Policy> {
    prop::sample::select(Policy::ALL.to_vec())
}

/// Returns the free amounts of the rooms after this placement.
fn left(queue: &[Need], rooms: &[Need], places: &[Option<usize>]) -> Vec<Need> {
    let mut left = rooms.to_vec();
    for (need, room) in queue.iter().zip(places) {
        if let Some(room) = room {
            left[*room] = left[*room].minus(need);
        }
    }
    left
}

proptest! {
    #[test]
    fn nothing_is_overfilled_and_nothing_lost(
        policy in policy(), queue in needs(0..80, 10), rooms in needs(0..40, 40),
    ) {
        let places = place(policy, &queue, &rooms);
        prop_assert_eq!(places.len(), queue.len());
        let left = left(&queue, &rooms, &places);
        for room in &left {
            prop_assert!((0..KINDS).all(|k| room.0[k] >= 0), "{:?}", room);
        }
        for (need, _) in queue.iter().zip(&places).filter(|(_, place)| place.is_none()) {
            prop_assert!(!left.iter().any(|room| need.fits(room)), "{} would have fitted", need);
        }
    }

    #[test]
    fn the_same_as_the_naive_reference(
        policy in policy(), queue in needs(0..60, 10), rooms in needs(0..150, 40),
    ) {
        let (fast, slow) = (place(policy, &queue, &rooms), naive::place(policy, &queue, &rooms));
        if fast == slow {
            return Ok(());
        }
        // Scores that differ by rounding only may be ordered either way: the first difference must be such a tie.
        let placer = Placer::new(policy, &rooms);
        let order = placer.order(&queue);
        let task = order.iter().copied().find(|&task| fast[task] != slow[task]).unwrap();
        let mut same = vec![None; queue.len()];
        for &before in order.iter().take_while(|&&before| before != task) {
            same[before] = fast[before];
        }
        let left = left(&queue, &rooms, &same);
        let (Some(a), Some(b)) = (fast[task], slow[task]) else { panic!("{fast:?}\n{slow:?}") };
        let need = &queue[task];
        let score = |room: usize| match policy {
            Policy::DotProduct | Policy::LeastResidual => placer.score(need, &left[room]),
            Policy::BestFit | Policy::WorstFit => placer.size(&left[room]),
            Policy::FirstFit | Policy::FirstFitDecreasing => room as f64,
        };
        prop_assert!((score(a) - score(b)).abs() < 1e-9, "{policy}: {} and {}", score(a), score(b));
    }

    #[test]
    fn all_or_none(policy in policy(), tasks in needs(0..20, 10), rooms in needs(0..10, 40)) {
        let mut placer = Placer::new(policy, &rooms);
        match placer.put_all(&tasks, &mut Anywhere) {
            Some(places) => {
                prop_assert_eq!(places.len(), tasks.len());
                let places: Vec<_> = places.into_iter().map(Some).collect();
                let left = left(&tasks, &rooms, &places);
                prop_assert_eq!(placer.free(), &left[..]);
                prop_assert!(left.iter().all(|room| room.0.iter().all(|amount| *amount >= 0)));
            }
            None => {
                prop_assert_eq!(placer.free(), &rooms[..]);
                // Released amounts can be used again: the first task fits where it fitted at first.
                if let Some(first) = tasks.first() {
                    let again = placer.choose(first, &Anywhere);
                    prop_assert_eq!(again.is_some(), rooms.iter().any(|room| first.fits(room)));
                }
            }
        }
    }
}

#[test]
fn each_policy_has_its_own_place() {
    let rooms = [Need::of(4.0, 4_000.0), Need::of(2.0, 8_000.0), Need::of(1.0, 1_000.0), Need::of(8.0, 2_000.0)];
    let of = |policy, cpus, mem| place(policy, &[Need::of(cpus, mem)], &rooms)[0];
    assert_eq!(of(Policy::FirstFit, 1.0, 1_000.0), Some(0));
    assert_eq!(of(Policy::BestFit, 1.0, 1_000.0), Some(2));
    assert_eq!(of(Policy::WorstFit, 1.0, 1_000.0), Some(1), "the first of two that have equally much");
    assert_eq!(of(Policy::DotProduct, 2.0, 1_000.0), Some(3), "much processor goes where much processor is");
    assert_eq!(of(Policy::DotProduct, 0.5, 2_000.0), Some(1), "much memory goes where much memory is");
    assert_eq!(of(Policy::LeastResidual, 1.0, 1_000.0), Some(2));
    assert_eq!(of(Policy::BestFit, 16.0, 1.0), None);
}

#[test]
fn decreasing_packs_what_first_fit_does_not() {
    let rooms = [Need::of(1.0, 0.0), Need::of(1.0, 0.0)];
    let queue = [0.4, 0.4, 0.6, 0.6].map(|cpus| Need::of(cpus, 0.0));
    assert_eq!(place(Policy::FirstFit, &queue, &rooms), [Some(0), Some(0), Some(1), None]);
    assert_eq!(place(Policy::FirstFitDecreasing, &queue, &rooms), [Some(0), Some(1), Some(0), Some(1)]);
    assert_eq!(place_all(Policy::FirstFit, &queue, &rooms), None);
    assert_eq!(place_all(Policy::FirstFitDecreasing, &queue, &rooms), Some(vec![0, 1, 0, 1]));
}
