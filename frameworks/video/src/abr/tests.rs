//! Tests of policies with hand-made and random cases, of weights, training, and viewers of live views. Nothing is sent
//! here.

use std::sync::Arc;

use proptest::prelude::*;

use super::live::{LATENCY, RUNGS, Viewer, policy, setting};
use super::*;
use crate::bitrate::{Markov, Trace};

const LADDER: [f64; 3] = [1.0, 2.0, 4.0];

fn measured(rates: &[f64]) -> Measured {
    let mut measured = Measured::default();
    rates.iter().for_each(|rate| measured.add(*rate));
    measured
}

/// Chooses a rung for chunks of 4 s whose sizes match their bitrates exactly.
fn choose(kind: &BitratePolicy, buffer: f64, last_rung: usize, measured: &Measured) -> usize {
    let sizes: Vec<f64> = LADDER.iter().map(|rate| rate * 4.0 * 125_000.0).collect();
    let ahead = [sizes.as_slice(); AHEAD];
    kind.choose(&Observation {
        ladder: &LADDER,
        sizes: &ahead,
        chunk_seconds: 4.0,
        buffer,
        buffer_limit: 60.0,
        last_rung,
        measured,
        quality: ScoreWeights::default(),
    })
}

#[test]
fn baselines_do_as_published() {
    let none = Measured::default();
    for kind in [BitratePolicy::Buffer, BitratePolicy::BufferSizes] {
        let by_buffer: Vec<usize> =
            [0.0, 5.0, 9.0, 14.9, 15.0, 60.0].map(|buffer| choose(&kind, buffer, 0, &none)).into();
        assert_eq!(by_buffer, [0, 0, 1, 1, 2, 2], "{kind:?}");
    }
    assert_eq!(choose(&BitratePolicy::Rate, 60.0, 0, &none), 0);
    assert_eq!(choose(&BitratePolicy::Rate, 0.0, 0, &measured(&[2.5])), 1);
    // The harmonic mean of 1 and 9 is 1.8.
    assert_eq!(choose(&BitratePolicy::Rate, 0.0, 0, &measured(&[1.0, 9.0])), 0);
    assert_eq!(choose(&BitratePolicy::Fixed(9), 0.0, 0, &none), 2);
}

#[test]
fn what_was_measured_is_remembered_for_a_while() {
    let some = measured(&[4.0, 2.0]);
    assert!((some.mean().unwrap() - 8.0 / 3.0).abs() < 1e-9);
    // The prediction was 4 and the measurement 2: a relative error of 1.
    assert!((some.robust_mean().unwrap() - 4.0 / 3.0).abs() < 1e-9);
    let long = measured(&[[100.0; 20].as_slice(), &[2.0; 5]].concat());
    assert!((long.mean().unwrap() - 2.0).abs() < 1e-9);
}

#[test]
fn prediction_weighs_standing_against_bitrate() {
    let slow = measured(&[0.9]);
    assert_eq!(choose(&BitratePolicy::Predictive, 8.0, 0, &slow), 0);
    assert_eq!(choose(&BitratePolicy::Predictive, 40.0, 2, &measured(&[8.0])), 2);
    // Five chunks of the highest rung stall with a buffer of 4 s at 3 Mbit/s.
    assert!(choose(&BitratePolicy::Predictive, 4.0, 1, &measured(&[3.0])) < 2);
    assert_eq!(choose(&BitratePolicy::Predictive, 4.0, 1, &Measured::default()), 0);
}

#[test]
fn weights_are_written_and_read() {
    let weights = Weights([1.0, -2.5, 0.125, 0.0, 0.5, -0.25, 0.75, 1.0]);
    let text = weights.write(&["made by a test".to_owned()]);
    assert!(text.starts_with("# made by a test\n\n[weights]\n# the bitrate of the rung\nbitrate = 1.000\n"), "{text}");
    assert_eq!(Weights::read(&text).unwrap(), weights);
    let missing = Weights::read(&text.replace("down = 0.750", "")).unwrap_err().to_string();
    assert_eq!(missing, "the weight 'down' must be a number");
    let more = Weights::read(&format!("{text}\nsideways = 1.0\n")).unwrap_err().to_string();
    assert_eq!(more, "there is no feature 'sideways'");
    assert!(Weights::read("x = 1").is_err());
}

#[test]
fn the_kept_weights_are_read() {
    assert!(matches!(policy(), BitratePolicy::Linear(_)));
    assert!(Weights::read(include_str!("weights/movie.toml")).is_ok());
}

#[test]
fn training_is_repeatable_and_better_than_its_beginning() {
    let setting = Setting::movie(1);
    let traces = made_traces(Markov::default(), 12, 1).unwrap();
    let small = Training { rounds: 6, candidates: 16, best: 4, traces: 6, seed: 3 };
    let trained = train(&setting, &traces, small, |_, _| {}).unwrap();
    assert_eq!(train(&setting, &traces, small, |_, _| {}).unwrap(), trained);
    let begin = Weights([1.0, -2.0, -1.0, 0.0, 0.0, -0.3, -0.3, 0.0]);
    let compared = compare(&setting, &[BitratePolicy::Linear(begin), BitratePolicy::Linear(trained)], &traces).unwrap();
    assert!(compared[1].above_first.mean > 0.0, "{compared:?}");
}

#[test]
fn the_same_seeds_give_the_same_comparison() {
    let (setting, traces) = (Setting::movie(2), made_traces(Markov::default(), 4, 9).unwrap());
    let kinds = [BitratePolicy::Buffer, BitratePolicy::Predictive];
    let once = compare(&setting, &kinds, &traces).unwrap();
    assert_eq!(once, compare(&setting, &kinds, &traces).unwrap());
    assert_eq!(once[0].above_first, Spread::default());
}

/// Simulates a connection that carries `bandwidth` bytes a second and gets a picture only when none waits, as in the
/// framework. Returns the share of time with late pictures, and the last rung.
fn connection(bandwidth: f64, seconds: u32) -> (f64, usize) {
    let (mut viewer, mut waiting, mut late) = (Viewer::new(policy()), 0.0, 0.0);
    let (mut due, mut age) = (0.0, 0.0);
    for step in 0..seconds * 20 {
        let (now, rung) = (f64::from(step) / 20.0, RUNGS[viewer.rung()]);
        if now >= due {
            due = now + 1.0 / rung.rate;
            waiting += if waiting > 0.0 { 0.0 } else { f64::from(rung.kilobits) * 125.0 / rung.rate };
        }
        let taken = f64::min(waiting, bandwidth / 20.0);
        waiting -= taken;
        age = if waiting > 0.0 { age + 0.05 } else { 0.0 };
        late += if age > LATENCY { 0.05 } else { 0.0 };
        viewer.pass(0.05, taken as usize, waiting > 0.0, age);
    }
    (late / f64::from(seconds), viewer.rung())
}

#[test]
fn a_viewer_gets_what_its_connection_carries() {
    let rungs: Vec<usize> = [20e3, 40e3, 200e3, 5e6].map(|bandwidth| connection(bandwidth, 60).1).into();
    assert!(rungs.is_sorted() && rungs[0] <= 1 && rungs[3] == RUNGS.len() - 1, "{rungs:?}");
    for bandwidth in [20e3, 40e3, 200e3, 5e6] {
        assert!(connection(bandwidth, 60).0 < 0.2, "{bandwidth}: {:?}", connection(bandwidth, 60));
    }
}

#[test]
fn the_live_setting_is_one() {
    let live = setting(60, 1).unwrap();
    let steady = Arc::new(Trace::new(&[(10.0, 2.0)]).unwrap());
    let means = play_session(&live, &policy(), &steady, 1).unwrap();
    assert!(means.bitrate > 0.5 && means.stall < 0.05, "{means:?}");
}

proptest! {
    #[test]
    fn every_policy_stays_on_its_ladder(
        rates in prop::collection::vec(0.001..100.0_f64, 0..12),
        buffer in 0.0..60.0_f64,
        last in 0_usize..3,
        weights in prop::array::uniform8(-3.0..3.0_f64),
    ) {
        let measured = measured(&rates);
        for kind in [BitratePolicy::Buffer, BitratePolicy::BufferSizes, BitratePolicy::Rate, BitratePolicy::Predictive, BitratePolicy::Linear(Weights(weights)), BitratePolicy::Fixed(7)] {
            prop_assert!(choose(&kind, buffer, last, &measured) < LADDER.len());
        }
        if let (Some(mean), Some(robust_mean)) = (measured.mean(), measured.robust_mean()) {
            prop_assert!(robust_mean <= mean + 1e-9);
        }
    }

    #[test]
    fn viewers_survive_any_connection(steps in prop::collection::vec((0.001..2.0_f64, 0_usize..10_000_000, any::<bool>(), 0.0..10.0_f64), 1..80)) {
        let mut viewer = Viewer::new(policy());
        for (seconds, taken, waited, age) in steps {
            viewer.pass(seconds, taken, waited, age);
            viewer.picture(viewer.rung(), taken);
            prop_assert!(viewer.rung() < RUNGS.len());
        }
    }
}
