//! Tests users' programs, which are shell scripts in real workers: those that train, and those that break the protocol,
//! end, hang or are killed. The scheduler is a script, too.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::clock::now;
use super::common::Common;
use super::listener::{self, EVENTS_MAX, JobDriver, JobDrivers, Listener};
use super::program::ProgramDriver;
use super::worker::{WorkerOptions, run};
use crate::job::{Job, parse};
use crate::scheduler::{Answer, Directive, Iteration, Outcome, Question, Score};
use crate::trainer::Capabilities;

fn job(script: &str, options: &str) -> Job {
    let script = format!("'''read -r start\n{script}'''");
    let text = format!(
        "[[job]]\nname = \"a\"\nalgorithm = {{ kind = \"program\", command = [\"sh\", \"-c\", {script}]{options} }}\n"
    );
    parse("j", &text).unwrap().remove(0)
}

/// The messages about a training that a scheduler received.
#[derive(Debug)]
struct Trained {
    outcome: Outcome,
    iterations: Vec<Iteration>,
    repeated: Vec<u64>,
    capabilities: Option<Capabilities>,
}

fn worker(driver: SocketAddr, number: u32, cores: u32) -> WorkerOptions {
    WorkerOptions {
        driver: driver.to_string(),
        job: "a".into(),
        task: format!("worker.0.{number}"),
        token: "t".into(),
        cores,
        pace: None,
        grace: Duration::from_secs(20),
        keep: 0,
    }
}

/// Trains a job in one worker. If the program has done `leave` iterations, it must leave for a worker of three cores.
fn train(job: &Job, leave: Option<u64>) -> Trained {
    train_with(job, leave, None)
}

/// Trains a job as [`train`] does, with a directory for models.
fn train_with(job: &Job, leave: Option<u64>, models: Option<std::path::PathBuf>) -> Trained {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (requester, mut requests) = sdk::requests::<Question, Answer>();
        let wake_signal = requester.wake_signal();
        let common = Common { requester, started: now(), cores: 1, checkpoints: None, models, record: None };
        let job_drivers = JobDrivers::default();
        let (events, received) = mpsc::channel(EVENTS_MAX);
        listener::lock(&job_drivers).insert("a".into(), JobDriver { token: "t".into(), events });
        let (_ready, is_ready) = watch::channel(true);
        let listener = Listener::start(SocketAddr::from(([127, 0, 0, 1], 0)), job_drivers, is_ready).await.unwrap();
        let address = listener.address();
        let mut workers = vec![std::thread::spawn(move || run(&worker(address, 0, 1), |_| {}))];
        let options = job.program().unwrap().clone();
        let driver = tokio::spawn(ProgramDriver::new(common, job.clone(), options, received, 0.0).run(None));
        let (mut iterations, mut repeated, mut capabilities) = (Vec::new(), Vec::new(), None);
        let outcome = 'ended: loop {
            for request in &mut requests {
                let mut directive = Directive::default();
                let mut ended = None;
                match &request.question {
                    Question::Progress(progress) => {
                        iterations.extend(progress.iteration);
                        repeated.extend(progress.repeated);
                        capabilities = progress.capabilities.or(capabilities);
                        if leave.is_some_and(|leave| iterations.len() as u64 >= leave) {
                            directive.leave.push("worker.0.0".into());
                            if workers.len() == 1 {
                                // The successor starts when the first worker has ended.
                                let first = workers.remove(0);
                                workers.push(std::thread::spawn(|| Ok(())));
                                workers.push(std::thread::spawn(move || {
                                    first.join().unwrap()?;
                                    run(&worker(address, 1, 3), |_| {})
                                }));
                            }
                        }
                    }
                    Question::Ended { outcome, .. } => ended = Some(outcome.clone()),
                    other => panic!("{other:?}"),
                }
                request.answer(Answer::Directive(directive));
                if let Some(outcome) = ended {
                    break 'ended outcome;
                }
            }
            tokio::time::timeout(Duration::from_secs(60), wake_signal.notified())
                .await
                .expect("the driver says nothing");
        };
        driver.await.unwrap();
        // A worker ends with its job, or reports why the program cannot run.
        tokio::task::spawn_blocking(move || workers.into_iter().for_each(|w| drop(w.join().unwrap()))).await.unwrap();
        Trained { outcome, iterations, repeated, capabilities }
    })
}

fn failed(script: &str, options: &str) -> String {
    match train(&job(script, options), None).outcome {
        Outcome::Failed(why) => why,
        other => panic!("{other:?}"),
    }
}

fn numbers(trained: &Trained) -> Vec<u64> {
    trained.iterations.iter().map(|i| i.number).collect()
}

#[test]
fn a_program_trains_until_it_ends() {
    let script = r#"echo '{"hello": {}}'
echo '{"iteration": 0, "loss": 0.75, "accuracy": 0.5}'
echo 'some words' >&2
echo '{"iteration": 1, "loss": 0.5, "validation": {"loss": 0.625}, "samples": 10}'"#;
    let trained = train(&job(script, ""), None);
    assert_eq!(trained.outcome, Outcome::Finished("its program has ended".into()));
    assert_eq!((numbers(&trained), trained.capabilities), (vec![0, 1], Some(Capabilities::default())));
    let [first, second] = trained.iterations[..] else { panic!("{trained:?}") };
    assert_eq!((first.loss, first.accuracy, first.workers), (0.75, Some(0.5), 1.0));
    assert_eq!((second.loss, second.validation), (0.5, Some(Score { loss: 0.625, accuracy: None })));
}

#[test]
fn a_program_ends_with_its_job_and_leaves_its_last_checkpoint() {
    // Without the target and the request the program does not end.
    let script = r#"echo '{"hello": {"checkpoints": true}}'
for i in 0 1 2; do echo "{\"iteration\": $i, \"loss\": 0.$((9 - i))}"; done
read -r request
case $request in *stop*) echo '{"checkpoint": "it is 2", "iteration": 2}'; exec sleep 600;; esac"#;
    let job = Job { iterations: 3, ..job(script, "") };
    let trained = train(&job, None);
    assert_eq!(trained.outcome, Outcome::Finished("all its iterations are done".into()));
    assert_eq!(numbers(&trained), [0, 1, 2]);
}

#[test]
fn lines_that_break_the_protocol_fail_the_job() {
    assert!(
        failed("echo 'epoch 1'", "").starts_with("line 1 of its standard output is not of the protocol, 'epoch 1'")
    );
    let nan = failed("echo '{\"hello\": {}}'; echo '{\"iteration\": 0, \"loss\": NaN}'", "");
    assert_eq!(nan, "line 2 of its standard output: loss must be a finite number");
    let order = failed("echo '{\"iteration\": 1, \"loss\": 1}'", "");
    assert_eq!(order, "line 1 of its standard output reports iteration 1; 0 comes next");
    let long = failed("head -c 4300000 /dev/zero | tr '\\000' x; echo", "");
    assert_eq!(long, "worker worker.0.0: line 1 of its standard output is longer than 4194304 bytes");
    assert!(failed("printf '\\377\\n'", "").ends_with("line 1 of its standard output is not UTF-8"));
}

#[test]
fn a_program_that_ends_early_hangs_or_is_not_there_fails_the_job() {
    let early = failed("echo '{\"iteration\": 0, \"loss\": 1}'; exit 3", "");
    let place = "its standard error is in the sandbox of task worker.0.0";
    assert_eq!(early, format!("its program ended with exit status 3 after 1 iterations; {place}"));
    assert_eq!(failed("exit 0", ""), "its program ended without an iteration");
    let hangs = failed("echo '{\"iteration\": 0, \"loss\": 1}'; exec sleep 600", ", silence = 1");
    assert_eq!(hangs, "its program has written no line for 1 s after 1 iterations: it hangs");
    let text = "[[job]]\nname = \"a\"\nalgorithm = { kind = \"program\", command = [\"/not/there\"] }\n";
    let missing = train(&parse("j", text).unwrap().remove(0), None).outcome;
    let wanted = "worker worker.0.0: cannot run '/not/there': No such file or directory (os error 2)";
    assert_eq!(missing, Outcome::Failed(wanted.into()));
    let killed = failed("kill -KILL $$", "");
    let times = "3 times without an iteration in between, after 0 iterations";
    assert_eq!(killed, format!("its program was ended by signal 9 {times}; {place}"));
}

/// A program that trains to iteration 5 from its checkpoint. The checkpoint tells where it was taken, and the losses
/// tell the number of cores.
const CONTINUES: &str = r#"echo '{"hello": {"elastic": true}}'
case $start in *'"checkpoint":null'*) next=0;; *'"checkpoint":"after 1"'*) next=2;; *) exit 9;; esac
case $start in *'"cores":3'*) loss=3;; *) loss=1;; esac
for i in 0 1 2 3 4 5; do
  [ $i -ge $next ] || continue
  echo "{\"iteration\": $i, \"loss\": $loss.$i}"
  [ $i = 1 ] && echo '{"checkpoint": "after 1", "iteration": 1}'
  [ $i = 2 ] && [ $next = 0 ] && END
done
exit 0"#;

#[test]
fn a_program_that_is_killed_continues_from_its_checkpoint_and_nothing_counts_twice() {
    let trained = train(&job(&CONTINUES.replace("END", "kill -KILL $$"), ""), None);
    assert_eq!(trained.outcome, Outcome::Finished("its program has ended".into()));
    assert_eq!(numbers(&trained), [0, 1, 2, 3, 4, 5]);
    assert_eq!(trained.repeated, [2], "what is done again is told");
    assert_eq!(trained.capabilities, Some(Capabilities { elastic: true, checkpoints: true }));
}

#[test]
fn a_program_that_is_killed_takes_its_processes_with_it() {
    // The process in the background keeps standard output open.
    let script = CONTINUES.replace("END", "{ sleep 600 & kill -KILL $$; }");
    let trained = train(&job(&script, ", silence = 60"), None);
    assert_eq!(trained.outcome, Outcome::Finished("its program has ended".into()));
    assert_eq!(numbers(&trained), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn with_patience_the_checkpoint_of_the_lowest_validation_loss_is_kept_over_a_restart() {
    // The program dies once after the best iteration, and continues from a later checkpoint.
    let script = r#"echo '{"hello": {"checkpoints": true}}'
case $start in *'"best":null'*) next=0;; *'"best":0.3'*) next=3;; *) exit 9;; esac
for i in 0 1 2 3 4 5 6 7; do
  [ $i -ge $next ] || continue
  case $i in 0) loss=0.5;; 1) loss=0.3;; *) loss=0.4$i;; esac
  echo "{\"iteration\": $i, \"loss\": 0.$((9 - i)), \"validation\": {\"loss\": $loss}}"
  case $i in 0|1|2|4) echo "{\"checkpoint\": \"after $i\", \"iteration\": $i}";; esac
  [ $i = 2 ] && [ $next = 0 ] && kill -KILL $$
done
exec sleep 600"#;
    let directory = std::env::temp_dir().join(format!("quality-best-{}", std::process::id()));
    let job = Job { patience: Some(4), ..job(script, "") };
    let trained = train_with(&job, None, Some(directory.clone()));
    let why = "its validation loss is lowest in iteration 2, and has not fallen since";
    assert_eq!(trained.outcome, Outcome::Finished(why.into()));
    assert_eq!(std::fs::read_to_string(directory.join("a.state")).unwrap(), "after 1");
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_program_that_is_to_have_other_cores_ends_and_its_successor_continues() {
    let stops = "{ read -r request; case $request in *stop*) exit 0;; *) exit 8;; esac; }";
    let trained = train(&job(&CONTINUES.replace("END", stops), ""), Some(3));
    assert_eq!(trained.outcome, Outcome::Finished("its program has ended".into()));
    let losses: Vec<(u64, f64)> = trained.iterations.iter().map(|i| (i.number, i.loss)).collect();
    // The third iteration was done before; it is repeated, and counts once.
    assert_eq!(losses, [(0, 1.0), (1, 1.1), (2, 1.2), (3, 3.3), (4, 3.4), (5, 3.5)]);
    assert_eq!((trained.iterations[2].workers, trained.iterations[3].workers), (1.0, 3.0));
}
