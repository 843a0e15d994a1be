//! Trainings from scratch on small jobs: the result does not depend on threads or interruptions, and the policy
//! improves.

use std::sync::Arc;

use dag::learned::{Decima, Mode, Network};
use dag::order::{Heuristic, Policy};
use dag::study::generated;
use dag::study::orders::{WORKLOADS, Workload};

use crate::episode::Pool;
use crate::settings::{EpisodeSettings, Settings};
use crate::trainer::Trainer;

fn small() -> Settings {
    let lessons =
        EpisodeSettings { sets: 2, batches: 0.7, jobs: (4, 8), executors: (8, 16), load: (0.6, 0.9), scale: 0.3 };
    Settings { draws: 2, rollouts: 3, imitation: 2, episode: (60.0, 120.0), lessons, ..Settings::default() }
}

fn train(settings: &Settings, iterations: u64, threads: usize) -> Trainer {
    let mut trainer = Trainer::new(settings.clone()).unwrap();
    let pool = Pool::new(settings, None);
    for _ in 0..iterations {
        trainer.iterate(&pool, threads).unwrap();
    }
    trainer
}

#[test]
fn threads_and_pauses_change_nothing() {
    let settings = small();
    let whole = train(&settings, 5, 1);
    let first = train(&settings, 3, 3);
    let mut resumed = Trainer::resume(&first.checkpoint("a test".to_owned()).unwrap()).unwrap();
    let pool = Pool::new(&settings, None);
    while resumed.iteration() < 5 {
        resumed.iterate(&pool, 2).unwrap();
    }
    assert_eq!(resumed.network(), whole.network());
    assert_eq!(resumed.checkpoint(String::new()).unwrap(), whole.checkpoint(String::new()).unwrap());
    let other = train(&Settings { seed: 2, ..settings }, 3, 2);
    assert_ne!(other.network(), first.network());
}

#[test]
fn a_checkpoint_of_something_else_is_refused() {
    let model = train(&small(), 0, 1).model("no checkpoint".to_owned()).write().unwrap();
    let error = Trainer::resume(&model).unwrap_err();
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "the tensor 'adam.means' is missing");
    let none = Settings { rollouts: 1, ..small() };
    assert_eq!(Trainer::new(none).unwrap_err().to_string(), "invalid rollouts: must be 2 to 256");
}

#[test]
fn settings_that_are_missing_are_the_usual_ones() {
    let read = |text: &str| serde_json::from_str::<Settings>(text).map_err(|error| error.to_string());
    let sets = EpisodeSettings { sets: 3, ..EpisodeSettings::default() };
    assert_eq!(read(r#"{"lessons": {"sets": 3}}"#).unwrap(), Settings { lessons: sets, ..Settings::default() });
    let unknown = read(r#"{"lessons": {"set": 3}}"#).unwrap_err();
    assert!(unknown.starts_with("unknown field `set`, expected one of `sets`"), "{unknown}");
}

#[test]
fn a_setting_that_breaks_its_rule_is_named() {
    let refused = |change: fn(&mut Settings)| {
        let mut settings = small();
        change(&mut settings);
        Trainer::new(settings).unwrap_err().to_string()
    };
    assert_eq!(refused(|settings| settings.lessons.sets = 1_000_000_000), "invalid lessons.sets: must be 1 to 100");
    assert_eq!(refused(|settings| settings.lessons.scale = f64::NAN), "invalid lessons.scale: must be 0 to 10");
    let jobs = "invalid lessons.jobs: must be 1 to 1,000, the smaller number first";
    assert_eq!(refused(|settings| settings.lessons.jobs = (9, 8)), jobs);
    assert_eq!(refused(|settings| settings.episode.0 = 0.0), "invalid episode: must be 1 to 100,000 seconds");
    assert_eq!(refused(|settings| settings.discount = -1.0), "invalid discount: must be 0 to 1");
    assert_eq!(refused(|settings| settings.steps.1 = 0.0), "invalid steps: must be above 0, and 1 at most");
    assert_eq!(refused(|settings| settings.teacher.clear()), "invalid teacher: must be an order such as fair");
}

/// Returns the mean completion time of a job, in seconds, over batches that no training draws.
fn mean(policy: &dyn Fn() -> Box<dyn Policy>) -> f64 {
    let queries = generated::queries(1);
    let batch = Workload { jobs: 10, executors: 12, sizes: &["2g", "5g", "10g"], ..WORKLOADS[0] };
    let seeds = 1..=8;
    seeds.map(|seed| batch.run_with(&queries, &mut *policy(), seed).unwrap().mean()).sum::<f64>() / 8.0
}

fn of(network: &Arc<Network>) -> f64 {
    mean(&|| Box::new(Decima::new(network.clone(), Mode::Greedy)))
}

#[test]
fn a_training_of_seconds_is_better_than_chance_and_near_fair_shares() {
    let settings = Settings { imitation: 40, rollouts: 4, steps: (5e-3, 7e-4), ..small() };
    let trained = of(&train(&settings, 44, 2).network());
    let drawn = of(&Arc::new(Network::new(settings.seed)));
    let fair = mean(&|| Box::new(Heuristic::Fair));
    assert!(trained < 0.95 * drawn && trained < 1.1 * fair, "trained {trained}, drawn {drawn}, fair {fair}");
}
