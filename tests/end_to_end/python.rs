//! Tests the package in `python/`: a scheduler launches tasks on a cluster of two agents, fails over, reconciles and
//! kills; operator calls show it. Its calls are in `tests/python/tepui_scheduler.py`.
//!
//! `cargo xtask test` installs the package and names its Python in `TEPUI_PYTHON`; without that the test does not run.

use std::process::Command;

use crate::process::ToItsEnd;
use crate::support::{Cluster, binary};

/// Returns the Python with the package; `None` without `cargo xtask test`.
fn python() -> Option<String> {
    let python = std::env::var("TEPUI_PYTHON").ok();
    if python.is_none() {
        println!("not run: TEPUI_PYTHON is not set; `cargo xtask test` sets it");
    }
    python
}

#[test]
fn python_package_passes_its_own_tests_and_checks() {
    let Some(python) = python() else { return };
    let cache = std::env::temp_dir().join(format!("tepui-python-{}", std::process::id()));
    let cache = cache.to_string_lossy();
    for words in [
        &["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"][..],
        &["-m", "mypy", "--cache-dir", &cache, "src", "tests"],
        &["-m", "ruff", "check", "--no-cache", ".", "../tests/python/tepui_scheduler.py"],
    ] {
        let mut command = Command::new(&python);
        // The environments of `tepui.lab` run in this program.
        command.args(words).current_dir("python").env("PYTHONDONTWRITEBYTECODE", "1").env("TEPUI", binary());
        let output = command.run();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{words:?}: {said}\n{}", String::from_utf8_lossy(&output.stderr));
    }
    // mypy has created it, if it ran.
    let _ = std::fs::remove_dir_all(&*cache);
}

#[test]
fn python_package_runs_tasks_and_operator_calls() {
    let Some(python) = python() else { return };
    let cluster = Cluster::start("python", 2, "cpus:4;mem:1024;disk:1024");
    let output = Command::new(python).args(["tests/python/tepui_scheduler.py", &cluster.master]).run();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("done"), "{said}\n{errors}");
}
