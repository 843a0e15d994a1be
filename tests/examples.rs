//! The programs of examples/ on a real cluster: what they print, and what a scheduler does that is killed and restarted.
#![forbid(unsafe_code)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

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
        let folder = std::env::temp_dir().join(format!("tepui-examples-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let binary = std::env::var("TEPUI").unwrap_or_else(|_| env!("CARGO_BIN_EXE_tepui").to_owned());
        let arguments = ["local", "--agents=1", "--port=0", "--resources=cpus:4;mem:1024;disk:1024"];
        let mut process = Command::new(binary).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        output.read_line(&mut first).unwrap();
        let master = first.trim().rsplit("http://").next().unwrap().to_owned();
        assert!(first.starts_with("master"), "{first}");
        Cluster { process, master, folder, _output: output }
    }

    /// An example with these arguments after the master.
    fn example(&self, name: &str, arguments: &[&str]) -> Command {
        let programs = Path::new(env!("CARGO_BIN_EXE_tepui")).parent().unwrap().join("examples");
        let program = programs.join(name);
        assert!(program.exists(), "{} is not built: cargo build --examples", program.display());
        let mut command = Command::new(program);
        command.arg(&self.master).args(arguments);
        command
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
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

fn lines(command: &mut Command) -> Vec<String> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut lines: Vec<String> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[expect(clippy::disallowed_methods, reason = "a file of another process can only be looked for, and a test must end")]
fn wait_for(what: &str, reached: impl Fn() -> bool) {
    let start = Instant::now();
    while !reached() {
        assert!(start.elapsed() < Duration::from_secs(60), "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn hello_and_a_custom_executor() {
    let cluster = Cluster::start("hello");
    let hello = lines(&mut cluster.example("hello", &[]));
    assert_eq!(hello.iter().filter(|l| l.ends_with("TASK_FINISHED")).count(), 10, "{hello:?}");
    let mut primes = lines(&mut cluster.example("executor", &[]));
    primes.retain(|line| line.contains("TASK_FINISHED"));
    let expected = [(1, 168), (2, 303), (3, 430), (4, 550), (5, 669)];
    assert_eq!(
        primes,
        expected.map(|(thousands, primes)| format!("below-{thousands}000: TASK_FINISHED {primes} primes"))
    );
}

#[test]
fn a_batch_tries_again_and_survives_its_schedulers_kill() {
    let cluster = Cluster::start("batch");
    let (state, seen, gate, runs) =
        (cluster.path("state"), cluster.path("seen"), cluster.path("gate"), cluster.path("runs"));
    let second_time_right = format!("test -e {seen} || {{ touch {seen}; exit 1; }}");
    // It waits until the test lets it go on, and writes down that it ran.
    let slow = format!("echo run >> {runs}; while ! test -e {gate}; do sleep 0.05; done");
    let start = || {
        let mut command = cluster.example("batch", &[&state, &slow, &second_time_right, "exit 3"]);
        command.stdout(Stdio::piped());
        command
    };
    let mut first = start().spawn().unwrap();
    wait_for("the slow command runs", || Path::new(&runs).exists());
    first.kill().unwrap();
    first.wait().unwrap();
    let second = start().spawn().unwrap();
    std::fs::write(&gate, "").unwrap();
    let output = second.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.ends_with("1 of 3 commands failed\n"), "{said}");
    assert!(said.contains("0-0: TASK_FINISHED"), "the task of the first scheduler was taken over: {said}");
    assert_eq!(std::fs::read_to_string(&runs).unwrap(), "run\n", "it ran once");
}
