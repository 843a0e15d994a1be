//! Property tests of a cluster, over random jobs, policies and seeds. Invariants:
//!
//! 1. Every job ends, every task runs once, and no job ends before its longest path could.
//! 2. Executors are never busy for longer than they exist.
//! 3. The same seed leads to the same outcome.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::order::{Heuristic, Policy};
use crate::study::job::{Durations, JobModel, StageModel};

fn stage(tasks: u32, duration: u64, parents: &[u32]) -> StageModel {
    let durations = Durations { executors: 5, first: vec![duration], rest: vec![duration], fresh: vec![] };
    StageModel {
        key: String::new(),
        tasks,
        parents: parents.into(),
        rough: duration,
        durations: vec![durations],
        ..StageModel::default()
    }
}

fn arrival(at: u64, stages: Vec<StageModel>) -> Arrival {
    Arrival { at, job: Arc::new(JobModel { name: "j".into(), stages }) }
}

fn outcome(executors: u32, arrivals: &[Arrival], heuristic: Heuristic) -> Outcome {
    let setup = Setup { executors, ..Setup::default() };
    run(setup, arrivals, &mut heuristic.clone(), &mut History::default(), 1).unwrap()
}

#[test]
fn one_job_alone() {
    // 2 s to move, 1 s to warm up, three waves of 1 s; then one task of the second stage, on an executor that was idle
    // and warms up again.
    let jobs = [arrival(0, vec![stage(6, 1000, &[]), stage(1, 500, &[0])])];
    let alone = outcome(2, &jobs, Heuristic::Fair);
    assert_eq!(alone.completions, [2.0 + 1.0 + 3.0 + 1.0 + 0.5]);
    assert_eq!((alone.tasks, alone.moves), (7, 2));
}

#[test]
fn without_sending_ahead_all_that_is_free_is_decided_at_once() {
    let jobs = [arrival(0, vec![stage(4, 1000, &[]), stage(3, 500, &[0])])];
    let setup = Setup { executors: 4, ahead: false, ..Setup::default() };
    let mut episode = Episode::new(setup, jobs.into(), History::default(), 1).unwrap();
    let mut pending = Vec::new();
    while let Some(observation) = episode.observation() {
        assert!(!observation.ahead && observation.source.is_none());
        let actions = Heuristic::Fair.decide(&observation);
        pending.push((observation.now, observation.free_count(), actions.len()));
        episode.act(&observation, &actions);
    }
    // 2 s to move, 1 s to warm up, 1 s to run: all four tasks have finished, and the next stage can run.
    assert_eq!(pending, [(0, 4, 1), (4_000, 4, 1)]);
    assert_eq!(episode.finish().0.completions, [4.0 + 2.0 + 1.0 + 0.5]);
}

#[test]
fn short_jobs_first_has_the_smaller_mean_and_settings_are_checked() {
    let jobs: Vec<Arrival> = [40, 2, 2, 2].map(|tasks| arrival(0, vec![stage(tasks, 10_000, &[])])).into();
    let [fifo, short] = [Heuristic::Fifo, Heuristic::ShortestJob].map(|policy| outcome(4, &jobs, policy).mean());
    assert!(short < fifo / 2.0, "{short} {fifo}");
    let none = Setup { executors: 0, ..Setup::default() };
    assert!(run(none, &jobs, &mut Heuristic::Fair, &mut History::default(), 1).is_err());
}

#[test]
fn unknown_durations_are_learnt() {
    let mut job = stage(3, 700, &[]);
    job.key = "k".into();
    let jobs = [arrival(0, vec![job])];
    let mut history = History::default();
    let setup = Setup { knows_durations: false, ..Setup::default() };
    run(setup, &jobs, &mut Heuristic::ShortestRemaining, &mut history, 1).unwrap();
    // The duration includes the warm-up.
    assert_eq!(history.expect("k"), Some(1700.0));
}

fn jobs() -> impl Strategy<Value = Vec<Arrival>> {
    let stages = (1..12_u32, 1..12_u32, 1..12_u32, 1..5000_u64, 1..5000_u64, any::<bool>());
    let job = (0..40_000_u64, stages).prop_map(|(at, (a, b, c, one, two, chain))| {
        arrival(at, vec![stage(a, one, &[]), stage(b, two, if chain { &[0] } else { &[] }), stage(c, one, &[0, 1])])
    });
    prop::collection::vec(job, 1..8)
}

proptest! {
    #[test]
    fn invariants_hold(jobs in jobs(), executors in 1..12_u32, which in 0..8_usize, seed in any::<u64>(), ahead in any::<bool>()) {
        use Heuristic::*;
        let all = [Fifo, Fair, Weighted(-0.5), Weighted(1.0), ShortestJob, ShortestRemaining, Tetris, Graphene];
        let setup = Setup { executors, ahead, ..Setup::default() };
        let go = || run(setup, &jobs, &mut all[which].clone(), &mut History::default(), seed);
        let out = go().unwrap();
        prop_assert_eq!(&out, &go().unwrap());
        prop_assert_eq!(out.tasks, jobs.iter().map(|arrival| arrival.job.tasks()).sum::<u64>());
        prop_assert!(out.busy <= out.makespan * f64::from(executors) + 1e-6);
        for (job, time) in jobs.iter().zip(&out.completions) {
            let stages = &job.job.stages;
            let path = stages[2].rough + stages[0].rough.max(stages[1].rough);
            prop_assert!(*time >= path as f64 / 1000.0);
        }
    }
}

#[test]
fn an_episode_waits_for_actions_and_its_waiting_is_the_sum_of_completions() {
    let jobs = [arrival(0, vec![stage(6, 1000, &[]), stage(1, 500, &[0])]), arrival(4000, vec![stage(3, 700, &[])])];
    let mut episode =
        Episode::new(Setup { executors: 2, ..Setup::default() }, jobs.into(), History::default(), 1).unwrap();
    assert_eq!((episode.jobs(), episode.active(), episode.now()), (2, 1, 0));
    let first = episode.observation().unwrap();
    assert_eq!(episode.observation().unwrap(), first, "nothing happens before an action");
    while let Some(observation) = episode.observation() {
        let actions = Heuristic::Fair.decide(&observation);
        episode.act(&observation, &actions);
    }
    let waited = episode.waited() as f64 / 1000.0;
    assert_eq!(episode.active(), 0);
    let (outcome, _) = episode.finish();
    assert_eq!(waited, outcome.completions.iter().sum::<f64>());
}
