//! Tests invariants of batches:
//!
//! 1. The number of threads changes nothing.
//! 2. An ended episode is followed by another one at the next step, and equal reset seeds lead to the same episodes.
//! 3. An invalid request is rejected, and changes nothing.

use super::*;
use crate::files::NoFiles;

fn factory(name: &str, settings: serde_json::Value) -> EnvironmentFactory {
    EnvironmentFactory::new(name, settings, &NoFiles).unwrap()
}

fn balance() -> EnvironmentFactory {
    factory("LoadBalance", serde_json::json!({"servers": 3, "jobs": 4}))
}

fn actions(all: &[i32]) -> Vec<u8> {
    all.iter().flat_map(|one| one.to_le_bytes()).collect()
}

/// Observations by field, rewards, seeds and ends of all environments.
type Joined = (Vec<Vec<u8>>, Vec<f64>, Vec<u64>, Vec<bool>);

fn joined(parts: &[BatchResults]) -> Joined {
    let fields = parts[0].observations.0.len();
    let field = |at: usize| parts.iter().flat_map(|part| part.observations.0[at].clone()).collect();
    let all = |of: fn(&BatchResults) -> &Vec<f64>| parts.iter().flat_map(of).copied().collect();
    let seeds = parts.iter().flat_map(|part| part.seeds.clone()).collect();
    let ends = parts.iter().flat_map(|part| part.terminated.clone()).collect();
    ((0..fields).map(field).collect(), all(|part| &part.rewards), seeds, ends)
}

fn play(threads: usize) -> Vec<Joined> {
    let mut batch = Batch::new(&balance(), 5, threads, true).unwrap();
    let seeds: Vec<Option<EpisodeStart>> = (0..5).map(|seed| Some(EpisodeStart::Seed(seed / 2))).collect();
    let mut all = vec![joined(&batch.reset(&seeds).unwrap())];
    all.extend((0..12).map(|n| joined(&batch.step(&actions(&[n % 3, 0, 1, 2, n % 2])).unwrap())));
    all
}

#[test]
fn threads_change_nothing_and_episodes_follow_each_other() {
    let one = play(1);
    assert_eq!(one, play(3));
    let ends: Vec<bool> = one.iter().map(|(.., ends)| ends[0]).collect();
    let expected: Vec<bool> = (0..13).map(|at| at == 4 || at == 9).collect();
    assert_eq!(ends, expected);
    assert_eq!(one[5].1[0], 0.0, "the step that begins an episode is worth nothing");
    let seeds: Vec<u64> = one.iter().map(|(_, _, seeds, _)| seeds[0]).collect();
    assert!(seeds[4] == 0 && seeds[5] != 0 && seeds[10] != seeds[5] && seeds[5] < 1 << 53, "{seeds:?}");
    assert_eq!(one[5].2[0], one[5].2[1], "equal seeds are followed by equal ones");
}

#[test]
fn what_breaks_a_rule_is_refused_and_changes_nothing() {
    let mut batch = Batch::new(&balance(), 2, 2, false).unwrap();
    let text = |result: Result<Vec<BatchResults>, LearningError>| result.err().unwrap().to_string();
    assert_eq!(text(batch.step(&actions(&[0, 0]))), "environment 0 has no episode: reset it first");
    assert_eq!(text(batch.reset(&[None])), "invalid frame: seeds must be for 2 environments");
    batch.reset(&[Some(EpisodeStart::Seed(1)), Some(EpisodeStart::Seed(1))]).unwrap();
    let refused = text(batch.step(&actions(&[0, 3])));
    assert_eq!(refused, "invalid action 0 of environment 1: 3 must be 0 to 2");
    assert!(text(batch.step(&actions(&[0]))).starts_with("invalid frame: actions must have 4 bytes"));
    for _ in 0..4 {
        batch.step(&actions(&[1, 1])).unwrap();
    }
    assert_eq!(text(batch.step(&actions(&[0, 0]))), "environment 0 has no episode: reset it first");
    // Resets one of them alone.
    batch.reset(&[Some(EpisodeStart::Next), None]).unwrap();
    assert!(batch.baseline("x", &[1]).is_err());
    assert_eq!(batch.baseline("random", &[1, 2, 1]).unwrap()[0], batch.baseline("random", &[1]).unwrap()[0]);
    for (count, threads) in [(0, 1), (MOST_ENVIRONMENTS + 1, 1), (1, 0), (1, 1000)] {
        assert!(Batch::new(&balance(), count, threads, true).is_err());
    }
    let amounts = factory("TaskSizing", serde_json::json!({}));
    let mut batch = Batch::new(&amounts, 1, 1, true).unwrap();
    batch.reset(&[Some(EpisodeStart::Seed(1))]).unwrap();
    let refused = text(batch.step(&f32::NAN.to_le_bytes()));
    assert_eq!(refused, "invalid action 0 of environment 0: NaN must be 0 to 12");
}

#[test]
fn no_environment_steps_if_one_has_no_episode() {
    let seed = Some(EpisodeStart::Seed(1));
    for threads in [1, 2] {
        let batch = || Batch::new(&balance(), 2, threads, false).unwrap();
        let (mut batch, mut other) = (batch(), batch());
        batch.reset(&[seed, None]).unwrap();
        let refused = batch.step(&actions(&[0, 0])).err().unwrap().to_string();
        assert_eq!(refused, "environment 1 has no episode: reset it first");
        // The first environment is still at the beginning of its episode.
        assert_eq!(joined(&batch.reset(&[None, seed]).unwrap()), joined(&other.reset(&[seed, seed]).unwrap()));
        let next = actions(&[1, 2]);
        assert_eq!(joined(&batch.step(&next).unwrap()), joined(&other.step(&next).unwrap()));
    }
}

#[test]
fn names_and_settings_are_checked() {
    let refused = |name: &str, settings| EnvironmentFactory::new(name, settings, &NoFiles).err().unwrap().chain();
    assert!(refused("X", serde_json::json!({})).starts_with("unknown environment 'X': must be DagScheduling,"));
    let unknown = refused("DagScheduling", serde_json::json!({"job": 1}));
    assert!(unknown.starts_with("invalid settings of DagScheduling: unknown field `job`"), "{unknown}");
    assert_eq!(refused("LoadBalance", serde_json::json!({"servers": 0})), "invalid 'servers': must be 1 to 1000");
}

#[test]
fn arrays_with_larger_numbers_come_first() {
    for name in crate::kinds::NAMES {
        let spaces = factory(name, serde_json::json!({})).make().unwrap().spaces().clone();
        assert!(spaces.observation.iter().map(|field| field.kind.size()).is_sorted_by(|a, b| a >= b), "{name}");
    }
}
