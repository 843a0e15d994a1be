//! Tests of a worker's progress with its cores; whole runs are tested in the laboratory.

use super::*;
use crate::core::WorkerCommand;
use crate::pipeline::{Config, QueryKind};
use crate::schedule::Goals;
use crate::spec::QuerySpec;

fn at(seconds: f64) -> Time {
    Time::from_secs(1000) + Duration::from_secs_f64(seconds)
}

/// Creates a framework with a query of 100 s and a started worker, with this configuration and that many cores.
fn watching(config: Config, cores: f64) -> Modelled {
    let worker = WorkerCommand {
        program: "w".to_owned(),
        arguments: Vec::new(),
        uri: None,
        driver: String::new(),
        token: String::new(),
    };
    let mut modelled = Modelled::new(Options::new(worker));
    let spec = QuerySpec {
        name: "q".to_owned(),
        kind: QueryKind::Cars,
        video: std::path::Path::new("v").into(),
        reconnect: 0.0,
        scope: crate::pipeline::Scope::default(),
        detector: crate::vision::Detector::Colour,
        alert: false,
        model: None,
        looped: true,
        seconds: Some(100.0),
        truth: None,
        profile: None,
        goals: Goals { max_lag: 5.0, ..Goals::default() },
    };
    let cheap = Config { every: 8, ..Config::GOLDEN };
    let points = vec![
        Point { config: cheap, quality: 0.6, cores: 0.1 },
        Point { config: Config::GOLDEN, quality: 1.0, cores: 0.8 },
    ];
    modelled.submit(Submission { spec, points, golden: crate::pipeline::Config::GOLDEN });
    let worker = Worker { query: "q".to_owned(), orders: None, at: at(0.0), core_seconds: 0.0, used: 0.0, done: false };
    modelled.workers.insert("t".to_owned(), worker);
    modelled.start("t", Orders { config, cores }, at(0.0));
    modelled
}

#[test]
fn too_few_cores_fall_behind_and_more_catch_up() {
    let mut modelled = watching(Config::GOLDEN, 0.4);
    modelled.work(at(20.0));
    // Half of what arrives is processed.
    assert_eq!(modelled.means(at(20.0)), Some([1.0, 10.0, 1.0]));
    // Now the cheap configuration, with four times the cores that it needs.
    modelled.apply_orders("t", Orders { config: Config { every: 8, ..Config::GOLDEN }, cores: 0.4 }, at(20.0));
    modelled.work(at(22.0));
    assert_eq!(modelled.means(at(22.0)), Some([0.6, 4.0, 0.0]));
    modelled.work(at(30.0));
    let [_, lag, late] = modelled.means(at(30.0)).unwrap();
    assert_eq!((lag, late), (0.0, 0.0), "no worker is ahead of a stream");
    let worker = &modelled.workers["t"];
    assert!((worker.core_seconds - (20.0 * 0.4 + 20.0 * 0.1)).abs() < 1e-9, "{}", worker.core_seconds);
}

#[test]
fn the_end_of_a_stream_is_reported_with_its_means() {
    let mut modelled = watching(Config::GOLDEN, 0.8);
    modelled.work(at(100.0));
    modelled.report(at(100.0));
    assert!(modelled.workers["t"].done);
    modelled.apply_orders("t", Orders { config: Config::GOLDEN, cores: 0.8 }, at(100.0));
    let means = QueryMeans { quality: 1.0, lag: 0.0, late: 0.0 };
    let events = modelled.take_events();
    assert_eq!(events, [QueryEvent::Started("q".to_owned()), QueryEvent::Ended("q".to_owned(), Some(means))]);
    assert!(modelled.workers.is_empty() && modelled.means(at(101.0)).is_none());
}
