//! Tests the quality framework with real processes: jobs that compete on a cluster, a worker killed in the middle of an
//! iteration, the scheduler killed and restarted, and invalid input.
//!
//! The result of a training does not depend on its workers, so every test compares with the same training in this
//! process.

use std::collections::BTreeMap;
use std::process::Command;

use quality::job::{Job, parse};
use quality::learn::LocalTraining;
use serde_json::Value;

use crate::process::{Process, Stream, ToItsEnd};
use crate::support::{self, Cluster, Directory, look_for, tepui};

/// Starts a cluster with eight cores on two agents.
pub fn cluster(name: &str) -> Cluster {
    Cluster::start(&format!("quality-{name}"), 2, "cpus:4;mem:1024;disk:1024")
}

pub fn framework(cluster: &Cluster, more: &[&str]) -> Framework {
    let state = format!("--state-dir={}", cluster.directory.join("state"));
    let master = format!("--master={}", cluster.master);
    let words = ["framework", "quality", "--json", "--epoch=500ms", &state, &master];
    Framework::start(words.iter().chain(more))
}

/// The framework's process.
pub struct Framework {
    process: Process,
    api: String,
}

impl Framework {
    fn start<'a>(words: impl Iterator<Item = &'a &'a str>) -> Framework {
        let mut process = Process::start(tepui().args(words));
        let line = process.line(Stream::Stderr, &["API", "http://"]);
        let api = line.trim().rsplit("http://").next().unwrap().to_owned();
        Framework { process, api }
    }

    fn get(&self, path: &str) -> Value {
        self.call("GET", path)
    }

    pub fn call(&self, method: &str, path: &str) -> Value {
        support::call(&self.api, method, path).unwrap_or_else(|| panic!("no answer to {method} {path}"))
    }

    /// Waits until a job satisfies a condition, and returns it.
    pub fn wait_for(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut job = Value::Null;
        let found = look_for(|| {
            job = self.get(&format!("/jobs/{name}"));
            wanted(&job).then(|| job.clone())
        });
        found.unwrap_or_else(|| panic!("{job:#}"))
    }

    /// Waits until a worker's task has changed its job. That happens when jobs start and end: more of them are started
    /// if necessary.
    fn wait_for_a_move(&self) {
        let (mut first, mut guests) = (BTreeMap::new(), 0);
        let moved = look_for(|| {
            let status = self.get("/jobs");
            if status["jobs"].as_array().unwrap().iter().all(|j| j["name"] == "endless" || j["state"] == "finished") {
                guests += 1;
                let (status, said) = post(self, "POST", "/jobs", &QUICK.replace("quick", &format!("guest-{guests}")));
                assert_eq!(status, 201, "{said}");
            }
            let Value::Object(workers) = self.get("/workers") else { panic!("tasks by their ids") };
            let change = |(task, job): (String, Value)| *first.entry(task).or_insert(job.clone()) != job;
            // Every task is examined, so that all first jobs are known.
            workers.into_iter().map(change).filter(|moved| *moved).last().map(drop)
        });
        moved.unwrap_or_else(|| panic!("no worker changed its job: {first:?}"));
    }

    /// Waits for the end. Returns whether it was successful, the last status, and standard error.
    pub fn finish(self) -> (bool, Value, String) {
        let output = self.process.output();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), serde_json::from_slice(&output.stdout).unwrap_or_default(), errors)
    }
}

/// Returns the loss before the last of this many iterations of the same training, computed in this process.
fn expected(job: &Job, iterations: u64) -> f64 {
    let prepared = job.data.prepare(&job.algorithm, None).unwrap();
    let shards = (0..job.shards).map(|s| prepared.shard(&job.algorithm, s, job.shards).unwrap()).collect();
    let trained = LocalTraining::new(job.algorithm.clone(), prepared.shape(), shards).unwrap().run(iterations).unwrap();
    *trained.losses.last().unwrap()
}

pub fn job<'a>(status: &'a Value, name: &str) -> &'a Value {
    status["jobs"].as_array().unwrap().iter().find(|j| j["name"] == name).unwrap()
}

pub fn iteration(job: &Value) -> u64 {
    job["iteration"].as_u64().unwrap_or(0)
}

/// Returns a worker's process in this cluster, by the id of its task.
pub fn process_of(cluster: &Cluster, task: &str) -> Option<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut ids = processes.filter_map(|p| p.file_name().to_str()?.parse::<u32>().ok());
    ids.find(|id| {
        let ours =
            std::fs::read_link(format!("/proc/{id}/cwd")).is_ok_and(|cwd| cwd.starts_with(cluster.directory.path()));
        let words = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = words.split(|b| *b == 0).collect();
        ours && words.get(3) == Some(&&b"worker"[..]) && words.contains(&task.as_bytes())
    })
}

pub const TWO: &str = r#"
[[job]]
name = "convex"
algorithm = { kind = "logistic-regression" }
data = { generator = "halves", rows = 4800, columns = 10, seed = 1 }
iterations = 40

[[job]]
name = "crooked"
algorithm = { kind = "boosted-trees", depth = 2 }
data = { generator = "bumps", rows = 2400, columns = 6, seed = 2 }
iterations = 25
"#;

/// A job that never ends by itself, for tests of running jobs.
const ENDLESS: &str = r#"
[[job]]
name = "endless"
algorithm = { kind = "linear-regression" }
data = { generator = "linear", rows = 4800, columns = 4, seed = 3 }
iterations = 1000000
"#;

/// A job that ends soon.
const QUICK: &str = r#"
[[job]]
name = "quick"
algorithm = { kind = "linear-svm" }
data = { generator = "halves", rows = 1200, columns = 4, seed = 4 }
iterations = 6
"#;

/// Asserts that jobs have ended successfully, with the losses of the same trainings in this process.
pub fn check(status: &Value, jobs: &[Job]) {
    for wanted in jobs {
        let job = job(status, &wanted.name);
        let last = iteration(job);
        let state = if wanted.name == "endless" { "stopped" } else { "finished" };
        assert_eq!(job["state"], state, "{job:#}");
        assert!(last + 1 == wanted.iterations || state == "stopped", "{job:#}");
        let difference = job["loss"].as_f64().unwrap() - expected(wanted, last + 1);
        assert!(difference.abs() < 1e-12, "{}: {difference}", wanted.name);
        let history = job["history"].as_array().unwrap();
        assert!(history.windows(2).all(|w| iteration(&w[0]) < iteration(&w[1])), "nothing counts twice: {job:#}");
        let mut cores = history.iter().filter_map(|p| p["cores"].as_f64());
        assert!(cores.all(|c| (0.0..=8.0).contains(&c)), "{job:#}");
    }
}

#[test]
fn jobs_compete_and_a_worker_killed_in_mid_epoch_changes_nothing() {
    let cluster = cluster("compete");
    let text = format!("{TWO}{ENDLESS}");
    let file = cluster.directory.write("jobs.toml", &text);
    let framework = framework(&cluster, &["--jobs", &file, "--pace=40000"]);
    let many = |j: &Value| j["history"].as_array().is_some_and(|h| h.iter().any(|p| p["cores"].as_f64() >= Some(2.0)));
    framework.wait_for("endless", |j| iteration(j) >= 3 && many(j));
    // Workers start and end: takes the first one that can be killed.
    let running = framework.wait_for("endless", |j| {
        let victim =
            j["tasks"].as_array().and_then(|tasks| tasks.iter().find_map(|t| process_of(&cluster, t.as_str()?)));
        victim.is_some_and(|id| Command::new("kill").args(["-KILL", &id.to_string()]).status().unwrap().success())
    });
    framework.wait_for("endless", |j| iteration(j) >= iteration(&running) + 3);
    framework.wait_for_a_move();
    framework.call("POST", "/jobs/endless/stop");
    let (success, status, errors) = framework.finish();
    assert!(success, "{errors}");
    let jobs = parse("jobs.toml", &text).unwrap();
    check(&status, &jobs);
    for job in jobs {
        assert!(cluster.directory.path().join(format!("state/models/{}.json", job.name)).is_file());
    }
}

#[test]
fn a_scheduler_that_is_killed_goes_on_with_its_tasks() {
    let cluster = cluster("restart");
    let text = format!("{TWO}{QUICK}{ENDLESS}");
    let file = cluster.directory.write("jobs.toml", &text);
    let arguments = ["--jobs", &file, "--pace=25000"];
    let mut first = framework(&cluster, &arguments);
    let checkpoint = cluster.directory.path().join("state/jobs/endless.checkpoint");
    let done =
        first.wait_for("quick", |j| j["state"] == "finished" && j["tasks"].as_array().is_some_and(Vec::is_empty));
    let before =
        first.wait_for("endless", |j| iteration(j) >= 8 && j["cores"].as_u64() >= Some(1) && checkpoint.is_file());
    first.process.kill();
    let second = framework(&cluster, &arguments);
    // A task of the first scheduler works for the second.
    let adopted =
        |j: &Value| j["tasks"].as_array().unwrap().iter().any(|t| t.as_str().unwrap().starts_with("worker.0."));
    let after = second.wait_for("endless", |j| iteration(j) > iteration(&before) && adopted(j));
    // The job did not restart: its first iteration is the one from before.
    let begin = |j: &Value| ["iteration", "loss", "seconds"].map(|what| j["history"][0][what].clone());
    assert_eq!((begin(&after), &begin(&after)[0]), (begin(&before), &Value::from(0)), "{after:#}");
    // Ended jobs are unchanged, and are not repeated.
    assert_eq!(second.get("/jobs/quick"), done);
    second.call("POST", "/jobs/endless/stop");
    let (success, status, errors) = second.finish();
    assert!(success, "{errors}");
    check(&status, &parse("jobs.toml", &text).unwrap());
}

#[test]
fn a_loss_that_is_not_a_number_fails_the_job_and_says_so() {
    let cluster = cluster("nan");
    let data = cluster.directory.write("data.csv", "1e300,1\n-1e300,2\n3,3\n1e308,4\n");
    let jobs = format!(
        "[[job]]\nname = \"wild\"\nalgorithm = {{ kind = \"linear-regression\" }}\ndata = {{ file = \"{data}\" }}\nshards = 2\n"
    );
    let file = cluster.directory.write("jobs.toml", &jobs);
    let (success, status, errors) = framework(&cluster, &["--jobs", &file]).finish();
    assert!(!success && errors.contains("failed: wild"), "{errors}");
    let job = job(&status, "wild");
    assert_eq!(job["state"], "failed");
    assert!(job["reason"].as_str().unwrap().contains("the loss is not a number in iteration 0"), "{job:#}");
}

#[test]
fn bad_files_are_refused_with_file_line_and_rule() {
    let directory = Directory::new("quality-bad");
    let data = directory.write("data.csv", "1,2,yes\n3,x,no\n");
    let jobs = |algorithm: &str| {
        let text = format!(
            "[[job]]\nname = \"a\"\nalgorithm = {{ kind = \"{algorithm}\" }}\ndata = {{ file = \"{data}\" }}\n"
        );
        let path = directory.write("jobs.toml", &text);
        let arguments = ["framework", "quality", "--master=127.0.0.1:1", "--jobs"];
        let output = tepui().args(arguments).arg(&path).run();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let said = jobs("logistic-regression");
    let wanted = format!("{data}:2: column 2 is 'x', and must be a finite number");
    assert!(said.contains("job 'a'") && said.contains(&wanted), "{said}");
    let said = jobs("magic");
    assert!(said.contains("jobs.toml:3: unknown variant `magic`"), "{said}");
}

/// Sends a call with a body to the API; returns the status, and the text.
fn post(framework: &Framework, method: &str, path: &str, body: &str) -> (u16, String) {
    let answer = support::request(&framework.api, method, path, body).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[test]
fn jobs_are_submitted_stopped_and_removed_by_the_api_and_outlive_a_restart_before_their_time() {
    let cluster = cluster("api");
    let mut first = framework(&cluster, &["--pace=100000"]);
    let call = |framework: &Framework, method: &str, path: &str, body: &str| post(framework, method, path, body);
    let later = ENDLESS.replace("endless", "later") + "after = 1000\n";
    let (status, said) = call(&first, "POST", "/jobs", &format!("{QUICK}{later}"));
    assert!(status == 201 && said.contains("quick") && said.contains("later"), "{status} {said}");
    // All or none: a job of that name exists, though its time has not come.
    let (status, said) = call(&first, "POST", "/jobs", &format!("{ENDLESS}{later}"));
    assert!(status == 400 && said.contains("there is a job 'later' already"), "{status} {said}");
    assert_eq!(call(&first, "GET", "/jobs/endless", "").0, 404);
    let (status, said) = call(&first, "POST", "/jobs", &QUICK.replace("iterations = 6", "iterations = 0"));
    assert!(status == 400 && said.contains("iterations: must be between 1 and 1000000 for linear-svm"), "{said}");
    first.wait_for("quick", |j| j["state"] == "finished" && j["tasks"].as_array().is_some_and(Vec::is_empty));
    // The results of the training.
    assert_eq!(first.get("/models")["models"], serde_json::json!(["quick"]));
    assert_eq!(first.get("/models/quick")["kind"], "linear-svm");
    assert_eq!(call(&first, "GET", "/models/later", "").0, 404);
    let (status, picture) = call(&first, "GET", "/plot.svg", "");
    assert!(status == 200 && picture.contains("<svg") && picture.contains("quick"), "{picture}");
    // A running job is not removed; an ended one is, once.
    assert_eq!(call(&first, "DELETE", "/jobs/later", "").0, 409);
    assert_eq!(call(&first, "DELETE", "/jobs/quick", "").0, 200);
    assert_eq!(call(&first, "DELETE", "/jobs/quick", "").0, 404);
    assert_eq!(first.get("/jobs/later")["state"], "waiting");
    first.process.kill();
    let second = framework(&cluster, &["--pace=100000"]);
    assert_eq!(second.get("/jobs/later")["state"], "waiting");
    assert_eq!(call(&second, "POST", "/jobs/later/stop", "").0, 200);
    second.wait_for("later", |j| j["state"] == "stopped");
    assert_eq!(call(&second, "DELETE", "/jobs/later", "").0, 200);
    // The job is submitted as JSON, and again under the name that is free now.
    let job = serde_json::to_string(&parse("j", &QUICK.replace("quick", "later")).unwrap()[0]).unwrap();
    assert_eq!(call(&second, "POST", "/jobs", &job).0, 201);
    second.wait_for("later", |j| j["state"] == "finished");
}

#[test]
fn every_policy_trains_all_jobs_to_the_same_losses() {
    let cluster = cluster("policies");
    let text = format!("{TWO}{QUICK}")
        .replace("iterations = 40", "iterations = 15")
        .replace("iterations = 25", "iterations = 10");
    let file = cluster.directory.write("jobs.toml", &text);
    for policy in ["fair", "fifo", "shortest"] {
        let (policy, state) = (format!("--policy={policy}"), format!("--state-dir={}", cluster.directory.join(policy)));
        let master = format!("--master={}", cluster.master);
        // Fewer cores than jobs: a job without a core waits for its turn.
        let words = ["framework", "quality", "--json", "--epoch=200ms", "--cores=2", "--pace=200000", "--jobs", &file];
        let words = words.into_iter().chain([policy.as_str(), &state, &master]).collect::<Vec<_>>();
        let (success, status, errors) = Framework::start(words.iter()).finish();
        assert!(success, "{policy}: {errors}");
        assert_eq!(format!("--policy={}", status["policy"].as_str().unwrap()), policy);
        check(&status, &parse("jobs.toml", &text).unwrap());
    }
}

#[test]
fn sparse_data_is_learnt_from_and_a_job_that_fails_later_fails_the_command() {
    let cluster = cluster("sparse");
    // Each row has words out of 200; those with even numbers belong to one class.
    let row = |r: usize| {
        let class = r % 2;
        let words: Vec<String> =
            (0..6).map(|w| 1 + class + 2 * ((r * 7 + w * 17) % 100)).map(|c| format!("{c}:1")).collect();
        words
    };
    let mut text = String::new();
    for r in 0..400 {
        let mut words = row(r);
        words.sort_by_key(|w| w.split(':').next().unwrap().parse::<u32>().unwrap());
        words.dedup();
        text += &format!("{} {}\n", if r % 2 == 0 { "+1" } else { "-1" }, words.join(" "));
    }
    let data = cluster.directory.write("words.svm", &text);
    let wild = cluster.directory.write("wild.csv", "1e300,1\n-1e300,2\n3,3\n1e308,4\n");
    let jobs = format!(
        "[[job]]\nname = \"words\"\nalgorithm = {{ kind = \"logistic-regression\" }}\ndata = {{ file = \"{data}\" }}\n\
         shards = 4\niterations = 20\n\n\
         [[job]]\nname = \"wild\"\nalgorithm = {{ kind = \"linear-regression\" }}\ndata = {{ file = \"{wild}\" }}\n\
         shards = 2\nafter = 0.5\n"
    );
    let file = cluster.directory.write("jobs.toml", &jobs);
    let (success, status, errors) = framework(&cluster, &["--jobs", &file]).finish();
    assert!(!success && errors.contains("failed: wild"), "{errors}");
    let words = job(&status, "words");
    assert_eq!((words["state"].as_str(), words["accuracy"].as_f64()), (Some("finished"), Some(1.0)), "{words:#}");
    assert!(cluster.directory.path().join("state/models/words.json").is_file());
    assert!(!cluster.directory.path().join("state/models/wild.json").exists());
}
