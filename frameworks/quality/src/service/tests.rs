//! Tests files that are restored or rejected, a worker without its driver, and the plot.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use super::common::DataDescription;
use super::files::Checkpoint;
use super::saved_model::SavedModel;
use super::stop::StopConditions;
use super::worker::{WorkerOptions, run};
use super::*;
use crate::evaluate::Evaluation;
use crate::frame::{ToDriver, ToWorker, decode, encode};
use crate::input::Format;
use crate::job::parse;
use crate::learn::LocalTraining;
use crate::scheduler::Iteration;

/// A directory of a test. Dropping it removes the directory.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("quality-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

fn job() -> Job {
    let text = "[[job]]\nname = \"a\"\nalgorithm = { kind = \"logistic-regression\" }\n\
                data = { generator = \"halves\", rows = 60, columns = 3 }\nshards = 2\n";
    parse("j", text).unwrap().remove(0)
}

fn trained(job: &Job, iterations: u64) -> LocalTraining {
    let prepared = worker::prepare(job, None).unwrap();
    let shards = (0..2).map(|s| prepared.shard(&job.algorithm, s, 2).unwrap()).collect();
    let mut local = LocalTraining::new(job.algorithm.clone(), prepared.shape(), shards).unwrap();
    (0..iterations).for_each(|_| assert!(local.iterate().is_ok()));
    local
}

#[test]
fn a_checkpoint_comes_back_and_a_damaged_or_foreign_one_does_not() {
    let directory = Directory::new("checkpoint");
    let path = directory.0.join("jobs/a.checkpoint");
    let (job, mut local) = (job(), trained(&job(), 5));
    let validation = Some(crate::scheduler::Score { loss: 2.5, accuracy: Some(0.25) });
    let iteration = Iteration { number: 4, loss: 2.0, accuracy: Some(0.5), validation, ..Iteration::default() };
    let last = Some(iteration);
    let fresh = Checkpoint::new(&job, local.learner().clone());
    let mut stopping = StopConditions::default();
    stopping.note(&job, &iteration, false, Some(vec![1.0]));
    let kept = stopping.clone();
    Checkpoint { losses: vec![3.0, 2.0], last, iterations: 5, stopping, ..fresh }.write(&path).unwrap();
    let back = Checkpoint::read(&path, &job).unwrap();
    assert_eq!((back.losses.as_slice(), back.last, back.iterations, back.stopping), (&[3.0, 2.0][..], last, 5, kept));
    let mut other = trained(&job, 0);
    other.resume(back.learner);
    assert_eq!(other.iterate().unwrap(), local.iterate().unwrap());
    let another = Job { iterations: 7, ..job.clone() };
    assert!(Checkpoint::read(&path, &another).is_none(), "it is another job's");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert!(Checkpoint::read(&path, &job).is_none(), "it is cut off");
    assert!(Checkpoint::read(&directory.0.join("none"), &job).is_none());
}

#[test]
fn a_model_is_kept_and_predicts_by_the_names_of_classes() {
    let directory = Directory::new("model");
    let job = job();
    let model = trained(&job, 30).learner().model().unwrap();
    let classes = ["no".to_owned(), "yes".to_owned()];
    let prepared = worker::prepare(&job, None).unwrap();
    let description =
        DataDescription { shape: prepared.shape(), classes: classes.to_vec(), schema: prepared.schema().clone() };
    let path = SavedModel::new(&job, &description, None, model.clone()).write(&directory.0).unwrap();
    let back = SavedModel::read(&path).unwrap();
    assert_eq!(back.model, model);
    let row = worker::prepare(&job, None).unwrap().shard(&job.algorithm, 0, 2).unwrap().rows().next().unwrap();
    assert_eq!(back.predict(&row), classes[model.predict(&row) as usize]);
    let training = back.training.as_ref().unwrap();
    assert!((&training.job, training.rows) == (&job, 60) && training.date.ends_with('Z'), "{training:?}");
    // A file with other columns has no predictions; one with labels has an evaluation.
    let refused = back.rows("new.csv", Format::Csv, "1,2,3,4\n").unwrap_err().to_string();
    assert_eq!(refused, "new.csv:1: has 4 columns, and the model was trained with 3");
    let read = back.rows("new.txt", Format::Csv, "1,2,3\n").unwrap();
    assert_eq!(read.data.rows().collect::<Vec<_>>(), [[1.0, 2.0, 3.0]]);
    let row = row.iter().map(f64::to_string).collect::<Vec<_>>().join(",");
    let answer = back.predict(&back.rows("new.csv", Format::Csv, &row).unwrap().data.rows().next().unwrap());
    let found = back.evaluate("new.txt", Format::Csv, &format!("{row},{answer}\n"), None).unwrap();
    let Evaluation::Classes(found) = found else { panic!() };
    assert_eq!((found.rows, found.accuracy), (1, 1.0));
    let sum: f64 = back.probabilities(&[0.0, 0.0, 0.0]).unwrap().iter().sum();
    assert!((sum - 1.0).abs() < 1e-12);
    // A model of version 1 has a width.
    let mut old: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    old["version"] = 1.into();
    let fields = old.as_object_mut().unwrap();
    ["schema", "training"].iter().for_each(|new| assert!(fields.remove(*new).is_some()));
    std::fs::write(&path, old.to_string()).unwrap();
    assert_eq!(SavedModel::read(&path).unwrap().schema.width, 3);
    std::fs::write(&path, "{\"version\":1}").unwrap();
    assert!(
        base::error_chain(&SavedModel::read(&path).unwrap_err()).contains("a.json: is not a model of this program")
    );
    assert!(SavedModel::read(&directory.0.join("b.json")).is_err());
}

fn options(driver: String, grace: Duration) -> WorkerOptions {
    WorkerOptions {
        driver,
        job: "a".into(),
        task: "worker.0.0".into(),
        token: "t".into(),
        cores: 1,
        pace: None,
        grace,
        keep: 0,
    }
}

/// Accepts a worker's connection, and returns its job, token and task.
fn greeted(listener: &TcpListener) -> (TcpStream, [String; 3]) {
    let (mut stream, _) = listener.accept().unwrap();
    let mut prefix = [0; 4];
    stream.read_exact(&mut prefix).unwrap();
    let mut bytes = vec![0; u32::from_le_bytes(prefix) as usize];
    stream.read_exact(&mut bytes).unwrap();
    match decode(&bytes) {
        Ok(ToDriver::Hello { job, token, task, .. }) => (stream, [job, token, task]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_worker_without_its_driver_ends_by_itself() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let driver = listener.local_addr().unwrap().to_string();
    let options = options(driver.clone(), Duration::from_millis(300));
    let worker = std::thread::spawn(move || run(&options, |_| {}));
    // The worker introduces itself; then the driver disappears for good.
    let (stream, hello) = greeted(&listener);
    assert_eq!(hello, ["a", "t", "worker.0.0"]);
    drop((stream, listener));
    let ended = worker.join().unwrap().unwrap_err();
    assert!(ended.to_string().contains(&format!("the driver at {driver} is gone")), "{ended}");
}

#[test]
fn a_worker_goes_to_another_job_when_the_scheduler_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let driver = listener.local_addr().unwrap().to_string();
    let worker = std::thread::spawn(move || {
        let mut told = Vec::new();
        run(&options(driver, Duration::from_secs(600)), |job| told.push(job.to_owned())).unwrap();
        told
    });
    let (mut stream, _) = greeted(&listener);
    stream.write_all(&encode(&ToWorker::Move { job: "b".into(), token: "u".into() }).unwrap()).unwrap();
    let (stream, hello) = greeted(&listener);
    assert_eq!(hello, ["b", "u", "worker.0.0"]);
    // The worker stays with its job when its connection breaks.
    drop(stream);
    let (mut stream, hello) = greeted(&listener);
    assert_eq!(hello, ["b", "u", "worker.0.0"]);
    stream.write_all(&encode(&ToWorker::Leave).unwrap()).unwrap();
    assert_eq!(worker.join().unwrap(), ["a", "b"]);
}

#[test]
fn the_picture_names_the_jobs() {
    let (_, requests) = sdk::requests();
    let worker = Worker { command: Vec::new(), driver: String::new(), cores: 1, mem: 1, pace: None };
    let settings = Settings { policy: Policy::Fair, epoch: Duration::from_secs(1), workers_max: 1, worker };
    let status = Quality::new(settings, requests).status(sdk::base::Time::EPOCH);
    let picture = plot::svg(&status);
    assert!(picture.starts_with("<svg") && picture.contains("policy fair: 0 jobs"), "{picture}");
}
