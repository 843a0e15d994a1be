//! The package in `python/`: a scheduler launches tasks on a cluster of two agents, fails over, reconciles and kills;
//! operator calls see it. What it does is in `tests/python/tepui_scheduler.py`.
//!
//! `cargo xtask test` installs the package and names its Python in `TEPUI_PYTHON`; without that there is nothing to run.
use std::process::Command;

use crate::process::ToItsEnd;
use crate::support::Cluster;

#[test]
fn python_package_runs_tasks_and_operator_calls() {
    let Ok(python) = std::env::var("TEPUI_PYTHON") else {
        println!("not run: TEPUI_PYTHON is not set; `cargo xtask test` sets it");
        return;
    };
    let cluster = Cluster::start("python", 2, "cpus:4;mem:1024;disk:1024");
    let output = Command::new(python).args(["tests/python/tepui_scheduler.py", &cluster.master]).run();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("all is well"), "{said}\n{errors}");
}
