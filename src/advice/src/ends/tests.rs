//! Tests of the classifier: what it can learn, and that it stays within its bounds.

use proptest::prelude::*;

use super::*;

#[test]
fn features_have_their_number() {
    let ends = EndClassifier::new(1);
    assert_eq!(ends.task_features(&Launch::default(), 0.0, 0.0).len(), EVENT_FEATURES);
    assert_eq!(ends.job_features(&JobStart::default(), 0.0).len(), JOB_FEATURES);
}

#[test]
fn a_network_learns_what_no_line_separates() {
    let mut network = Network::new(2, 16, 7);
    let cases =
        [([0.0, 0.0], End::Finish), ([1.0, 1.0], End::Finish), ([0.0, 1.0], End::Fail), ([1.0, 0.0], End::Fail)];
    for _ in 0..2_000 {
        cases.iter().for_each(|(inputs, end)| network.learn(inputs, *end));
    }
    for (inputs, end) in &cases {
        assert_eq!(End::likeliest(&network.predict(inputs)), *end);
    }
}

#[test]
fn a_machine_that_fails_tasks_is_known_by_it() {
    let mut ends = EndClassifier::new(1);
    for round in 0..2_000_u32 {
        let machine = u64::from(round % 10);
        let launch = Launch { job: 5, machine, ..Launch::default() };
        let now = f64::from(round) * 10.0;
        let seen = ends.task_features(&launch, 0.0, now);
        let end = if machine == 3 { End::Fail } else { End::Finish };
        ends.learn(&seen, end);
        ends.ended(&launch, 60.0, end, now);
    }
    let of = |machine| {
        End::likeliest(&ends.predict(&ends.task_features(
            &Launch { job: 5, machine, ..Launch::default() },
            0.0,
            20_000.0,
        )))
    };
    assert_eq!((of(3), of(4)), (End::Fail, End::Finish));
    assert_eq!(ends.most_frequent_end(&Launch { job: 5, machine: 3, ..Launch::default() }), End::Finish);
}

#[test]
fn scores() {
    let mut score = Score::default();
    for (predicted, end) in
        [(End::Fail, End::Fail), (End::Fail, End::Finish), (End::Finish, End::Finish), (End::Finish, End::Finish)]
    {
        score.add(predicted, end);
    }
    assert_eq!((score.accuracy(), score.most_frequent()), (Some(0.75), Some(0.75)));
    let [finish, fail, kill, _] = score.classes();
    assert_eq!((finish.precision, finish.recall), (Some(1.0), Some(2.0 / 3.0)));
    assert_eq!((fail.precision, fail.recall), (Some(0.5), Some(1.0)));
    assert_eq!((kill.count, kill.precision, kill.recall), (0, None, None));
    assert_eq!(Score::default().accuracy(), None);
}

proptest! {
    #[test]
    fn shares_are_shares(inputs in prop::collection::vec(-50.0..50.0_f64, 3), ends in prop::collection::vec(0..4_usize, 0..200)) {
        let mut network = Network::new(3, 4, 9);
        for end in ends {
            network.learn(&inputs, End::ALL[end]);
        }
        let shares = network.predict(&inputs);
        prop_assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{shares:?}");
        prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
    }
}
