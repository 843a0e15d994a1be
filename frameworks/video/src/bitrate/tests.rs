//! Tests invariants of sessions, over random movies, traces, rungs and seeds:
//!
//! 1. The buffer is never below 0 nor above its limit.
//! 2. Time passes as the video plays or stalls: what was downloaded is in the buffer or was watched.
//! 3. The same seed and rungs lead to the same chunks.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;

fn constant(megabits: f64) -> Arc<Trace> {
    Arc::new(Trace::new(&[(10.0, megabits)]).unwrap())
}

fn plain() -> Network {
    Network { round_trip: 0.0, payload: 1.0, ..Network::default() }
}

#[test]
fn a_constant_network_has_the_numbers_of_the_model() {
    let movie = Movie::new(&[1000, 2000], 4.0, vec![vec![500_000.0, 1_000_000.0]; 3]).unwrap();
    let mut session = Session::new(Arc::new(movie), constant(2.0), plain(), ScoreWeights::default(), 1).unwrap();
    // 500 kB at 2 Mbit/s take 2 s, in which the video stalls; then 4 s are in the buffer.
    let first = session.step(0).unwrap();
    assert_eq!((first.download, first.rebuffer, first.buffer), (2.0, 2.0, 4.0));
    assert_eq!(first.score, 1.0 - 4.3 * 2.0 - 1.0, "it changes from the second rung");
    let second = session.step(1).unwrap();
    assert!((second.download - 4.0).abs() < 1e-9 && second.rebuffer < 1e-9, "{second:?}");
    assert_eq!(session.step(1).unwrap().change, 0.0);
    assert_eq!((session.step(0), session.left()), (None, 0));
}

#[test]
fn a_full_buffer_pauses() {
    let movie = Arc::new(Movie::like_pensieve(1));
    let network = Network { buffer: 8.0, ..plain() };
    let mut session = Session::new(movie, constant(1000.0), network, ScoreWeights::default(), 1).unwrap();
    let paused: f64 = (0..48).map(|_| session.step(0).unwrap().paused).sum();
    assert!((46.0 * 4.0 - 2.0..46.0 * 4.0 + 2.0).contains(&paused), "{paused}");
    assert!(session.buffer() <= 8.0);
}

#[test]
fn traces_are_read_as_pensieves_are() {
    let trace = Trace::read("# seconds Mbit/s\n0 9\n1\t2\n\n3,4\n").unwrap();
    assert_eq!((trace.seconds(), trace.megabits(0.5), trace.megabits(2.0), trace.megabits(3.5)), (3.0, 2.0, 4.0, 2.0));
    // 250 kB in the first second, 1 MB in the two after it, then again.
    assert!((trace.transfer(0.0, 1_250_000.0, 1.0) - 3.0).abs() < 1e-9);
    assert!((trace.transfer(0.0, 1_375_000.0, 1.0) - 3.5).abs() < 1e-9);
    let refused = |text: &str| Trace::read(text).unwrap_err().to_string();
    assert_eq!(refused("0 1\n1 x"), "line 2: must be seconds and Mbit/s");
    assert_eq!(refused("0 1\n1 1\n1 1"), "line 3: must be later than the line before");
    assert_eq!(refused("0 1"), "invalid trace: must have 1 to 1,000,000 intervals");
    assert_eq!(refused("0 1\n1 0"), "invalid trace: must carry 0.008 Mbit/s at some time");
    assert!(Trace::read("0 1\nNaN 1\n2 2").is_err());
}

#[test]
fn made_traces_stay_in_their_range_and_settings_are_checked() {
    let trace = Trace::made(Markov::default(), 7).unwrap();
    assert_eq!(trace, Trace::made(Markov::default(), 7).unwrap());
    assert_ne!(trace, Trace::made(Markov::default(), 8).unwrap());
    assert!((0..320).all(|at| (0.05..=8.6).contains(&trace.megabits(f64::from(at)))));
    assert!(Trace::made(Markov { states: 0, ..Markov::default() }, 1).is_err());
    assert!(Trace::made(Markov { seconds: 0, ..Markov::default() }, 1).is_err());
    assert!(Trace::made(Markov { lowest: 5.0, ..Markov::default() }, 1).is_err());
    assert!(Movie::made(&[2, 1], 4.0, 1, 1).is_err());
    assert!(Movie::made(&[1, 2], 4.0, 0, 1).is_err());
    assert!(Movie::made(&[1, 2], f64::NAN, 1, 1).is_err());
    let network = Network { noise: f64::NAN, ..Network::default() };
    assert!(
        Session::new(Arc::new(Movie::like_pensieve(1)), constant(1.0), network, ScoreWeights::default(), 1).is_err()
    );
}

proptest! {
    #[test]
    fn invariants_hold(seed in any::<u64>(), rungs in prop::collection::vec(0..8_usize, 48), noise in 0.0..0.5) {
        let network = Network { noise, buffer: 20.0, ..Network::default() };
        let run = || {
            let (movie, trace) = (Movie::like_pensieve(seed), Trace::made(Markov::default(), seed).unwrap());
            let mut session =
                Session::new(Arc::new(movie), Arc::new(trace), network, ScoreWeights::default(), seed).unwrap();
            let chunks: Vec<Chunk> = rungs.iter().map(|rung| session.step(*rung).unwrap()).collect();
            (chunks, session)
        };
        let (chunks, session) = run();
        prop_assert_eq!(&chunks, &run().0);
        prop_assert!(chunks.iter().all(|chunk| (0.0..=20.0).contains(&chunk.buffer)));
        let stood: f64 = chunks.iter().map(|chunk| chunk.rebuffer).sum();
        let watched = 48.0 * CHUNK_SECONDS - session.buffer();
        prop_assert!((session.elapsed() - stood - watched).abs() < 1e-6);
        let score: f64 = chunks.iter().map(|chunk| chunk.score).sum();
        prop_assert!((score - session.score()).abs() < 1e-9);
    }
}
