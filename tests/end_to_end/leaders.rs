//! Tests three masters whose leader is killed repeatedly while frameworks run tasks: no task is lost, and none runs
//! twice. Bin-packing, training and video queries run, and pymesos where `TEPUI_PYTHON` names a Python that has it.
//!
//! `LEADERS_SECONDS` and `LEADERS_TASKS` make it longer. A started round of pymesos or of a bundled framework is always
//! finished.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::group::Group;
use crate::process::{Process, ToItsEnd};
use crate::support::{Daemon, Directory, call, free_port, look_for_within, tepui, until, wait_for};

/// Time from one kill to the next.
const BETWEEN: Duration = Duration::from_secs(5);

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn agent(directory: &Directory, name: &str, masters: &str) -> Daemon {
    let words = [
        "agent".to_owned(),
        "--ip=127.0.0.1".to_owned(),
        "--launcher=posix".to_owned(),
        "--resources=cpus:2.5;mem:4096;disk:4096".to_owned(),
        format!("--port={}", free_port()),
        format!("--master={masters}"),
        format!("--work_dir={}", directory.join(name)),
        format!("--runtime_dir={}", directory.join(&format!("{name}-run"))),
    ];
    let mut agent = Daemon::start(&directory.path().join(format!("{name}.log")), &words, &[]);
    agent.address().expect("the agent runs");
    agent
}

/// Returns the index of the master that reports that it leads. This is cheaper than reading its whole state.
fn leader(group: &Group) -> usize {
    wait_for("a master leads", || {
        (0..3).find(|index| {
            let metrics = call(&group.address(*index), "GET", "/metrics/snapshot");
            metrics.is_some_and(|metrics| metrics["master/elected"] == 1.0)
        })
    })
}

/// The bin-packing framework, with a job of this many tasks that each write a line.
struct Array<'d> {
    directory: &'d Directory,
    masters: String,
    _framework: Process,
    tasks: u64,
}

impl Array<'_> {
    fn start<'d>(directory: &'d Directory, masters: &str, tasks: u64) -> Array<'d> {
        let state = format!("--state-dir={}", directory.join("binpack"));
        let words = ["framework", "binpack", "--role=batch", &state, "--master", masters];
        let mut framework = Process::start(tepui().args(words));
        let masters = masters.to_owned();
        let job = |words: &[&str]| tepui().arg("job").args(words).env("TEPUI_MASTER", &masters).run();
        framework.until("bin-packing is known", || job(&["list"]).status.success());
        let file = format!(
            "[[job]]\nname = 'all'\nkind = 'array'\ncount = {tasks}\ncpus = 0.05\nmem = 8\n\
             command = 'echo $TEPUI_INDEX >> {}; sleep 1'\n",
            directory.join("lines")
        );
        let submitted = job(&["submit", &directory.write("all.toml", &file)]);
        assert!(submitted.status.success(), "{}", String::from_utf8_lossy(&submitted.stderr));
        Array { directory, masters, _framework: framework, tasks }
    }

    /// Returns the output of `tepui job show` once the job has ended.
    fn ended(&self) -> Option<Value> {
        let words = ["job", "show", "all", "--json", "--master", &self.masters];
        let said = tepui().args(words).run();
        let job: Value = serde_json::from_slice(&said.stdout).ok()?;
        job["summary"]["ended"].is_number().then_some(job)
    }

    /// Asserts that each task has run once.
    fn check(&self) {
        let job = look_for_within(Duration::from_secs(600), || self.ended()).expect("the job ends");
        let lines = std::fs::read_to_string(self.directory.join("lines")).unwrap_or_default();
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        lines.lines().for_each(|line| *counts.entry(line.parse().unwrap()).or_default() += 1);
        let twice: Vec<_> = counts.iter().filter(|(_, count)| **count != 1).collect();
        assert!(twice.is_empty(), "tasks ran more than once: {twice:?}");
        let missing: Vec<u64> = (0..self.tasks).filter(|index| !counts.contains_key(index)).collect();
        assert!(missing.is_empty(), "tasks did not run: {missing:?}");
        assert_eq!(job["summary"]["tasks"]["finished"], self.tasks, "{}", job["summary"]);
    }
}

/// Trains two jobs, and asserts the losses that they have without faults.
fn train(directory: &Directory, masters: &str, round: u64) {
    let jobs = directory.write("training.toml", crate::quality::TWO);
    let state = format!("--state-dir={}", directory.join(&format!("quality-{round}")));
    let words = ["framework", "quality", "--role=training", "--json", &state, "--master", masters, "--jobs", &jobs];
    let output = tepui().args(words).run();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let status = serde_json::from_slice(&output.stdout).unwrap_or_default();
    crate::quality::check(&status, &quality::job::parse("training.toml", crate::quality::TWO).unwrap());
}

/// Runs a query for cars on a short video.
fn watch(directory: &Directory, masters: &str, round: u64) {
    let video = directory.join("street.mp4");
    if round == 0 {
        let size = ["--width=320", "--height=180", "--seconds=4", "--seed=4", "--vehicles=60"];
        let made = tepui().args(["framework", "video", "generate", &video]).args(size).run();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    let query = "[[query]]\nname = \"gate\"\nkind = \"cars\"\nvideo = \"street.mp4\"\nmax_lag = 3.0\n";
    let queries = directory.write("queries.toml", query);
    let at = |name: &str| directory.join(&format!("{name}-{round}"));
    let (state, results) = (at("video"), at("results"));
    let words = ["framework", "video", "--role=video", "--master", masters, "--queries", &queries];
    let output = tepui().args(words).args(["--state-dir", &state, "--results", &results]).run();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found = std::fs::read_to_string(directory.path().join(format!("results-{round}/gate.jsonl")));
    assert!(found.is_ok_and(|found| found.lines().count() > 0), "the query has found nothing");
}

/// Runs pymesos, which knows one address; it redirects to the leader.
fn pymesos(python: &str, master: &str) {
    let script = "tests/python/pymesos_scheduler.py";
    let output = Command::new(python).args(["-W", "ignore", script, master]).run();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("all is well"), "{said}\n{errors}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "leaders are killed at times, whatever the frameworks do")]
fn leaders_are_killed_while_frameworks_run_tasks() {
    let (seconds, tasks) = (number("LEADERS_SECONDS", 12), number("LEADERS_TASKS", 1000));
    let mut group = Group::of_peers("leaders").started();
    let directory = Directory::new("leaders-work");
    let (masters, first) = (group.list(), group.address(0));
    leader(&group);
    let _agents = ["a1", "a2", "a3"].map(|name| agent(&directory, name, &masters));
    let array = Array::start(&directory, &masters, tasks);
    let over = AtomicBool::new(false);
    let repeat = |mut run: Box<dyn FnMut(u64) + Send + '_>| {
        let mut rounds = 0;
        while rounds == 0 || !over.load(Ordering::Relaxed) {
            run(rounds);
            rounds += 1;
        }
        rounds
    };
    std::thread::scope(|scope| {
        let training = scope.spawn(|| repeat(Box::new(|round| train(&directory, &masters, round))));
        let video = scope.spawn(|| repeat(Box::new(|round| watch(&directory, &masters, round))));
        let python = std::env::var("TEPUI_PYTHON").ok();
        let foreign = python.map(|python| {
            let (first, repeat) = (&first, &repeat);
            scope.spawn(move || repeat(Box::new(|_| pymesos(&python, first))))
        });
        let (start, mut kills) = (Instant::now(), 0);
        while start.elapsed() < Duration::from_secs(seconds) {
            let next = Instant::now() + BETWEEN;
            until("it is time for the next kill", || Instant::now() >= next);
            let leader = leader(&group);
            group.end(leader, "-KILL");
            group.start(leader, &[]);
            kills += 1;
        }
        array.check();
        over.store(true, Ordering::Relaxed);
        let rounds = [Some(training), Some(video), foreign].map(|thread| thread.map(|thread| thread.join().unwrap()));
        println!("{kills} leaders were killed; {tasks} tasks; rounds of training, video and pymesos: {rounds:?}");
    });
}
