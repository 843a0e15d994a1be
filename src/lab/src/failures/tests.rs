//! Tests of the study on generated traces.

use std::path::Path;

use advice::ends::Score;

use super::*;
use crate::scenario::{TaskEvent, google_events};

fn small() -> GeneratedTrace {
    GeneratedTrace { jobs: 700, days: 2.0, seed: 3 }
}

fn of_text(text: &str, from: f64) -> Outcome {
    evaluate(google_events(text.as_bytes(), Path::new("made")), from, 1).unwrap()
}

#[test]
fn the_made_trace_is_one_of_the_format() {
    let text = generate_trace(&small());
    assert_eq!(text, generate_trace(&small()), "the same seed makes the same trace");
    let events: Vec<_> = google_events(text.as_bytes(), Path::new("made")).map(Result::unwrap).collect();
    assert!(events.windows(2).all(|pair| pair[0].time <= pair[1].time));
    for event in [TaskEvent::Finish, TaskEvent::Fail, TaskEvent::Kill, TaskEvent::Evict] {
        assert!(events.iter().filter(|one| one.event == event).count() > 50, "{event:?}");
    }
}

#[test]
fn it_predicts_better_than_the_most_frequent_end() {
    let outcome = of_text(&generate_trace(&small()), 86_400.0);
    for score in [outcome.events, outcome.jobs] {
        assert!(score.count() > 200, "{outcome:?}");
        assert!(score.accuracy() > score.most_frequent(), "{outcome:?}");
    }
    for running in &outcome.running {
        assert_eq!(running.then.count(), running.at_launch.count());
    }
    assert!(outcome.running[0].then.count() < outcome.events.count());
}

#[test]
fn predictions_do_not_know_the_end() {
    // The two traces differ in the last end only: the predictions are equal, the actual ends are not.
    let text = generate_trace(&small());
    let is_end = |line: &&str| line.split(',').nth(5) == Some("4");
    let last = text.lines().rfind(is_end).unwrap();
    let other = text.replace(last, &last.replacen(",4,user", ",3,user", 1));
    assert_ne!(text, other);
    let (one, other) = (of_text(&text, 86_400.0), of_text(&other, 86_400.0));
    assert_ne!(one.events, other.events);
    assert_eq!(predicted(&one.events), predicted(&other.events));
}

/// Returns how often each end was predicted.
fn predicted(score: &Score) -> [u64; 4] {
    let counts: [[u64; 4]; 4] = serde_json::from_value(serde_json::to_value(score).unwrap()["counts"].clone()).unwrap();
    std::array::from_fn(|column| counts.iter().map(|row| row[column]).sum())
}

#[test]
fn only_ended_launches_count() {
    let text = "0,,1,0,,0,u,0,0,0.1,0.1,0,0\n1000000,,1,0,,5,u,0,0,0.1,0.1,0,0\n\
                2000000,,2,0,,0,u,0,0,0.1,0.1,0,0\n3000000,,2,0,7,1,u,0,0,0.1,0.1,0,0\n";
    let outcome = of_text(text, 0.0);
    assert_eq!((outcome.events.count(), outcome.jobs.count()), (0, 0));
    let text = format!("{text}9000000,,2,0,7,4,u,0,0,0.1,0.1,0,0\n");
    let ended = of_text(&text, 0.0);
    assert_eq!((ended.events.count(), ended.jobs.count()), (1, 1));
    // What began in the first part does not count, although it ends later.
    let early = of_text(&text, 5.0);
    assert_eq!((early.events.count(), early.jobs.count(), early.learned), (0, 0, 1));
}
