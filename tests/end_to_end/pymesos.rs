//! Tests pymesos from PyPI, unmodified: its scheduler and executor base classes launch twenty tasks on a cluster, kill
//! one, and reconcile. Its calls are in `tests/python/pymesos_scheduler.py`. It has no TLS.
//!
//! `cargo xtask test` installs the client and names its Python in `TEPUI_PYTHON`; without that the tests do not run.
use std::process::Command;

use crate::process::ToItsEnd;
use crate::support::Cluster;
use crate::tls::Secure;

/// Returns the Python that has pymesos.
fn python() -> Option<String> {
    let python = std::env::var("TEPUI_PYTHON").ok();
    if python.is_none() {
        println!("not run: TEPUI_PYTHON is not set; `cargo xtask test` sets it");
    }
    python
}

/// Runs the scheduler to its end.
fn launch_twenty(python: &str, master: &str) {
    let script = "tests/python/pymesos_scheduler.py";
    let output = Command::new(python).args(["-W", "ignore", script, master]).run();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("all is well"), "{said}\n{errors}");
}

#[test]
fn twenty_tasks_one_killed_all_reconciled() {
    let Some(python) = python() else { return };
    let cluster = Cluster::start("pymesos", 2, "cpus:4;mem:1024;disk:1024");
    launch_twenty(&python, &cluster.master);
}

#[test]
fn beside_tls_it_works_with_plain_connections() {
    let Some(python) = python() else { return };
    let cluster = Secure::start("pymesos-tls", &["--tls_support_downgrade"]);
    launch_twenty(&python, &cluster.address);
}
