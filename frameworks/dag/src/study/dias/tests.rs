//! Tests of the engine against its invariants, and against the model.

use super::*;

#[test]
fn the_same_seed_gives_the_same_run_and_only_evictions_waste() {
    let case = Case { low_per_high: 1.0, load: 0.7, jobs: 500 };
    for policy in policies(&case) {
        let outcome = run(&case, policy, 3);
        assert_eq!(outcome, run(&case, policy, 3));
        assert_eq!(outcome.wasted > 0.0, policy == Policy::Evicts, "{policy}");
        assert_eq!(outcome.sprinted > 0.0, policy.sprint().is_some(), "{policy}");
        // Sprints use at most the initial budget and the refill since.
        let refill = policy.sprint().map_or(0.0, |sprint| sprint.refill as f64 / 1000.0);
        assert!(outcome.sprinted <= 2000.0 + refill * outcome.span + 1.0);
    }
}

#[test]
fn drops_help_low_classes_and_sprints_high_ones() {
    let case = Case { low_per_high: 9.0, load: 0.8, jobs: 3000 };
    let all = compare(&case, &[1, 2]);
    let [waits, drops, sprints, both] = [1, 2, 3, 4].map(|n: usize| &all[n]);
    assert!(drops.mean[0].mean < 0.7 * waits.mean[0].mean, "{drops:?}");
    assert!(sprints.mean[1].mean < waits.mean[1].mean && both.mean[1].mean < drops.mean[1].mean);
    assert!(error(DropRatio::NONE) == 0.0 && drops.error > 0.01 && drops.error < 0.1, "{}", drops.error);
}

#[test]
fn jobs_that_give_way_lose_nothing_and_let_high_ones_wait_for_a_wave() {
    let case = Case { low_per_high: 1.0, load: 0.8, jobs: 2000 };
    let evicts = run(&case, Policy::Evicts, 5);
    let waits = run(&case, Policy::Waits, 5);
    let yields = run(&case, Policy::Yields(DropRatio::NONE, None), 5);
    assert!((yields.busy - waits.busy).abs() < 1e-6 * waits.busy, "the same work: {yields:?} {waits:?}");
    assert_eq!(yields.wasted, 0.0);
    // A wave takes five seconds; a job of low class waits while high ones run.
    assert!(yields.mean[1] < evicts.mean[1] + 5.0 && yields.mean[1] < waits.mean[1], "{yields:?} {evicts:?}");
    assert!(yields.mean[0] < evicts.mean[0], "{yields:?} {evicts:?}");
    let job = Job { at: 0.0, class: 0, tasks: 2 * SLOTS, setup: 2.0, waves: vec![5.0, 6.0] };
    assert_eq!(
        [0.0, 2.0, 2.5, 7.0, 7.5, 13.0].map(|done| job.boundary(DropRatio::NONE, done)),
        [2.0, 2.0, 7.0, 7.0, 13.0, 13.0]
    );
}

#[test]
fn the_model_is_near_the_simulation() {
    let case = Case { low_per_high: 9.0, load: 0.7, jobs: 20_000 };
    for compared in compare(&case, &[1, 2, 3]) {
        let Some(errors) = compared.model else { continue };
        assert!(errors.iter().all(|error| error.abs() < 0.12), "{}: {errors:?}", compared.policy);
    }
}
