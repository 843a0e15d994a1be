//! Tests the invariants of every policy, over random jobs:
//! - all jobs together get no more cores than there are, and no job more than its ceiling;
//! - if there are enough cores, every job has one, and its floor, except under the fair policy; otherwise no job
//!   starves;
//! - no core is left over while a job could use one;
//! - if there are enough cores, an additional core takes none away from a job under SLAQ.

use proptest::prelude::*;

use super::*;
use crate::predict::{Curve, Forecaster, TimeModel};

fn bid(forecast: Forecast) -> Bid {
    Bid {
        priority: 1.0,
        floor: 1,
        ceiling: 100,
        held: 0,
        forecast,
        reached: false,
        waited: 0,
        served: 0,
        done: 0,
        received: 0.0,
        remaining: None,
    }
}

/// Returns the policy halfway between quality and completion.
fn halfway() -> Policy {
    Policy::Towards(Objective::new(0.5).unwrap())
}

fn new() -> Forecast {
    Forecast::TooEarly { time: TimeModel::default() }
}

fn clear(height: f64, rate: f64, work: f64) -> Forecast {
    let mut time = TimeModel::default();
    time.learn(work, 1, work);
    Forecast::Fitted { curve: Curve::Exponential { height, rate, end: 0.0 }, scale: 1.0, time }
}

fn bids() -> impl Strategy<Value = Vec<Bid>> {
    let forecast = prop_oneof![
        (0.01..10.0_f64).prop_map(|work| Forecast::TooEarly { time: TimeModel::known(work, 0.0) }),
        Just(Forecast::NoCurve),
        (0.0..1.0_f64, 0.5..0.999_f64, 0.01..10.0_f64).prop_map(|(h, r, w)| clear(h, r, w)),
    ];
    let one = (forecast, 0.1..4.0_f64, 0..3_u32, 0..20_u32, any::<bool>(), 0..10_u32, 0.0..100.0_f64).prop_map(
        |(forecast, priority, floor, more, reached, waited, received)| Bid {
            priority,
            floor,
            ceiling: floor + more,
            reached,
            waited,
            received,
            remaining: (received > 50.0).then_some(received),
            ..bid(forecast)
        },
    );
    proptest::collection::vec(one, 0..20)
}

proptest! {
    #[test]
    fn every_policy_keeps_the_invariants(bids in bids(), cores in 0..200_u32) {
        for policy in [Policy::Slaq, halfway(), Policy::Fair, Policy::Fifo, Policy::Shortest] {
            let given = decide(policy, &bids, cores, 3.0);
            prop_assert_eq!(given.len(), bids.len());
            let sum: u32 = given.iter().sum();
            let usable: u32 = bids.iter().map(|b| b.ceiling).sum();
            prop_assert_eq!(sum, cores.min(usable), "{:?}: all cores that can be used", policy);
            let enough = bids.iter().map(|b| b.floor).sum::<u32>() <= cores;
            let one_each = bids.iter().filter(|b| b.floor > 0).count() <= cores as usize;
            for (job, bid) in bids.iter().enumerate() {
                prop_assert!(given[job] <= bid.ceiling, "{:?}: ceiling of {}", policy, job);
                prop_assert!(!one_each || given[job] >= bid.floor.min(1), "{:?}: a core for {}", policy, job);
                let floored = given[job] >= bid.floor || policy == Policy::Fair;
                prop_assert!(!enough || floored, "{:?}: floor of {}", policy, job);
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
    let gain = |given: &[u32]| bids.iter().zip(given).map(|(b, g)| b.forecast.gain(3.0, *g)).sum::<f64>();
    let best = (1..=10)
        .flat_map(|a| (1..=11 - a).map(move |b| [a, b, 12 - a - b]))
        .map(|given| gain(&given))
        .fold(0.0, f64::max);
    assert!((gain(&decide(Policy::Slaq, &bids, 12, 3.0)) - best).abs() < 1e-12);
}

#[test]
fn a_new_job_and_an_unclear_one_get_their_share() {
    let settled = bid(clear(0.01, 0.99, 1.0));
    let given = decide(Policy::Slaq, &[settled, bid(new()), bid(Forecast::NoCurve)], 12, 3.0);
    assert_eq!(given[2], 4, "{given:?}");
    assert!(given[1] > 4 && given[0] >= 1, "{given:?}");
    assert_eq!(Forecaster::new(None).forecast(), new());
}

/// A model of cores with a delayed hand-over: each core works for one job, and moves to another some epochs after the
/// decision.
struct Cores {
    /// Job of each core and, for a core that is to leave the job, the number of epochs for which it still stays.
    owners: Vec<(usize, Option<u32>)>,
    hand_over: u32,
}

impl Cores {
    fn staying(&self, job: usize) -> u32 {
        self.owners.iter().filter(|o| **o == (job, None)).count() as u32
    }

    /// Runs one epoch with these shares. A job with too many cores releases some, and one with too few keeps some of
    /// those that it was to release. Released cores go to jobs that lack them, longest waiting first.
    fn epoch(&mut self, bids: &mut [Bid], given: &[u32]) {
        for (job, share) in given.iter().enumerate() {
            while self.staying(job) > *share {
                let one = self.owners.iter().position(|o| *o == (job, None)).unwrap();
                self.owners[one].1 = Some(self.hand_over);
            }
            while self.staying(job) < *share
                && let Some(one) = self.owners.iter().position(|o| o.0 == job && o.1.is_some())
            {
                self.owners[one].1 = None;
            }
        }
        for core in 0..self.owners.len() {
            match self.owners[core].1 {
                None => {}
                Some(0) => {
                    let lacking = (0..bids.len()).filter(|j| self.staying(*j) < given[*j]);
                    let waited = |job: &usize| if bids[*job].has_waited_too_long() { bids[*job].waited } else { 0 };
                    if let Some(next) = lacking.max_by_key(waited) {
                        self.owners[core] = (next, None);
                    }
                }
                Some(more) => self.owners[core].1 = Some(more - 1),
            }
        }
        for (job, bid) in bids.iter_mut().enumerate() {
            bid.held = self.staying(job);
            if self.owners.iter().any(|o| o.0 == job) {
                (bid.waited, bid.served, bid.done) = (0, bid.served + 1, bid.done + 1);
            } else {
                (bid.waited, bid.served, bid.done) = (bid.waited + 1, 0, 0);
            }
        }
    }
}

#[test]
fn with_few_cores_no_job_waits_for_ever_however_long_a_hand_over_takes() {
    for policy in [Policy::Slaq, halfway(), Policy::Fifo, Policy::Shortest] {
        for hand_over in 0..=5 {
            // Each job gains a tenth of the one before.
            let jobs = 0..10_u32;
            let bid = |job| Bid { remaining: Some(f64::from(job)), ..bid(clear(0.1_f64.powi(job as i32), 0.9, 1.0)) };
            let mut bids: Vec<Bid> = jobs.map(bid).collect();
            let mut cores = Cores { owners: vec![(0, None); 4], hand_over };
            let mut longest = 0;
            for _ in 0..400 {
                let given = decide(policy, &bids, 4, 3.0);
                assert_eq!(given.iter().sum::<u32>(), 4);
                cores.epoch(&mut bids, &given);
                longest = bids.iter().map(|b| b.waited).fold(longest, u32::max);
            }
            // Nine jobs that become impatient together share four cores; each turn takes the time of a hand-over more.
            let most = MAX_EPOCHS_WAITING + 3 * (MIN_EPOCHS_SERVED + hand_over + 1);
            assert!(longest <= most, "{policy:?}, hand-over {hand_over}: {longest}");
        }
    }
    let one = bid(new());
    let (least, most) = (Bid { received: 0.0, ..one }, Bid { received: 9.0, ..one });
    assert_eq!(decide(Policy::Fair, &[most, least, least], 2, 3.0), [0, 1, 1]);
}

#[test]
fn a_job_keeps_its_core_until_its_iteration_ends() {
    // There are two cores for three jobs. The last job gains nothing, and has had its first core for one epoch.
    let gains = Bid { held: 1, served: 9, done: 9, ..bid(clear(0.5, 0.9, 1.0)) };
    let began = |served, done| Bid { held: 1, served, done, ..bid(clear(1e-9, 0.9, 1.0)) };
    let last = |bid: Bid| decide(Policy::Slaq, &[gains, gains, bid], 2, 3.0)[2];
    assert_eq!(
        (last(began(0, 0)), last(began(1, 0)), last(began(1, 1)), last(began(MAX_EPOCHS_WAITING, 0))),
        (1, 1, 0, 0)
    );
    // A core that is promised and has not arrived yet keeps the promise over the next decision.
    let promised = Bid { held: 0, waited: MAX_EPOCHS_WAITING, ..began(0, 0) };
    assert_eq!(last(promised), 1);
    assert_eq!(last(Bid { waited: MAX_EPOCHS_WAITING - 1, ..promised }), 0);
}

#[test]
fn a_deadline_does_not_take_the_first_core_of_others_and_does_not_count_under_fair() {
    let urgent = Bid { floor: 7, ..bid(clear(1e-6, 0.9, 1.0)) };
    let other = bid(clear(0.5, 0.9, 1.0));
    assert_eq!(decide(Policy::Slaq, &[urgent, other, other], 10, 3.0)[0], 7);
    assert_eq!(decide(Policy::Slaq, &[urgent, other, other], 6, 3.0), [4, 1, 1]);
    assert_eq!(decide(Policy::Fifo, &[other, other, urgent], 6, 3.0), [1, 1, 4]);
    assert_eq!(decide(Policy::Fair, &[urgent, other, other], 9, 3.0), [3, 3, 3]);
    // Without a core for each job, the urgent job is sure of one core only.
    assert_eq!(decide(Policy::Slaq, &[urgent, other, other], 2, 3.0)[0], 1);
}

#[test]
fn fifo_and_shortest_go_by_their_order() {
    let long = Bid { ceiling: 6, remaining: Some(100.0), ..bid(new()) };
    let short = Bid { ceiling: 6, remaining: Some(10.0), ..bid(new()) };
    assert_eq!(decide(Policy::Fifo, &[long, short], 8, 3.0), [6, 2]);
    assert_eq!(decide(Policy::Shortest, &[long, short], 8, 3.0), [2, 6]);
    let unknown = Bid { remaining: None, ..long };
    assert_eq!(decide(Policy::Shortest, &[long, short, unknown], 8, 3.0), [1, 1, 6]);
    assert_eq!("shortest".parse(), Ok(Policy::Shortest));
    assert!("Slaq".parse::<Policy>().unwrap_err().to_string().contains("slaq, fair, fifo or shortest"));
}

#[test]
fn an_objective_prefers_what_learns_most_or_what_is_done_first() {
    // One job learns fast and has long to go; the other has learnt nearly everything and ends soon.
    let fast = Bid { remaining: Some(1000.0), ..bid(clear(0.5, 0.9, 1.0)) };
    let nearly = Bid { remaining: Some(9.0), ..bid(clear(0.01, 0.99, 1.0)) };
    let towards = |share: f64| {
        let policy = Policy::Towards(Objective::new(share).unwrap());
        decide(policy, &[fast, nearly], 8, 1.0)
    };
    assert_eq!(towards(0.0), decide(Policy::Slaq, &[fast, nearly], 8, 1.0));
    assert_eq!((towards(0.0), towards(1.0)), (vec![7, 1], vec![1, 7]));
    let given: Vec<u32> = [0.0, 0.1, 0.3, 0.5, 0.7, 1.0].into_iter().map(|share| towards(share)[1]).collect();
    assert!(given.is_sorted(), "the more it is for completion, the more has the job that is done soon: {given:?}");
    for wrong in [-0.1, 1.1, f64::NAN] {
        let refused = Objective::new(wrong).unwrap_err().to_string();
        assert_eq!(refused, format!("must be between 0 (quality) and 1 (completion), not {wrong}"));
    }
}
