//! Records the losses of many real trainings as CSV, one training in a line: `job,algorithm,losses`, with spaces
//! between the losses.
//!
//! `cargo run --release -p quality --example curves -- [SEED] [JOBS] > curves.csv`: the same seed gives the same file
//! on every machine. The reproduction of SLAQ (docs/papers/slaq.md) shares cores among them.
#![allow(clippy::print_stdout, reason = "an example prints what it does")]
#![forbid(unsafe_code)]

use quality::job::{Job, parse};
use quality::learn::LocalTraining;

type Failed = Box<dyn std::error::Error>;

/// Convergence tolerance, as a share of a training's largest change of the loss. A loss that has changed by less than
/// this five times in a row has converged.
const TOLERANCE: f64 = 0.002;
/// Maximum number of iterations of a training.
const MOST: u64 = 250;

/// Returns the job file of a training by its number. All algorithms take turns, each on data of its own.
fn text(seed: u64, n: u64) -> String {
    // Settings depend on the seed and the number only, and look random.
    let draw = |what: u64, from: &[&str]| {
        let bits = base::scramble((seed << 32) ^ (n << 8) ^ what);
        from[(bits % from.len() as u64) as usize].to_owned()
    };
    let rows = draw(1, &["2000", "3000", "4000", "6000"]);
    let columns = draw(2, &["8", "12", "16", "24"]);
    let noise = draw(3, &["0.1", "0.2", "0.3"]);
    let rate = draw(4, &["0.05", "0.1", "0.2"]);
    let classes = draw(5, &["6", "8", "12"]);
    let data_seed = seed * 1_000 + n;
    let (algorithm, data) = match n % 8 {
        0 => (
            format!("kind = 'logistic-regression', learning_rate = {rate}"),
            format!("'halves', rows = {rows}, columns = {columns}, noise = {noise}"),
        ),
        1 => (
            "kind = 'linear-regression'".to_owned(),
            format!("'linear', rows = {rows}, columns = {columns}, noise = 1.5"),
        ),
        2 => (
            format!("kind = 'k-means', clusters = {classes}"),
            format!("'clouds', rows = {rows}, columns = {columns}, classes = 16, noise = 1.5"),
        ),
        3 => (
            format!("kind = 'linear-svm', learning_rate = {rate}"),
            format!("'halves', rows = {rows}, columns = {columns}, noise = {noise}"),
        ),
        4 => (
            format!("kind = 'boosted-trees', learning_rate = {rate}"),
            format!("'bumps', rows = {rows}, columns = 8, noise = 1.0"),
        ),
        5 => (
            "kind = 'perceptron', hidden = [12], learning_rate = 0.03".to_owned(),
            format!("'rings', rows = {rows}, columns = 6, noise = 0.15"),
        ),
        6 => (
            format!("kind = 'lda', topics = {classes}"),
            format!("'documents', rows = 600, columns = 100, classes = {classes}"),
        ),
        _ => (
            format!("kind = 'boosted-trees', task = 'classification', learning_rate = {rate}"),
            format!("'bumps', rows = {rows}, columns = 8, classes = 2, noise = 1.0"),
        ),
    };
    format!(
        "[[job]]\nname = 'job-{n:03}'\nalgorithm = {{ {algorithm} }}\ndata = {{ generator = {data}, seed = {data_seed} }}\n\
         iterations = {MOST}\n"
    )
}

/// Returns the losses of a training until it has converged.
fn losses(job: &Job) -> Result<Vec<f64>, Failed> {
    let prepared = job.data.prepare(&job.algorithm, None)?;
    let shard = prepared.shard(&job.algorithm, 0, 1)?;
    let mut losses =
        LocalTraining::new(job.algorithm.clone(), prepared.shape(), vec![shard])?.run(job.iterations)?.losses;
    let change = |n: usize| (losses[n - 1] - losses[n]).abs();
    let (mut largest, mut small, mut end) = (0.0_f64, 0, losses.len());
    for n in 1..losses.len() {
        largest = largest.max(change(n));
        small = if change(n) < TOLERANCE * largest { small + 1 } else { 0 };
        if small == 5 {
            end = n + 1;
            break;
        }
    }
    losses.truncate(end);
    Ok(losses)
}

fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (seed, jobs) = (number(1)?, number(160)?);
    println!("job,algorithm,losses");
    for n in 0..jobs {
        for job in parse("curves", &text(seed, n))? {
            let losses: Vec<String> = losses(&job)?.iter().map(|loss| format!("{loss:.6e}")).collect();
            println!("{},{},{}", job.name, job.algorithm.name(), losses.join(" "));
        }
    }
    Ok(())
}
