//! Tests pymesos from PyPI, unmodified: its scheduler and executor base classes launch twenty tasks on a cluster of two
//! agents, kill one, and reconcile. Its calls are in `tests/python/pymesos_scheduler.py`.
//!
//! `cargo xtask test` installs the client and names its Python in `TEPUI_PYTHON`; without that the test does not run.
use std::process::Command;

use crate::process::ToItsEnd;
use crate::support::Cluster;

#[test]
fn twenty_tasks_one_killed_all_reconciled() {
    let Ok(python) = std::env::var("TEPUI_PYTHON") else {
        println!("not run: TEPUI_PYTHON is not set; `cargo xtask test` sets it");
        return;
    };
    let cluster = Cluster::start("pymesos", 2, "cpus:4;mem:1024;disk:1024");
    let script = "tests/python/pymesos_scheduler.py";
    let output = Command::new(python).args(["-W", "ignore", script, &cluster.master]).run();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("all is well"), "{said}\n{errors}");
}
