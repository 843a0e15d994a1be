//! Property tests of drops, estimates, budgets and choices, over random input. Invariants:
//!
//! 1. A drop leaves at least one task, drops exactly the rest, and the same seed drops the same tasks.
//! 2. Intervals hold the truth at the stated rate over many samples; where all tasks ran, they are the truth.
//! 3. A budget never goes below 0 or above its capacity, and what is spent is at most what was there at first and has
//!    come back since.
//! 4. More drop or an earlier sprint never makes a predicted response longer.
//! 5. A choice keeps to the allowed drops, and no smaller drop meets the targets.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn ratio(thousandths: u32) -> DropRatio {
    DropRatio::new(thousandths).unwrap()
}

fn class(arrivals: f64, tasks: u32) -> ClassModel {
    ClassModel { arrivals, tasks: vec![(tasks, 0.5), (tasks * 2, 0.5)], setup: 2.0, wave: 5.0, variation: 0.1 }
}

fn engine(low: f64, high: f64) -> Model {
    Model { slots: 20, classes: vec![class(low, 200), class(high, 100)] }
}

#[test]
fn a_ratio_below_all_tasks() {
    assert_eq!(
        DropRatio::new(1000).unwrap_err().to_string(),
        "invalid part of dropped tasks '1000': must be below 1,000 thousandths"
    );
    assert_eq!((ratio(250).kept(10), ratio(999).kept(10), ratio(0).kept(0)), (8, 1, 0));
    assert_eq!(ratio(125).to_string(), "12.5 %");
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    for (tasks, part, confidence) in [(40, 500, 0.95), (200, 200, 0.95), (60, 700, 0.9), (100, 100, 0.99)] {
        let (mut held, rounds) = ([0; 3], 2000);
        for seed in 0..rounds {
            let found = |task: u32| {
                let noise = base::fraction(base::scramble(seed * 1000 + u64::from(task)));
                let count = 50.0 + 100.0 * noise;
                Contribution { count, sum: count * (3.0 + base::fraction(base::scramble(u64::from(task)))) }
            };
            let all = (0..tasks).map(found).fold((0.0, 0.0), |all, one| (all.0 + one.count, all.1 + one.sum));
            let dropped = ratio(part).dropped(tasks, seed);
            let mut sampled = Sampled::new(u64::from(tasks));
            (0..tasks).filter(|task| !dropped.contains(task)).for_each(|task| sampled.add(found(task)));
            let truths = [all.0, all.1, all.1 / all.0];
            let intervals = [sampled.count(confidence), sampled.sum(confidence), sampled.mean(confidence)];
            for ((held, truth), interval) in held.iter_mut().zip(truths).zip(intervals) {
                *held += usize::from(interval.unwrap().holds(truth));
            }
        }
        for held in held {
            let rate = held as f64 / rounds as f64;
            assert!((rate - confidence).abs() < 0.03, "{tasks} tasks without {part}: {rate} for {confidence}");
        }
    }
}

#[test]
fn what_is_not_known_is_said() {
    let mut sampled = Sampled::new(3);
    assert_eq!(sampled.sum(0.95), None);
    sampled.add(Contribution { count: 0.0, sum: 4.0 });
    assert_eq!(sampled.mean(0.95), None);
    let sum = sampled.sum(0.95).unwrap();
    assert!(sum.value == 12.0 && sum.half.is_infinite() && sum.relative().is_infinite());
}

#[test]
fn predictions_against_known_formulas() {
    // One class with exponential service: M/M/1.
    let one = ClassModel { arrivals: 0.05, tasks: vec![(1, 1.0)], setup: 0.0, wave: 10.0, variation: 1.0 };
    let model = Model { slots: 1, classes: vec![one.clone()] };
    let response = model.predict(&[], None)[0];
    assert!((response.mean - 20.0).abs() < 1e-9 && (response.p95 - 20.0 * 3.0).abs() < 10.0, "{response:?}");
    let sprint = Sprint { timeout: Duration::ZERO, speed: 2000, refill: 1_000_000 };
    assert!((model.predict(&[], Some(sprint))[0].service - 5.0).abs() < 0.01);
    let overloaded = Model {
        slots: 1,
        classes: vec![ClassModel { arrivals: 0.2, ..one.clone() }, ClassModel { arrivals: 0.01, ..one }],
    };
    let responses = overloaded.predict(&[], None);
    assert!(responses[0].mean.is_infinite() && responses[1].mean.is_finite());
    assert!(overloaded.load(&[], None) > 1.0);
}

#[test]
fn the_search_drops_before_it_sprints_and_no_more_than_it_must() {
    let model = engine(0.007, 0.0008);
    let free = model.predict(&[], None);
    let target =
        |mean: f64, drop: u32| Target { mean: Some(Duration::from_secs_f64(mean)), p95: None, drop: ratio(drop) };
    let easy = search(&model, &[target(free[0].mean * 1.1, 500), target(free[1].mean * 1.1, 0)], None);
    assert!(easy.is_met && easy.sprint.is_none() && easy.drops == [DropRatio::NONE; 2], "{easy:?}");
    let sprint = Sprint { timeout: Duration::ZERO, speed: 1500, refill: 20_000 };
    let hard = search(&model, &[target(free[0].mean * 0.4, 500), target(free[1].mean * 0.6, 0)], Some(sprint));
    assert!(hard.is_met && hard.drops[0] > DropRatio::NONE && hard.drops[1] == DropRatio::NONE, "{hard:?}");
    let never = search(&model, &[target(1.0, 100), target(1.0, 0)], Some(sprint));
    assert!(!never.is_met && never.drops[0] == ratio(100) && never.sprint == Some(sprint));
}

proptest! {
    #[test]
    fn drops_leave_the_rest(tasks in 0..500_u32, part in 0..1000_u32, seed in any::<u64>()) {
        let dropped = ratio(part).dropped(tasks, seed);
        prop_assert_eq!(&dropped, &ratio(part).dropped(tasks, seed));
        prop_assert_eq!(dropped.len() as u32, tasks - ratio(part).kept(tasks));
        prop_assert!(dropped.windows(2).all(|pair| pair[0] < pair[1]) && dropped.iter().all(|task| *task < tasks));
        prop_assert!(tasks == 0 || ratio(part).kept(tasks) >= 1);
    }

    #[test]
    fn all_tasks_give_the_truth(values in prop::collection::vec((1..100_u32, -100..100_i32), 1..50)) {
        let mut sampled = Sampled::new(values.len() as u64);
        for (count, sum) in &values {
            sampled.add(Contribution { count: f64::from(*count), sum: f64::from(*sum) });
        }
        sampled.add(Contribution { count: 1.0, sum: 1e9 });
        let (count, sum) = values.iter().fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        let near = |interval: Interval, truth: f64| interval.half == 0.0 && (interval.value - truth).abs() < 1e-6;
        prop_assert!(near(sampled.count(0.95).unwrap(), f64::from(count)));
        prop_assert!(near(sampled.sum(0.95).unwrap(), f64::from(sum)));
        prop_assert!(near(sampled.mean(0.95).unwrap(), f64::from(sum) / f64::from(count)));
    }

    #[test]
    fn budgets_stay_within_their_bounds(
        capacity in 0..1_000_000_u64,
        refill in 0..10_000_u64,
        calls in prop::collection::vec((0..100_000_u64, 0..500_000_u64), 1..60),
    ) {
        let mut budget = SprintBudget::new(capacity, refill);
        let (mut now, mut spent) = (0, 0);
        for (passed, wanted) in calls {
            now += passed;
            let at = Duration::from_millis(now);
            let there = budget.available(at);
            prop_assert!(there <= capacity);
            let got = budget.spend(at, wanted);
            prop_assert_eq!(got, wanted.min(there));
            prop_assert_eq!(budget.available(at), there - got);
            spent += got;
            prop_assert!(spent <= capacity + refill * now / 1000);
            prop_assert!(budget.available(Duration::ZERO) == there - got);
        }
    }

    #[test]
    fn more_drop_and_earlier_sprints_never_hurt(
        low in 0.0005..0.008_f64, high in 0.0001..0.003_f64, part in 0..900_u32, more in 0..99_u32, timeout in 0..60_u64,
    ) {
        let model = engine(low, high);
        let sprint = |timeout: u64| Some(Sprint { timeout: Duration::from_secs(timeout), speed: 1500, refill: 1 << 40 });
        let means = |drops: &[DropRatio], sprint| {
            model.predict(drops, sprint).into_iter().map(|response| response.mean).collect::<Vec<_>>()
        };
        let before = means(&[ratio(part)], sprint(timeout + 10));
        for after in [means(&[ratio(part + more)], sprint(timeout + 10)), means(&[ratio(part)], sprint(timeout))] {
            for (before, after) in before.iter().zip(after) {
                prop_assert!(after <= before * 1.0001 || before.is_infinite(), "{} after {}", after, before);
            }
        }
    }

    #[test]
    fn choices_are_the_smallest(low in 0.001..0.007_f64, bound in 0..600_u32, wish in 0.2..1.2_f64) {
        let model = engine(low, 0.0008);
        let free = model.predict(&[], None);
        let mean = Duration::from_secs_f64((free[0].mean * wish).min(1e6));
        let targets = [Target { mean: Some(mean), p95: None, drop: ratio(bound) }];
        let choice = search(&model, &targets, None);
        prop_assert!(choice.drops[0] <= ratio(bound) && choice.drops[1] == DropRatio::NONE);
        let meets = |part: u32| model.predict(&[ratio(part)], None)[0].mean <= mean.as_secs_f64();
        prop_assert_eq!(choice.is_met, meets(choice.drops[0].thousandths()));
        if choice.is_met && choice.drops[0].thousandths() >= 5 {
            prop_assert!(!meets((choice.drops[0].thousandths() - 1) / 5 * 5));
        }
        prop_assert!(choice.is_met || choice.drops[0] == ratio(bound));
    }
}
