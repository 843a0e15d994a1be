//! Tests `--recover=cleanup`: the processes that an earlier agent has left have ended when the agent reports it.

use serde_json::json;

use crate::one_agent::{OneAgent, a_little};
use crate::process::Process;
use crate::support::get;

/// Returns the processes with this command line.
fn processes(words: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.trim() == words {
            found.push(format!("{} {line}", entry.file_name().display()));
        }
    }
    found
}

#[test]
fn an_agent_that_cleans_up_leaves_no_process() {
    for launcher in ["posix", "linux"] {
        if launcher == "linux" && !nix::unistd::geteuid().is_root() {
            continue;
        }
        let mut cluster = OneAgent::start(&format!("cleanup-{launcher}"), &[format!("--launcher={launcher}")]);
        // A command line that no other process has, run twice: by the task, and outside of it.
        let program = format!("sleep 777{}", std::process::id());
        let script = format!("echo up; setsid {program} & exec {program}");
        // An executor that shuts down, and whose last update is not acknowledged, waits for this long.
        let kill_policy = json!({"grace_period": {"nanoseconds": 1_000_000_000}});
        let mut task = Process::start(&mut cluster.execute(&json!({"name": "long", "task_id": {"value": "long"},
            "command": {"value": script}, "resources": a_little(), "kill_policy": kill_policy})));
        task.until("both run", || processes(&program).len() == 2);
        let executor = get(&cluster.agent_address(), "/containers").expect("the agent answers");
        let pid = executor
            .split("\"executor_pid\":")
            .nth(1)
            .and_then(|rest| rest.split([',', '}']).next())
            .unwrap()
            .to_owned();
        let output = cluster.end_with_an_agent(&["--recover=cleanup"]);
        // No framework remains to receive the task's end.
        task.kill();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && told.contains("cleaned up"), "{told}");
        assert_eq!(processes(&program), [""; 0]);
        let left = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(left.is_empty() || left.contains(") Z "), "the executor is left: {left}");
        let latest = cluster.directory.path().join("a/meta/slaves/latest");
        assert!(latest.symlink_metadata().is_err(), "the next agent takes up what has ended");
    }
}
