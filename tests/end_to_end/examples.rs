//! Tests the programs of examples/ on a real cluster: their output, and a scheduler that is killed and restarted.
use std::path::Path;
use std::process::Command;

use crate::process::{Process, ToItsEnd};
use crate::support::Cluster;

fn cluster(name: &str) -> Cluster {
    Cluster::start(name, 1, "cpus:4;mem:1024;disk:1024")
}

/// Returns an example with these arguments after the master.
fn example(cluster: &Cluster, name: &str, arguments: &[&str]) -> Command {
    let programs = Path::new(env!("CARGO_BIN_EXE_tepui")).parent().unwrap().join("examples");
    let program = programs.join(name);
    assert!(program.exists(), "{} is not built: cargo build --examples", program.display());
    let mut command = Command::new(program);
    command.arg(&cluster.master).args(arguments);
    command
}

fn lines(command: &mut Command) -> Vec<String> {
    let output = command.run();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut lines: Vec<String> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn hello_and_a_custom_executor() {
    let cluster = cluster("examples-hello");
    let hello = lines(&mut example(&cluster, "hello", &[]));
    assert_eq!(hello.iter().filter(|l| l.ends_with("TASK_FINISHED")).count(), 10, "{hello:?}");
    let mut primes = lines(&mut example(&cluster, "executor", &[]));
    primes.retain(|line| line.contains("TASK_FINISHED"));
    let expected = [(1, 168), (2, 303), (3, 430), (4, 550), (5, 669)];
    assert_eq!(
        primes,
        expected.map(|(thousands, primes)| format!("below-{thousands}000: TASK_FINISHED {primes} primes"))
    );
}

#[test]
fn a_batch_tries_again_and_survives_its_schedulers_kill() {
    let cluster = cluster("examples-batch");
    let (state, seen, gate, runs) = (
        cluster.directory.join("state"),
        cluster.directory.join("seen"),
        cluster.directory.join("gate"),
        cluster.directory.join("runs"),
    );
    let second_time_right = format!("test -e {seen} || {{ touch {seen}; exit 1; }}");
    // The command records that it ran, and waits for a file of the test.
    let slow = format!("echo run >> {runs}; while ! test -e {gate}; do sleep 0.05; done");
    let start = || Process::start(&mut example(&cluster, "batch", &[&state, &slow, &second_time_right, "exit 3"]));
    let mut first = start();
    first.until("the slow command runs", || Path::new(&runs).exists());
    first.kill();
    let second = start();
    std::fs::write(&gate, "").unwrap();
    let said = String::from_utf8(second.output().stdout).unwrap();
    assert!(said.ends_with("1 of 3 commands failed\n"), "{said}");
    assert!(said.contains("0-0: TASK_FINISHED"), "the task of the first scheduler was taken over: {said}");
    assert_eq!(std::fs::read_to_string(&runs).unwrap(), "run\n", "it ran once");
}
