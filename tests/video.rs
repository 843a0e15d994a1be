//! Video queries on a real cluster: counted in real videos, with a worker that is killed, and a scheduler that is killed
//! and started again.
#![forbid(unsafe_code)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

fn binary() -> String {
    std::env::var("TEPUI").unwrap_or_else(|_| env!("CARGO_BIN_EXE_tepui").to_owned())
}

/// A cluster of the binary under test; ended with its owner.
struct Cluster {
    process: Child,
    master: String,
    folder: PathBuf,
    /// Kept open: what the cluster prints later must go somewhere.
    _output: BufReader<ChildStdout>,
}

impl Cluster {
    fn start(name: &str) -> Cluster {
        Cluster::with(name, 1.0)
    }

    /// A cluster of two agents with so many cores each.
    fn with(name: &str, cores: f64) -> Cluster {
        let folder = std::env::temp_dir().join(format!("tepui-video-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let resources = format!("--resources=cpus:{cores};mem:1024;disk:1024");
        let arguments = ["local", "--agents=2", "--port=0", &resources];
        let mut process = Command::new(binary()).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        output.read_line(&mut first).unwrap();
        let master = first.trim().rsplit("http://").next().unwrap().to_owned();
        assert!(first.starts_with("master"), "{first}");
        Cluster { process, master, folder, _output: output }
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn video(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(["framework", "video"]).args(arguments);
        command
    }

    /// A task of another framework that holds so many cores until it is dropped. Returns when it runs.
    fn hold(&self, cores: f64) -> Holder {
        let resources = format!("--resources=cpus:{cores};mem:32");
        let arguments = ["execute", "--master", &self.master, "--command=exec sleep 1000", &resources];
        let mut process = Command::new(binary()).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("TASK_RUNNING") {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "the task ended");
        }
        Holder { process, _said: said }
    }

    /// Agents on which this query's tasks run or ran, by task.
    fn agents(&self, query: &str) -> Vec<(String, String)> {
        let tasks = get(&self.master, "/tasks").unwrap_or_default();
        let mine = tasks["tasks"].as_array().into_iter().flatten().filter(|t| t["name"] == query);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        mine.map(|t| (text(&t["id"]), text(&t["slave_id"]))).collect()
    }

    /// Starts the framework and waits for its API's address.
    fn framework(&self, queries: &str) -> Framework {
        let mut command = self.video(&["--master", &self.master, "--queries", queries]);
        command.args(["--state-dir", &self.path("state"), "--results", &self.path("results")]);
        let mut process = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut said = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("http://") {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "the framework ended");
        }
        let address = line.trim().rsplit("http://").next().unwrap().to_owned();
        Framework { process, address, said }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // An interrupt lets it remove its folder and its tasks; the child is not reaped yet, so the id is still its own.
        let _ = Command::new("kill").args(["-INT", &self.process.id().to_string()]).status();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A task that holds cores.
struct Holder {
    process: Child,
    _said: BufReader<ChildStdout>,
}

impl Drop for Holder {
    fn drop(&mut self) {
        // An interrupt ends the task, too.
        let _ = Command::new("kill").args(["-INT", &self.process.id().to_string()]).status();
        let _ = self.process.wait();
    }
}

/// What a server says at a path, as JSON.
fn get(address: &str, path: &str) -> Option<Value> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()
}

/// A running scheduler.
struct Framework {
    process: Child,
    address: String,
    said: BufReader<std::process::ChildStderr>,
}

impl Framework {
    fn get(&self, path: &str) -> Option<Value> {
        get(&self.address, path)
    }

    fn call(&self, method: &str, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()
    }

    fn query(&self, name: &str) -> Option<Value> {
        self.get(&format!("/queries/{name}"))
    }

    fn is(&self, name: &str, field: &str, value: impl Into<Value>) -> bool {
        self.query(name).is_some_and(|q| q[field] == value.into())
    }

    fn position(&self, name: &str) -> f64 {
        self.query(name).and_then(|q| q["position"].as_f64()).unwrap_or(0.0)
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Framework {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "another process can only be looked at, and a test must end")]
fn wait_for(what: &str, mut reached: impl FnMut() -> bool) {
    let start = Instant::now();
    while !reached() {
        assert!(start.elapsed() < Duration::from_secs(90), "not within 90 s: {what}");
        std::thread::sleep(Duration::from_millis(30));
    }
}

/// The process that works on a task of this scheduler.
fn worker(task: &str, state: &str) -> Option<u32> {
    let control = std::fs::read_to_string(Path::new(state).join("video-control.json")).ok()?;
    let control: Value = serde_json::from_str(&control).ok()?;
    let driver = control["address"].as_str()?.to_owned();
    let pids = std::fs::read_dir("/proc").ok()?.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.into_iter().find(|pid| {
        let Ok(line) = std::fs::read(format!("/proc/{pid}/cmdline")) else { return false };
        let words: Vec<&[u8]> = line.split(|b| *b == 0).collect();
        words.contains(&b"worker".as_slice()) && words.contains(&task.as_bytes()) && words.contains(&driver.as_bytes())
    })
}

fn findings(path: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn queries_outlive_their_worker_and_their_scheduler() {
    let cluster = Cluster::start("outlive");
    let street = cluster.path("street.mp4");
    let mut made = cluster.video(&["generate", &street, "--seed=4", "--width=320", "--height=180"]);
    made.args(["--seconds=8", "--vehicles=90"]);
    assert!(made.stdout(Stdio::null()).status().unwrap().success());
    let queries = cluster.path("queries.toml");
    let query = |name: &str, kind: &str| {
        let ends = "loop = true\nmax_lag = 3.0\ntruth = \"street.json\"";
        format!("[[query]]\nname = \"{name}\"\nkind = \"{kind}\"\nvideo = \"street.mp4\"\n{ends}\n")
    };
    std::fs::write(&queries, query("gate", "cars") + &query("yard", "people")).unwrap();
    let mut first = cluster.framework(&queries);
    wait_for("both run", || first.position("gate") > 1.0 && first.position("yard") > 1.0);
    // A worker dies: its query goes on in another one, further on in the stream.
    let victim = worker("video-gate-1", &cluster.path("state")).expect("a worker");
    assert!(Command::new("kill").args(["-9", &victim.to_string()]).status().unwrap().success());
    wait_for("it is started again", || first.is("gate", "starts", 2) && first.is("gate", "state", "running"));
    let before = first.position("gate");
    assert!(before > 1.0, "{before}");
    // The scheduler dies: the workers go on, and the next one takes them over.
    first.kill();
    let mut second = cluster.framework(&queries);
    let enough = |f: &Framework, name: &str| f.query(name).is_some_and(|q| q["found"].as_u64() >= Some(6));
    wait_for("both go on", || enough(&second, "gate") && enough(&second, "yard") && second.position("gate") > before);
    assert!(second.is("gate", "starts", 2) && second.is("yard", "starts", 1), "tasks were taken over, none doubled");
    // Only what was shown some seconds ago is measured, and since the first thing that was found.
    let quality = |f: &Framework| f.query("yard").and_then(|q| q["measured_quality"].as_f64()).unwrap_or(0.0);
    wait_for("most is found", || quality(&second) > 0.5);
    // Without queries there is nothing left to do.
    second.call("DELETE", "/queries/gate").unwrap();
    second.call("DELETE", "/queries/yard").unwrap();
    let mut rest = String::new();
    wait_for("the framework ends", || second.process.try_wait().unwrap().is_some());
    second.said.read_to_string(&mut rest).unwrap();
    let status = second.process.wait().unwrap();
    assert!(status.success(), "{rest}");
    for name in ["gate", "yard"] {
        let found = findings(&cluster.path(&format!("results/{name}.jsonl")));
        assert!(found.len() >= 5, "{name}: {}", found.len());
        let mut seen: Vec<(i64, String)> = Vec::new();
        for finding in &found {
            let key = ((finding["at"].as_f64().unwrap() * 1000.0) as i64, finding["track"].to_string());
            assert!(!seen.contains(&key), "{name}: twice: {finding}");
            seen.push(key);
        }
    }
}

#[test]
fn a_query_without_enough_moves_to_the_agent_where_there_is_more() {
    let cluster = Cluster::with("moves", 0.2);
    let street = cluster.path("street.mp4");
    let mut made = cluster.video(&["generate", &street, "--seed=4", "--seconds=6", "--vehicles=90"]);
    assert!(made.stdout(Stdio::null()).status().unwrap().success());
    let queries = cluster.path("queries.toml");
    // Every frame must be looked at for this quality, and what is left on the first agent is too little for that.
    let query =
        "[[query]]\nname = \"gate\"\nkind = \"tracks\"\nvideo = \"street.mp4\"\nloop = true\nmin_quality = 1.0\n";
    std::fs::write(&queries, query).unwrap();
    let _stays = cluster.hold(0.18);
    let leaves = cluster.hold(0.2);
    let framework = cluster.framework(&queries);
    wait_for("it runs", || framework.position("gate") > 1.0);
    assert!(framework.is("gate", "starts", 1));
    drop(leaves);
    wait_for("it runs on the other agent", || {
        framework.query("gate").is_some_and(|q| q["task"] == "video-gate-2" && q["state"] == "running")
    });
    let moved = framework.position("gate");
    assert!(moved > 1.0, "it went on where it was: {moved}");
    wait_for("it goes on", || framework.position("gate") > moved + 3.0);
    let agents = cluster.agents("gate");
    let on = |task: &str| agents.iter().find(|(id, _)| id == task).map(|(_, agent)| agent.clone()).unwrap();
    assert_ne!(on("video-gate-1"), on("video-gate-2"));
    wait_for("the first worker has ended", || worker("video-gate-1", &cluster.path("state")).is_none());
    // Each full second of the stream was looked at once, by one worker or the other.
    let mut seen: Vec<(i64, String)> = Vec::new();
    for finding in findings(&cluster.path("results/gate.jsonl")) {
        let key = ((finding["at"].as_f64().unwrap() * 1000.0) as i64, finding["place"].to_string());
        assert!(!seen.contains(&key), "twice: {finding}");
        seen.push(key);
    }
    assert!(!seen.is_empty());
}

#[test]
fn videos_that_cannot_be_read_fail_their_query_with_what_was_found_before() {
    let cluster = Cluster::start("broken");
    let whole = cluster.path("whole.mp4");
    let mut made = cluster.video(&["generate", &whole, "--seed=4", "--width=320", "--height=180", "--seconds=6"]);
    assert!(made.arg("--vehicles=90").stdout(Stdio::null()).status().unwrap().success());
    let bytes = std::fs::read(&whole).unwrap();
    std::fs::write(cluster.path("cut.mp4"), &bytes[..bytes.len() * 3 / 4]).unwrap();
    let run = |name: &str| cluster.video(&["run", &cluster.path(name)]).output().unwrap();
    let output = run("cut.mp4");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("cut short") && said.contains("frames decoded before"), "{said}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("vehicle"), "what was found before is told");
    // A profile of the whole video, and a file that is cut short where the agents look.
    let queries = cluster.path("queries.toml");
    let mut profile = cluster.video(&["profile", &whole, "--seconds=4", "--output", &cluster.path("p.json")]);
    assert!(profile.stdout(Stdio::null()).status().unwrap().success());
    let text = "[[query]]\nname = \"cut\"\nkind = \"cars\"\nvideo = \"cut.mp4\"\nprofile = \"p.json\"\nmax_lag = 3\n";
    std::fs::write(&queries, text).unwrap();
    let mut command = cluster.video(&["--master", &cluster.master, "--queries", &queries, "--json"]);
    let output = command.args(["--results", &cluster.path("results")]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("failed: cut") && said.contains("cut short"), "{said}");
    assert!(!findings(&cluster.path("results/cut.jsonl")).is_empty());
    // A file of queries with a mistake is refused whole, with its line.
    std::fs::write(&queries, text.replace("max_lag = 3", "max_lag = -3")).unwrap();
    let output = cluster.video(&["--master", &cluster.master, "--queries", &queries]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("queries.toml:6") && said.contains("max_lag"), "{said}");
}
