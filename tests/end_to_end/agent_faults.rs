//! Kills an agent at every step of checkpointing a task, starting it and reporting it.
//!
//! Whatever the step: each task reaches one terminal state, none runs twice, and one that has run is reported as
//! finished.
use std::fs;
use std::path::Path;

use crate::process::Process;
use crate::support::{Daemon, Directory, free_port, tepui, wait_for};

/// Runs one task on an agent that ends at fault point `fault`, and is restarted without faults. Returns `false` if the
/// agent did not reach that many points.
fn one(directory: &Path, master: &str, fault: u64) -> bool {
    let own = directory.join(fault.to_string());
    fs::create_dir_all(&own).unwrap();
    let log = own.join("log");
    let words = |port: &str| -> Vec<String> {
        ["agent", "--ip=127.0.0.1", "--launcher=posix", "--resources=cpus:1;mem:64;disk:64"]
            .into_iter()
            .map(str::to_owned)
            .chain([
                format!("--port={port}"),
                format!("--master={master}"),
                format!("--attributes=fault:f{fault}"),
                format!("--work_dir={}", own.join("w").display()),
                format!("--runtime_dir={}", own.join("r").display()),
                "--registration_backoff_factor=10ms".to_owned(),
                // The agent waits for a running executor, also on a busy machine.
                "--executor_reregistration_timeout=15secs".to_owned(),
            ])
            .collect()
    };
    // The address must be the same after the restart: it identifies a registered agent.
    let port = free_port().to_string();
    let mut agent = Daemon::start(&log, &words(&port), &[("TEPUI_FAULT", fault.to_string())]);
    let runs = own.join("runs");
    let command = format!("echo run >> {}; sleep 0.2", runs.display());
    let mut execute = tepui();
    execute.args(["execute", "--checkpoint=true", "--resources=cpus:1;mem:32", "--master", master]);
    let mut execute = Process::start(execute.arg(format!("--command={command}")));
    let died = wait_for("the agent has ended, or its task", || match agent.ended() {
        true => Some(true),
        false => execute.has_ended().then_some(false),
    });
    if died {
        let _ = fs::rename(&log, own.join("log.before"));
        agent = Daemon::start(&log, &words(&port), &[]);
    }
    wait_for("the task comes to an end", || {
        let ended = execute.has_ended();
        let said = || fs::read_to_string(&log).unwrap_or_default();
        assert!(ended || !agent.ended(), "the agent has ended before its task: {}", said());
        ended.then_some(())
    });
    let told = String::from_utf8_lossy(&execute.output().stdout).into_owned();
    let ran = fs::read_to_string(&runs).unwrap_or_default().lines().count();
    let point = fs::read_to_string(own.join("log.before")).unwrap_or_default();
    let point = point.lines().find(|line| line.starts_with("fault point")).unwrap_or("none").to_owned();
    match ran {
        // The task never ran: an update reports that, and the framework may launch it again.
        0 => assert!(
            ["DROPPED", "LOST", "GONE", "FAILED"].iter().any(|end| told.contains(&format!("TASK_{end}"))),
            "{point}: {told}"
        ),
        _ => assert!(ran == 1 && told.contains("TASK_FINISHED"), "{point}: it ran {ran} times: {told}"),
    }
    // The agent unregisters, so that the next task is launched on the next agent.
    agent.signal("-USR1");
    wait_for("the agent leaves", || agent.ended().then_some(()));
    // An ending executor may still write here: the rest is deleted with the test's directory.
    let _ = fs::remove_dir_all(&own);
    died
}

/// Tests each fault point of one task's life: `TEPUI_FAULTS=STEP` tests every STEPth only, 1 tests all.
#[test]
fn killed_at_every_step() {
    let directory = Directory::new("faults");
    let log = directory.path().join("m.log");
    let words = ["master", "--ip=127.0.0.1", "--port=0", "--registry=in_memory", "--allocation_interval=50ms"];
    let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    words.push(format!("--work_dir={}", directory.join("m")));
    let mut master = Daemon::start(&log, &words, &[]);
    let address = master.address().expect("the master runs");
    let step = std::env::var("TEPUI_FAULTS").ok().and_then(|step| step.parse().ok()).unwrap_or(3);
    let mut last = 0;
    while one(directory.path(), &address, last + 1) {
        last += step;
    }
    assert!(last > 20, "there are far more points in a task's life: {last}");
    println!("killed at {} of {last} points", last / step);
}
