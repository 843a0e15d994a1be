//! Invariants of every policy, over random jobs:
//! - all together get no more than there is, and no job more than its ceiling;
//! - with enough cores every job has its floor; with fewer no job waits for ever;
//! - no core is left over while a job could use one;
//! - with enough cores for that, one more takes none away from anybody under SLAQ.

use proptest::prelude::*;

use super::*;
use crate::predict::{Curve, Forecaster, TimeModel};

fn bid(outlook: Outlook) -> Bid {
    Bid {
        priority: 1.0,
        floor: 1,
        ceiling: 100,
        held: 0,
        outlook,
        reached: false,
        waited: 0,
        served: 0,
        received: 0.0,
        remaining: None,
    }
}

fn new() -> Outlook {
    Outlook::New { time: TimeModel::default() }
}

fn clear(height: f64, rate: f64, work: f64) -> Outlook {
    let mut time = TimeModel::default();
    time.learn(work, 1, work);
    Outlook::Clear { curve: Curve::Exponential { height, rate, end: 0.0 }, scale: 1.0, time }
}

fn bids() -> impl Strategy<Value = Vec<Bid>> {
    let outlook = prop_oneof![
        (0.01..10.0_f64).prop_map(|work| Outlook::New { time: TimeModel::known(work, 0.0) }),
        Just(Outlook::Unclear),
        (0.0..1.0_f64, 0.5..0.999_f64, 0.01..10.0_f64).prop_map(|(h, r, w)| clear(h, r, w)),
    ];
    let one = (outlook, 0.1..4.0_f64, 0..3_u32, 0..20_u32, any::<bool>(), 0..10_u32, 0.0..100.0_f64).prop_map(
        |(outlook, priority, floor, more, reached, waited, received)| Bid {
            priority,
            floor,
            ceiling: floor + more,
            reached,
            waited,
            received,
            remaining: (received > 50.0).then_some(received),
            ..bid(outlook)
        },
    );
    proptest::collection::vec(one, 0..20)
}

proptest! {
    #[test]
    fn every_policy_keeps_the_invariants(bids in bids(), cores in 0..200_u32) {
        for policy in [Policy::Slaq, Policy::Fair, Policy::Fifo, Policy::Shortest] {
            let given = decide(policy, &bids, cores, 3.0);
            prop_assert_eq!(given.len(), bids.len());
            let sum: u32 = given.iter().sum();
            let usable: u32 = bids.iter().map(|b| b.ceiling).sum();
            prop_assert_eq!(sum, cores.min(usable), "{:?}: all cores that can be used", policy);
            let times = if policy == Policy::Slaq { 2 } else { 1 };
            let enough = times * bids.iter().map(|b| b.floor).sum::<u32>() <= cores;
            for (job, bid) in bids.iter().enumerate() {
                prop_assert!(given[job] <= bid.ceiling, "{:?}: ceiling of {}", policy, job);
                prop_assert!(!enough || given[job] >= bid.floor, "{:?}: floor of {}", policy, job);
            }
        }
    }

    #[test]
    fn one_more_core_takes_none_away(
        jobs in proptest::collection::vec((0.01..1.0_f64, 0.5..0.999_f64, 0.01..10.0_f64), 1..12),
        cores in 24..100_u32,
    ) {
        let bids: Vec<Bid> = jobs.into_iter().map(|(h, r, w)| bid(clear(h, r, w))).collect();
        let (less, more) = (decide(Policy::Slaq, &bids, cores, 3.0), decide(Policy::Slaq, &bids, cores + 1, 3.0));
        prop_assert!(less.iter().zip(&more).all(|(a, b)| a <= b), "{:?} and {:?}", less, more);
    }
}

#[test]
fn cores_go_where_they_bring_most() {
    let steep = bid(clear(0.8, 0.9, 1.0));
    let flat = bid(clear(0.01, 0.9, 1.0));
    let given = decide(Policy::Slaq, &[flat, steep], 10, 3.0);
    assert_eq!(given, [1, 9]);
    assert_eq!(decide(Policy::Fair, &[flat, steep], 10, 3.0), [5, 5]);
    let important = Bid { priority: 1000.0, ..flat };
    assert!(decide(Policy::Slaq, &[important, steep], 10, 3.0)[0] > 5);
    let reached = Bid { reached: true, ..steep };
    assert_eq!(decide(Policy::Slaq, &[flat, reached], 10, 3.0), [9, 1]);
}

#[test]
fn greedy_is_as_good_as_trying_everything() {
    let bids = [bid(clear(0.8, 0.95, 2.0)), bid(clear(0.5, 0.7, 1.0)), bid(clear(0.3, 0.99, 0.1))];
    let gain = |given: &[u32]| bids.iter().zip(given).map(|(b, g)| b.outlook.gain(3.0, *g)).sum::<f64>();
    let best = (1..=10)
        .flat_map(|a| (1..=11 - a).map(move |b| [a, b, 12 - a - b]))
        .map(|given| gain(&given))
        .fold(0.0, f64::max);
    assert!((gain(&decide(Policy::Slaq, &bids, 12, 3.0)) - best).abs() < 1e-12);
}

#[test]
fn a_new_job_and_an_unclear_one_get_their_share() {
    let settled = bid(clear(0.01, 0.99, 1.0));
    let given = decide(Policy::Slaq, &[settled, bid(new()), bid(Outlook::Unclear)], 12, 3.0);
    assert_eq!(given[2], 4, "{given:?}");
    assert!(given[1] > 4 && given[0] >= 1, "{given:?}");
    assert_eq!(Forecaster::new(None).outlook(), new());
}

#[test]
fn with_few_cores_nobody_waits_for_ever() {
    let mut bids: Vec<Bid> = (0..10).map(|job| bid(clear(0.1_f64.powi(job), 0.9, 1.0))).collect();
    let mut longest = 0;
    for _ in 0..100 {
        let given = decide(Policy::Slaq, &bids, 4, 3.0);
        assert_eq!(given.iter().sum::<u32>(), 4);
        for (bid, given) in bids.iter_mut().zip(given) {
            bid.waited = if given == 0 { bid.waited + 1 } else { 0 };
            bid.served = if given == 0 { 0 } else { bid.served + 1 };
            bid.held = given;
            longest = longest.max(bid.waited);
        }
    }
    // Ten jobs that become impatient together need three turns of four cores.
    assert!(longest <= PATIENCE + 3 * TURN, "{longest}");
    let least = Bid { received: 0.0, ..bids[0] };
    let most = Bid { received: 9.0, ..bids[0] };
    assert_eq!(decide(Policy::Fair, &[most, least, least], 2, 3.0), [0, 1, 1]);
}

#[test]
fn fifo_and_shortest_go_by_their_order() {
    let long = Bid { ceiling: 6, remaining: Some(100.0), ..bid(new()) };
    let short = Bid { ceiling: 6, remaining: Some(10.0), ..bid(new()) };
    assert_eq!(decide(Policy::Fifo, &[long, short], 8, 3.0), [6, 2]);
    assert_eq!(decide(Policy::Shortest, &[long, short], 8, 3.0), [2, 6]);
    assert_eq!("shortest".parse(), Ok(Policy::Shortest));
    assert!("Slaq".parse::<Policy>().unwrap_err().contains("slaq, fair, fifo or shortest"));
}
