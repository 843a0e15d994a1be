//! Tests the conditions that end a job: its loss, its accuracy, its deadline, a constant loss, its iterations, and a
//! loss that is not a number. The worker computes in the same process.

use std::collections::BTreeMap;

use tokio::sync::mpsc;

use super::clock::now;
use super::common::{Common, DataDescription};
use super::learner_driver::LearnerDriver;
use super::listener::{EVENTS_MAX, Event};
use super::worker;
use crate::frame::{ToWorker, decode};
use crate::job::{Job, Prepared, parse};
use crate::learn::{LocalTraining, ShardCache, partial, score};
use crate::scheduler::{Answer, Directive, Iteration, Outcome, Question};

const JOB: &str = r#"
[[job]]
name = "a"
algorithm = { kind = "logistic-regression" }
data = { generator = "halves", rows = 300, columns = 4, noise = 0.2, seed = 5 }
shards = 3
iterations = 60
"#;

fn job(more: &str) -> Job {
    parse("j", &format!("{JOB}{more}")).unwrap().remove(0)
}

/// Runs a driver, and returns its outcome and the iterations that it reported.
fn driven(
    job: &Job,
    age: f64,
    worker: impl AsyncFnOnce(&Job, Prepared, mpsc::Sender<Event>),
) -> (Outcome, Vec<Iteration>) {
    let (requester, mut requests) = sdk::requests::<Question, Answer>();
    let wake_signal = requester.wake_signal();
    let common = Common { requester, started: now(), cores: 1, checkpoints: None, models: None, record: None };
    let prepared = worker::prepare(job, None).unwrap();
    let (events, heard) = mpsc::channel(EVENTS_MAX);
    let (classes, schema) = (prepared.classes().to_vec(), prepared.schema().clone());
    let known = DataDescription { shape: prepared.shape(), classes, schema };
    let driver = LearnerDriver::new(common, job.clone(), known, heard, age).unwrap();
    let mut iterations = Vec::new();
    let scheduler = async {
        loop {
            for request in &mut requests {
                let outcome = match &request.question {
                    Question::Progress(progress) => {
                        iterations.extend(progress.iteration);
                        None
                    }
                    Question::Ended { outcome, .. } => Some(outcome.clone()),
                    other => panic!("{other:?}"),
                };
                request.answer(Answer::Directive(Directive::default()));
                if let Some(outcome) = outcome {
                    return outcome;
                }
            }
            wake_signal.notified().await;
        }
    };
    let others = async { tokio::join!(driver.run(None), worker(job, prepared, events)) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = runtime.block_on(async {
        tokio::pin!(others);
        tokio::select! {
            outcome = scheduler => outcome,
            _ = &mut others => panic!("the driver reports nothing"),
        }
    });
    (outcome, iterations)
}

/// Runs a correct worker.
async fn works(job: &Job, prepared: Prepared, events: mpsc::Sender<Event>) {
    let (frames, mut waiting) = mpsc::channel(64);
    events.send(Event::Joined { connection: 1, task: "worker.0.0".into(), cores: 1, frames }).await.unwrap();
    let mut kept = BTreeMap::new();
    while let Some(bytes) = waiting.recv().await {
        let Ok(ToWorker::Compute { round, shards, parameters }) = decode(&bytes[4..]) else { continue };
        for shard in shards {
            let held = (shard as usize).checked_sub(job.shards);
            let data = || match held {
                Some(held) => prepared.validation_shard(&job.algorithm, held, job.validation_shards()).unwrap(),
                None => prepared.shard(&job.algorithm, shard as usize, job.shards).unwrap(),
            };
            let (data, memory) = kept.entry(shard).or_insert_with(|| (data(), ShardCache::default()));
            let compute = if held.is_some() { score } else { partial };
            let values = compute(&job.algorithm, &prepared.shape(), &parameters, data, memory).unwrap();
            let partial = Event::Partial { connection: 1, round, shard, micros: 1, values };
            if events.send(partial).await.is_err() {
                return;
            }
        }
    }
}

/// Returns reference results: losses and accuracies.
fn trained(job: &Job) -> Vec<(f64, f64)> {
    let prepared = worker::prepare(job, None).unwrap();
    let shards = (0..job.shards).map(|s| prepared.shard(&job.algorithm, s, job.shards).unwrap());
    let mut local = LocalTraining::new(job.algorithm.clone(), prepared.shape(), shards.collect()).unwrap();
    (0..job.iterations).map(|_| local.iterate().map(|(_, loss, accuracy)| (loss, accuracy.unwrap())).unwrap()).collect()
}

fn finished(why: &str) -> Outcome {
    Outcome::Finished(why.to_owned())
}

#[test]
fn a_job_ends_with_its_iterations_its_loss_or_its_accuracy() {
    let known = trained(&job(""));
    let (outcome, iterations) = driven(&job(""), 0.0, works);
    assert_eq!(outcome, finished("all its iterations are done"));
    assert_eq!(iterations.iter().map(|i| (i.loss, i.accuracy.unwrap())).collect::<Vec<_>>(), known);
    assert!(iterations.iter().all(|i| i.workers == 1.0), "{iterations:?}");

    let loss = (known[20].0 + known[21].0) / 2.0;
    let (outcome, iterations) = driven(&job(&format!("target = {{ loss = {loss} }}")), 0.0, works);
    assert_eq!((outcome, iterations.len()), (finished("its loss is reached"), 22));
    let (outcome, _) = driven(&job(&format!("target = {{ loss = {loss}, go_on = true }}")), 0.0, works);
    assert_eq!(outcome, finished("all its iterations are done"));

    let best = known.iter().map(|k| k.1).fold(0.0, f64::max);
    let first = known.iter().position(|k| k.1 >= best).unwrap();
    let (outcome, iterations) = driven(&job(&format!("target = {{ accuracy = {best} }}")), 0.0, works);
    assert_eq!((outcome, iterations.len()), (finished("its accuracy is reached"), first + 1));
}

#[test]
fn a_job_ends_when_its_loss_stands_still_five_times_in_a_row() {
    let tolerance = 0.2;
    let known = trained(&job(""));
    let (mut largest, mut still) = (0.0_f64, 0);
    let end = (1..known.len()).find(|i| {
        let change = (known[i - 1].0 - known[*i].0).abs();
        // A step that is taken back leaves the loss exactly as it is.
        if change == 0.0 {
            return false;
        }
        largest = largest.max(change);
        still = if change <= tolerance * largest { still + 1 } else { 0 };
        still == 5
    });
    let (outcome, iterations) = driven(&job(&format!("tolerance = {tolerance}")), 0.0, works);
    assert_eq!(outcome, finished("its loss does not change any more"));
    assert_eq!(Some(iterations.len() - 1), end);
}

#[test]
fn a_deadline_is_kept_while_partial_results_keep_coming_and_counts_time_without_a_scheduler() {
    // The worker sends results of an old round again and again: no round is ever complete, and there is always an
    // event.
    let chatters = async |_: &Job, _: Prepared, events: mpsc::Sender<Event>| {
        let (frames, _waiting) = mpsc::channel(64);
        events.send(Event::Joined { connection: 1, task: "worker.0.0".into(), cores: 1, frames }).await.unwrap();
        let old = || Event::Partial { connection: 1, round: 0, shard: 0, micros: 1, values: Vec::new() };
        while events.send(old()).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    let (outcome, iterations) = driven(&job("target = { deadline = 0.2 }"), 0.0, chatters);
    assert_eq!((outcome, iterations.len()), (finished("its deadline has passed"), 0));
    // The job was submitted an hour ago, and had no driver since then.
    let (outcome, iterations) = driven(&job("target = { deadline = 1800 }"), 3600.0, works);
    assert_eq!((outcome, iterations.len()), (finished("its deadline has passed"), 0));
}

#[test]
fn a_worker_that_cannot_work_fails_its_job_with_its_words() {
    let fails = async |_: &Job, _: Prepared, events: mpsc::Sender<Event>| {
        let (frames, _waiting) = mpsc::channel(64);
        events.send(Event::Joined { connection: 1, task: "worker.0.7".into(), cores: 1, frames }).await.unwrap();
        events.send(Event::Failed { connection: 1, why: "no file".into() }).await.unwrap();
        std::future::pending::<()>().await;
    };
    let (outcome, _) = driven(&job(""), 0.0, fails);
    assert_eq!(outcome, Outcome::Failed("worker worker.0.7: no file".to_owned()));
}

#[test]
fn a_job_is_measured_on_rows_that_it_does_not_learn_from() {
    let job = job("validation = 0.25");
    let (outcome, iterations) = driven(&job, 0.0, works);
    assert_eq!(outcome, finished("all its iterations are done"));
    let known = trained(&job);
    assert_eq!(iterations.iter().map(|i| (i.loss, i.accuracy.unwrap())).collect::<Vec<_>>(), known);
    // The reference is computed here: the model of the last round on the last quarter of the rows.
    let whole = parse("j", JOB).unwrap().remove(0).data.prepare(&job.algorithm, None).unwrap();
    let data = whole.shard(&job.algorithm, 3, 4).unwrap();
    let prepared = worker::prepare(&job, None).unwrap();
    let shards = (0..job.shards).map(|s| prepared.shard(&job.algorithm, s, job.shards).unwrap());
    let mut local = LocalTraining::new(job.algorithm.clone(), prepared.shape(), shards.collect()).unwrap();
    (0..job.iterations).for_each(|_| assert!(local.iterate().is_ok()));
    let model = local.learner().model().unwrap();
    let right = data.rows().zip(&data.labels).filter(|(row, label)| model.predict(row) == **label).count();
    let last = iterations.last().unwrap().validation.unwrap();
    assert_eq!(last.accuracy, Some(right as f64 / 75.0));
    let loss = |(row, label): (Vec<f64>, &f64)| -model.probabilities(&row).unwrap()[*label as usize].ln();
    let loss = data.rows().zip(&data.labels).map(loss).sum::<f64>() / 75.0;
    assert!((last.loss - loss).abs() < 1e-9, "{} and {loss}", last.loss);
}

#[test]
fn a_job_with_patience_ends_when_its_validation_loss_does_not_fall_any_more() {
    // A deep forest on few noisy rows overfits.
    let text = r#"
[[job]]
name = "a"
algorithm = { kind = "boosted-trees", depth = 5, learning_rate = 0.5 }
data = { generator = "bumps", rows = 120, columns = 5, noise = 4, seed = 5 }
shards = 2
iterations = 60
validation = { share = 0.3, seed = 4 }
patience = 4
"#;
    let job = parse("j", text).unwrap().remove(0);
    let (outcome, iterations) = driven(&job, 0.0, works);
    let losses: Vec<f64> = iterations.iter().map(|i| i.validation.unwrap().loss).collect();
    let lowest = losses.iter().copied().fold(f64::INFINITY, f64::min);
    let best = losses.iter().position(|l| *l == lowest).unwrap();
    let why = format!("its validation loss is lowest in iteration {}, and has not fallen since", best + 1);
    assert_eq!((outcome, losses.len()), (finished(&why), best + 1 + 4), "{losses:?}");
    assert!(iterations.last().unwrap().loss < iterations[best].loss, "it would have gone on to learn by heart");
}

#[test]
fn clusters_that_do_not_change_any_more_end_their_job_by_default() {
    let text = r#"
[[job]]
name = "a"
algorithm = { kind = "k-means", clusters = 3 }
data = { generator = "clouds", rows = 300, columns = 2, classes = 3, seed = 5 }
shards = 2
"#;
    let job = parse("j", text).unwrap().remove(0);
    let (outcome, iterations) = driven(&job, 0.0, works);
    assert_eq!(outcome, finished("its loss does not change any more"));
    assert!(iterations.len() < 50, "{} iterations", iterations.len());
    let never = parse("j", &format!("{text}tolerance = 0\n")).unwrap().remove(0);
    assert_eq!(driven(&never, 0.0, works).1.len(), 200);
}

#[test]
fn a_first_step_that_is_far_too_long_is_not_taken_for_convergence() {
    let long = r#"learning_rate = 100000"#;
    let text = JOB.replace("\"logistic-regression\"", &format!("\"linear-svm\", {long}"));
    let (outcome, iterations) = driven(&parse("j", &text).unwrap().remove(0), 0.0, works);
    assert_eq!(outcome, finished("all its iterations are done"));
    assert!(iterations.last().unwrap().loss < 0.5 * iterations[0].loss, "{:?}", iterations.last());
}
