//! Tests of the simulator, the forest, the model and the search, by hand-made cases and random ones. They use no
//! cluster.

use proptest::prelude::*;

use super::*;

const POLICY: SprintPolicy = SprintPolicy { timeout: 2.0, budget: 100.0, refill: 0.1, rate: 2.0 };

fn outcome(at: &[f64], service: &[f64], servers: usize, policy: SprintPolicy, effective: f64) -> Outcome {
    simulate(&Arrivals { at, service, servers }, &policy, effective)
}

#[test]
fn a_job_sprints_from_its_timeout_until_the_budget_is_used_up() {
    // Two seconds at normal speed, then four seconds' work in two.
    let one = outcome(&[0.0], &[6.0], 1, POLICY, 2.0);
    assert!((one.mean - 4.0).abs() < 1e-9 && (one.sprinted - 2.0).abs() < 1e-9, "{one:?}");
    // The budget has a second of sprinting at first, and a tenth of each second is added meanwhile.
    let poor = SprintPolicy { budget: 1.0, ..POLICY };
    let one = outcome(&[0.0], &[6.0], 1, poor, 2.0);
    let lasts = 1.0 / 0.9;
    assert!((one.sprinted - lasts).abs() < 1e-9 && (one.mean - (6.0 - lasts)).abs() < 1e-9, "{one:?}");
}

#[test]
fn a_job_that_has_waited_for_long_sprints_from_its_beginning() {
    let two = outcome(&[0.0, 0.0], &[2.0, 4.0], 1, POLICY, 2.0);
    assert!((two.mean - (2.0 + 4.0) / 2.0).abs() < 1e-9, "{two:?}");
    let apart = outcome(&[0.0, 0.0], &[2.0, 4.0], 2, POLICY, 2.0);
    assert!((apart.mean - (2.0 + 3.0) / 2.0).abs() < 1e-9, "{apart:?}");
}

#[test]
fn a_forest_finds_steps_and_ignores_what_says_nothing() {
    let mut stream = Stream::new(1);
    let samples: Vec<Sample> = (0..300)
        .map(|_| {
            let features = vec![stream.part(), stream.part(), stream.part()];
            let value = if features[0] > 0.5 { 3.0 } else { 1.0 } + features[1];
            Sample { features, value, weight: 1.0 }
        })
        .collect();
    let forest = Forest::grow(&samples, ForestSettings::default(), 4).unwrap();
    let error = |x: f64, y: f64, z: f64| (forest.predict(&[x, y, z]) - if x > 0.5 { 3.0 } else { 1.0 } - y).abs();
    for z in [0.1, 0.9] {
        for (x, y) in [(0.2, 0.3), (0.8, 0.3), (0.2, 0.7), (0.8, 0.7)] {
            assert!(error(x, y, z) < 0.2, "{x} {y} {z}: {}", error(x, y, z));
        }
    }
    assert!(Forest::grow(&[], ForestSettings::default(), 1).is_none());
    let odd = Sample { features: vec![f64::NAN, 0.0, 0.0], value: 1.0, weight: 1.0 };
    assert!(Forest::grow(&[odd], ForestSettings::default(), 1).is_none());
}

#[test]
fn weights_count() {
    let sample = |value: f64, weight: f64| Sample { features: vec![1.0], value, weight };
    let samples: Vec<Sample> = (0..20).map(|n| if n % 2 == 0 { sample(1.0, 1e6) } else { sample(5.0, 1e-6) }).collect();
    let forest = Forest::grow(&samples, ForestSettings::default(), 2).unwrap();
    assert!((forest.predict(&[1.0]) - 1.0).abs() < 0.01);
}

#[test]
fn training_finds_the_rate_that_made_the_responses() {
    let at: Vec<f64> = (0..400).map(|n| f64::from(n) * 1.3).collect();
    let service: Vec<f64> = (0..400).map(|n| 0.5 + f64::from(n % 7) / 4.0).collect();
    let arrivals = Arrivals { at: &at, service: &service, servers: 1 };
    // In the simulated truth a sprint gains half of the marginal gain.
    let profiled: Vec<ProfiledPolicy> = (0..12)
        .map(|n| {
            let policy = SprintPolicy { timeout: f64::from(n) * 0.1, budget: 50.0, refill: 0.5, rate: 2.0 };
            let response = simulate(&arrivals, &policy, 1.4).mean;
            ProfiledPolicy { policy, load: 0.9, marginal: 1.8, response }
        })
        .collect();
    let grey =
        GreyBoxModel::train(&profiled, |place, rate| simulate(&arrivals, &profiled[place].policy, rate).mean, 1.0, 3);
    let asked = ProfiledPolicy { policy: SprintPolicy { timeout: 0.55, ..profiled[0].policy }, ..profiled[0] };
    assert!((grey.effective(&asked) - 1.4).abs() < 0.02, "{}", grey.effective(&asked));
    let predicted = grey.predict(&asked, &arrivals).mean;
    assert!((predicted / simulate(&arrivals, &asked.policy, 1.4).mean - 1.0).abs() < 0.02);
    let untrained = GreyBoxModel::train(&[], |_, _| 0.0, 1.0, 3);
    assert!((untrained.effective(&asked) - 1.8).abs() < 1e-9, "without a profile it is the marginal rate");
}

#[test]
fn annealing_finds_a_valley() {
    let range = Range { least: 0.0, most: 10.0 };
    let ranges = Ranges { timeout: range, budget: range, refill: Range::only(1.0), rate: range };
    let cost =
        |policy: &SprintPolicy| 1.0 + (policy.timeout - 7.0).powi(2) + (policy.budget - 2.0).powi(2) + policy.rate;
    let (found, least) = anneal(&ranges, 2000, 1, cost);
    assert!(least < 1.6 && (found.timeout - 7.0).abs() < 0.7 && found.refill == 1.0, "{found:?}: {least}");
}

proptest! {
    #[test]
    fn no_budget_is_overdrawn_and_all_work_is_done(
        gaps in prop::collection::vec((0.0..5.0_f64, 0.01..10.0_f64), 1..60),
        servers in 1_usize..5,
        timeout in 0.0..10.0_f64,
        budget in 0.0..20.0_f64,
        refill in 0.0..3.0_f64,
        effective in 1.0..3.0_f64,
    ) {
        let mut now = 0.0;
        let at: Vec<f64> = gaps.iter().map(|(gap, _)| { now += gap; now }).collect();
        let service: Vec<f64> = gaps.iter().map(|(_, service)| *service).collect();
        let policy = SprintPolicy { timeout, budget, refill, rate: 2.0 };
        let with = outcome(&at, &service, servers, policy, effective);
        let without = outcome(&at, &service, servers, policy, 1.0);
        prop_assert!(with.sprinted <= budget + refill * with.span + 1e-6);
        prop_assert!(with.mean <= without.mean + 1e-6, "sprints of all jobs of one queue never delay");
        prop_assert!(with.mean >= service.iter().sum::<f64>() / service.len() as f64 / effective - 1e-6);
        prop_assert!(with.mean <= with.p95.max(with.span) + 1e-6);
    }
}
