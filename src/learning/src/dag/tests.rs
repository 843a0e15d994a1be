//! Tests invariants of the environment, over seeds:
//!
//! 1. A heuristic that decides through observations and actions has the outcome that it has inside of the cluster.
//! 2. The return is minus the mean completion time, or the makespan.
//! 3. For any choices, every episode ends with all jobs done.

use dag::order::{Action as Given, grants};
use proptest::prelude::*;

use super::*;
use crate::files::NoFiles;
use crate::space::Buffers;

fn environment(settings: Settings) -> DagScheduling {
    DagScheduling::new(Shared::new(settings, &NoFiles).unwrap())
}

fn small() -> Settings {
    Settings { jobs: 6, executors: 10, ..Settings::default() }
}

/// Plays the episode of a heuristic whose decisions are actions, one by one.
fn through_actions(env: &mut DagScheduling, mut heuristic: Heuristic, seed: u64) -> Rollout {
    let mut planned: Vec<(usize, i32)> = Vec::new();
    roll_out(env, seed, |env| {
        let pending = env.pending.as_ref().unwrap();
        if planned.is_empty() {
            let observation = pending.observation();
            let actions: Vec<Given> = heuristic.decide(observation);
            let mut held: Vec<u32> = observation.jobs.iter().map(|job| job.held).collect();
            for grant in grants(observation, &actions) {
                let job = observation.jobs.iter().position(|job| job.id == grant.job).unwrap();
                held[job] += grant.tasks;
                planned.push((pending.first[job] + grant.stage as usize, held[job] as i32 - 1));
            }
            planned.reverse();
        }
        let (node, limit) = planned.pop().expect("the heuristic leaves no executor without work");
        ChosenAction::Choices(vec![node as i32, limit])
    })
    .unwrap()
}

#[test]
fn a_heuristic_through_actions_has_the_outcome_of_the_cluster() {
    let mut env = environment(small());
    for heuristic in [Heuristic::Fair, Heuristic::Fifo, Heuristic::ShortestJob] {
        for seed in 1..4 {
            let inside = env.baseline(&heuristic.to_string(), seed).unwrap();
            let outside = through_actions(&mut env, heuristic, seed);
            assert_eq!(inside.info[..2], outside.info[..2], "{heuristic} {seed}");
            assert!((inside.total - outside.total).abs() < 1e-6);
            assert_eq!(outside.info[3], 0.0, "no action was put right");
        }
    }
}

#[test]
fn rewards_are_what_they_are_said_to_be() {
    let rollout = environment(small()).baseline("random", 1).unwrap();
    assert!((rollout.total + rollout.info[0]).abs() < 1e-6, "{rollout:?}");
    let makespan = Settings { reward: Reward::Makespan, gap: Some(10.0), ..small() };
    let rollout = environment(makespan).baseline("random", 1).unwrap();
    assert!((rollout.total + rollout.info[1]).abs() < 1e-6, "{rollout:?}");
    assert_eq!(rollout.info[4], 0.0);
    let mut cut = environment(Settings { horizon: Some(20.0), ..small() });
    assert!(cut.baseline("random", 1).unwrap().info[4] > 0.0);
    assert!(cut.baseline("no order", 1).is_err());
}

#[test]
fn settings_are_checked() {
    let refused = |settings| Shared::new(settings, &NoFiles).err().unwrap().to_string();
    assert_eq!(refused(Settings { jobs: 0, ..small() }), "invalid 'jobs': must be 1 to 10,000");
    assert_eq!(refused(Settings { sizes: vec!["3g".into()], ..small() }), "invalid 'sizes': must be of 2g to 100g");
    assert_eq!(refused(Settings { tpch: Some("here".into()), ..small() }), "here cannot be used");
}

#[test]
fn fewer_jobs_may_be_visible_than_there_are() {
    let mut env = environment(Settings { visible: Some(2), gap: Some(1.0), ..small() });
    assert_eq!(env.spaces().observation[1].shape, [2, JOB_FEATURES]);
    assert_eq!(env.baseline("random", 3).unwrap().info[4], 0.0);
}

/// Number of features of a job.
const JOB_FEATURES: usize = 6;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_is_chosen_every_job_ends(seed in any::<u64>(), node in 0..2000_i32, limit in 0..10_i32) {
        let mut env = environment(small());
        let run = |env: &mut DagScheduling| {
            let (mut n, mut buffers) = (0, Buffers::new(env.spaces(), 1));
            let spaces = env.spaces().clone();
            let out = roll_out(env, seed, |env| {
                env.observe(&mut buffers.row(&spaces, 0));
                n += 1;
                ChosenAction::Choices(vec![(node * n) % 100, (limit * n) % 10])
            });
            (out.unwrap(), buffers.0)
        };
        let (out, last) = run(&mut env);
        prop_assert_eq!(out.info[4], 0.0);
        prop_assert!((out.total + out.info[0]).abs() < 1e-6);
        prop_assert_eq!((out, last), run(&mut env));
    }
}
