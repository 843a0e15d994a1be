//! pymesos from PyPI, unmodified: its scheduler and executor base classes launch twenty tasks on a cluster of two
//! agents, kill one, and reconcile. What it does is in `tests/python/pymesos_scheduler.py`.
//!
//! `cargo xtask test` installs the client and names its Python in `TEPUI_PYTHON`; without that there is nothing to run.
#![forbid(unsafe_code)]

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A cluster of the binary under test; ended with its owner.
struct Cluster {
    process: Child,
    master: String,
    /// Kept open: what the cluster prints later must go somewhere.
    _output: BufReader<ChildStdout>,
}

impl Cluster {
    fn start() -> Cluster {
        let binary = std::env::var("TEPUI").unwrap_or_else(|_| env!("CARGO_BIN_EXE_tepui").to_owned());
        let arguments = ["local", "--agents=2", "--port=0", "--resources=cpus:4;mem:1024;disk:1024"];
        let mut process = Command::new(binary).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        output.read_line(&mut first).unwrap();
        let master = first.trim().rsplit("http://").next().unwrap().to_owned();
        assert!(first.starts_with("master"), "{first}");
        Cluster { process, master, _output: output }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // An interrupt lets it remove its folder and its tasks; the child is not reaped yet, so the id is still its own.
        let _ = Command::new("kill").args(["-INT", &self.process.id().to_string()]).status();
        let _ = self.process.wait();
    }
}

#[test]
fn twenty_tasks_one_killed_all_reconciled() {
    let Ok(python) = std::env::var("TEPUI_PYTHON") else {
        println!("not run: TEPUI_PYTHON is not set; `cargo xtask test` sets it");
        return;
    };
    let cluster = Cluster::start();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/pymesos_scheduler.py");
    let output = Command::new(python).args(["-W", "ignore", script, &cluster.master]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("all is well"), "{said}\n{errors}");
}
