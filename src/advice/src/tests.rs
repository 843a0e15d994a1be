//! Property tests of proposals. These invariants hold:
//!
//! - A proposal is never below the observed percentile of the risk.
//! - More risk never raises a proposal.
//! - A proposal is never above the request unless use shows a shortage, and then never below it.
//! - A proposal is never below what agents isolate, unless the request is.

use proptest::prelude::*;

use super::*;

const MEBIBYTE: f64 = 1_048_576.0;

/// Returns the history of a job whose tasks use these cores and megabytes in each second.
fn history(tasks: &[Vec<(f64, f64)>], throttled: f64) -> History {
    let mut history = History::default();
    for (number, seconds) in tasks.iter().enumerate() {
        let mut reading = Reading { at: 1_000.0, ..Reading::default() };
        history.add(&number.to_string(), reading);
        for (cores, megabytes) in seconds {
            reading.at += 1.0;
            reading.cpu_seconds += cores;
            reading.throttled_seconds += throttled;
            reading.rss_bytes = megabytes * MEBIBYTE;
            history.add(&number.to_string(), reading);
        }
    }
    history
}

#[test]
fn a_job_that_uses_little_requests_too_much() {
    let advice =
        history(&[vec![(0.1, 20.0); 30], vec![(0.1, 24.0); 30]], 0.0).advise(Amounts::of(1.0, 256.0), Risk::default());
    assert_eq!((advice.cpus.verdict, advice.mem.verdict), (Verdict::RequestsTooMuch, Verdict::RequestsTooMuch));
    // 60 of 72 independent measurements give a margin of 16.7 %. Two tasks of 72 give one of 49 % of 24 MB.
    assert_eq!(advice.recommended(), Amounts::of(0.12, 36.0));
    assert!(
        advice.mem.why.starts_with("the largest of 2 tasks is 24.0 MB (an upper end of the 95th"),
        "{}",
        advice.mem.why
    );
}

#[test]
fn many_tasks_are_judged_by_the_interval() {
    let tasks: Vec<Vec<(f64, f64)>> = (0..100).map(|n| vec![(0.5, 100.0 + f64::from(n)); 2]).collect();
    let advice = history(&tasks, 0.0).advise(Amounts::of(1.0, 1024.0), "0.1".parse().unwrap());
    let used = advice.mem.used.unwrap();
    assert_eq!((used.chosen.value, used.chosen.high), (189.0, Some(195.0)));
    assert_eq!(advice.mem.proposed, Some(Amounts::of(0.0, 225.0).mem), "195 MB and 15 %, rounded up");
}

#[test]
fn too_few_measurements_propose_nothing() {
    let advice = history(&[vec![(0.1, 20.0); 19]], 0.0).advise(Amounts::of(1.0, 256.0), Risk::default());
    assert_eq!((advice.cpus.verdict, advice.cpus.proposed), (Verdict::TooFew, None));
    assert_eq!((advice.mem.verdict, advice.mem.proposed), (Verdict::TooFew, None));
    assert_eq!(advice.recommended(), Amounts::of(1.0, 256.0));
    assert_eq!(advice.mem.why, "19 of 20 measurements: no proposal");
}

#[test]
fn shortages_raise_requests() {
    let requested = Amounts::of(0.5, 100.0);
    let throttled = history(&[vec![(0.5, 50.0); 30]], 0.2).advise(requested, Risk::default());
    assert_eq!(
        (throttled.cpus.verdict, throttled.cpus.recommended()),
        (Verdict::RequestsTooLittle, Amounts::of(0.75, 0.0).cpus)
    );
    let close = history(&[vec![(0.2, 95.0); 30]], 0.0).advise(requested, Risk::default());
    assert_eq!(close.mem.verdict, Verdict::RequestsTooLittle);
    assert!(close.mem.recommended() > requested.mem && close.cpus.verdict == Verdict::RequestsTooMuch, "{close:?}");
}

#[test]
fn jobs_and_roles_of_a_book() {
    let mut measurements = ClusterMeasurements::default();
    for round in 0..40_u64 {
        for (name, role, cores) in [("web.1", "prod", 0.1), ("web.2", "prod", 0.1), ("sweep-7", "batch", 1.0)] {
            measurements.add(&Sample {
                round,
                framework: "f".to_owned(),
                role: role.to_owned(),
                name: name.to_owned(),
                task: name.to_owned(),
                requested: Amounts::of(1.0, 128.0),
                reading: Reading {
                    at: round as f64,
                    cpu_seconds: cores * round as f64,
                    throttled_seconds: 0.0,
                    rss_bytes: 16.0 * MEBIBYTE,
                },
            });
        }
    }
    let report = measurements.report(Risk::default());
    let names: Vec<(&str, &str, f64)> = report.jobs.iter().map(|j| (&*j.job, &*j.role, j.tasks)).collect();
    assert_eq!(names, [("sweep", "batch", 1.0), ("web", "prod", 2.0)]);
    let prod = &report.roles[1];
    assert_eq!((prod.requested, prod.used), (Amounts::of(2.0, 256.0), Amounts::of(0.2, 32.0)));
    assert_eq!(prod.freed, prod.requested - prod.proposed);
    assert_eq!(report.total.freed, report.roles[0].freed + prod.freed);
    assert_eq!(report.roles[0].freed.cpus, Amounts::default().cpus, "it uses all that it asks for");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["jobs"][1]["cpus"]["requested"], 1.0, "{json}");
    assert_eq!(json["jobs"][1]["mem"]["verdict"], "requests_too_much", "{json}");
}

#[test]
fn samples_are_written_and_read() {
    let sample = Sample { name: "web.1".to_owned(), requested: Amounts::of(0.5, 64.0), ..Sample::default() };
    let line = serde_json::to_string(&sample).unwrap();
    assert!(line.contains(r#""cpus":0.5,"mem":64.0"#), "{line}");
    assert_eq!(serde_json::from_str::<Sample>(&line).unwrap(), sample);
}

#[test]
fn risks_are_checked() {
    assert_eq!("0.05".parse(), Ok(Risk::default()));
    for wrong in ["0", "0.51", "-1", "NaN", "x"] {
        assert_eq!(
            wrong.parse::<Risk>().unwrap_err().to_string().split(':').next(),
            Some(&*format!("invalid risk '{wrong}'"))
        );
    }
}

prop_compose! {
    fn any_tasks()(tasks in prop::collection::vec(prop::collection::vec((0.0..4.0_f64, 0.0..600.0_f64), 1..40), 1..90))
        -> Vec<Vec<(f64, f64)>> { tasks }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn proposals_keep_their_bounds(
        tasks in any_tasks(),
        (cpus, mem) in (0.001..8.0_f64, 1.0..1000.0_f64),
        throttled in prop_oneof![Just(0.0), 0.0..0.3_f64],
        risks in prop::collection::vec(0.001..0.5_f64, 2..6),
    ) {
        let history = history(&tasks, throttled);
        let requested = Amounts::of(cpus, mem);
        let mut risks = risks;
        risks.sort_unstable_by(f64::total_cmp);
        let mut before: Option<Amounts> = None;
        for risk in risks {
            let advice = history.advise(requested, Risk::try_from(risk).unwrap());
            for (part, least) in [(&advice.cpus, Amounts::of(0.01, 0.0).cpus), (&advice.mem, MEM_MIN)] {
                let Some(proposed) = part.proposed else {
                    prop_assert!(history.measured() < READINGS_MIN);
                    continue;
                };
                let used = part.used.unwrap();
                prop_assert!(proposed.to_f64() >= used.chosen.value, "{part:?}");
                prop_assert!(proposed >= least.min(part.requested), "{part:?}");
                match part.verdict {
                    Verdict::RequestsTooLittle => prop_assert!(proposed >= part.requested, "{part:?}"),
                    _ => prop_assert!(proposed <= part.requested, "{part:?}"),
                }
            }
            let wanted = advice.recommended();
            if let Some(before) = before {
                prop_assert!(wanted.cpus <= before.cpus && wanted.mem <= before.mem, "{before:?} -> {wanted:?} at {risk}");
            }
            before = Some(wanted);
        }
    }
}
