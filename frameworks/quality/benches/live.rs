//! Runs the sixteen jobs of `policies.rs` on a real cluster with real workers: a master, two agents of four cores, and
//! the framework's own command, with slaq, with fair and with shortest. Takes about eight minutes.
//!
//! A worker computes at most 400,000 numbers a second, so that eight workers equal eight cores also on a machine with
//! fewer cores. The benchmark compares the policies, not the machine's scheduler.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints what it has measured")]
#![forbid(unsafe_code)]

mod support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use quality::allocate::Policy;
use quality::job::Job;
use quality::replay::{Outcome, RecordedJob};
use support::{PACE, SLOTS, comparison, recorded, sixteen};

fn main() {
    let Ok(binary) = std::env::var("TEPUI") else {
        println!("not run: TEPUI does not name the program; `cargo xtask bench` sets it");
        return;
    };
    println!("sixteen trainings on eight worker slots of a real cluster; a slot looks at {PACE} numbers a second");
    let directory = std::env::temp_dir().join(format!("tepui-quality-live-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a place for temporary files");
    let runs: Vec<_> = [Policy::Slaq, Policy::Fair, Policy::Shortest]
        .iter()
        .map(|p| (p.name(), run(&binary, &directory, *p)))
        .collect();
    let curves = &runs[0].1.0;
    let outcomes: Vec<_> = runs.iter().map(|(name, (_, outcome))| (*name, outcome)).collect();
    comparison(curves, &outcomes);
    std::fs::remove_dir_all(&directory).expect("the directory is ours");
}

/// A running `tepui local` cluster. Dropping it stops the cluster.
struct Cluster {
    process: Child,
    master: String,
    _output: BufReader<ChildStdout>,
}

impl Cluster {
    fn start(binary: &str) -> Cluster {
        let arguments = ["local", "--agents=2", "--port=0", "--resources=cpus:4;mem:2048;disk:1024"];
        let mut process = Command::new(binary).args(arguments).stdout(Stdio::piped()).spawn().expect("TEPUI runs");
        let mut output = BufReader::new(process.stdout.take().expect("it is piped"));
        let mut first = String::new();
        output.read_line(&mut first).expect("the cluster says where it is");
        let master = first.trim().rsplit("http://").next().unwrap_or_default().to_owned();
        Cluster { process, master, _output: output }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let id = self.process.id().to_string();
        let ended = Command::new("kill").args(["-INT", &id]).status().and_then(|_| self.process.wait());
        if let Err(error) = ended {
            eprintln!("the cluster may still run: {error}");
        }
    }
}

fn run(binary: &str, directory: &Path, policy: Policy) -> (Vec<RecordedJob>, Outcome) {
    let cluster = Cluster::start(binary);
    let jobs = directory.join("sixteen.toml");
    std::fs::write(&jobs, include_str!("sixteen.toml")).expect("a temporary file");
    let record: PathBuf = directory.join(format!("{}.csv", policy.name()));
    let mut command = Command::new(binary);
    command.args(["framework", "quality", "--json", "--epoch=1secs"]);
    command.arg(format!("--master={}", cluster.master)).arg(format!("--policy={}", policy.name()));
    command.arg(format!("--cores={SLOTS}")).arg(format!("--pace={PACE}"));
    command.arg("--jobs").arg(&jobs).arg("--record").arg(&record);
    let output = command.output().expect("TEPUI runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&record).expect("the record");
    read(&text)
}

/// Parses a record into each job's losses and the end times of its iterations.
fn read(record: &str) -> (Vec<RecordedJob>, Outcome) {
    let jobs = sixteen();
    let mut lines: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for line in record.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |cell: usize| cells[cell].parse::<f64>().expect("a number");
        lines.entry(cells[0]).or_default().push((number(2), number(4)));
    }
    let of = |job: &Job| lines.remove(job.name.as_str()).expect("every job is in the record");
    let of_jobs: Vec<Vec<(f64, f64)>> = jobs.iter().map(of).collect();
    let seconds = |(job, of): (&Job, &Vec<(f64, f64)>)| of.iter().map(|(at, _)| at - job.after).collect();
    let ends = jobs.iter().zip(&of_jobs).map(seconds).collect();
    let makespan = of_jobs.iter().flatten().map(|(at, _)| *at).fold(0.0, f64::max);
    let losses = |of: &Vec<(f64, f64)>| of.iter().map(|(_, loss)| *loss).collect();
    let curves = jobs.iter().zip(&of_jobs).map(|(job, of)| recorded(job, losses(of))).collect();
    (curves, Outcome { ends, makespan, epochs: Vec::new() })
}
