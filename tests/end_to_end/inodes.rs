//! Tests the files and directories that an agent creates for one task: all of them have readers, and there are no more.
//!
//! Each is an inode that has to be created, and deleted again. The paths are those of Mesos (docs/mesos/disk.md).

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::one_agent::{OneAgent, a_little};
use crate::process::ToItsEnd;
use crate::support::{call, tepui, until};

/// Paths of a task's executor in the work directory.
const WORK: [&str; 6] =
    ["", "/runs", "/runs/<container>", "/runs/<container>/stderr", "/runs/<container>/stdout", "/runs/latest"];

/// Paths of a task's executor below `meta` if its framework has checkpoints.
const META: [&str; 14] = [
    "",
    "/executor.info",
    "/executor_generated_for_command_task",
    "/runs",
    "/runs/<container>",
    "/runs/<container>/executor.sentinel",
    "/runs/<container>/http.marker",
    "/runs/<container>/pids",
    "/runs/<container>/pids/forked.pid",
    "/runs/<container>/tasks",
    "/runs/<container>/tasks/<task>",
    "/runs/<container>/tasks/<task>/task.info",
    "/runs/<container>/tasks/<task>/task.updates",
    "/runs/latest",
];

/// Adds everything in a directory to `found`: paths that start with `path` and a slash, and inodes.
fn everything_in(directory: &Path, path: &str, found: &mut Vec<(String, u64)>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = format!("{path}/{}", entry.file_name().display());
        let metadata = entry.metadata().unwrap();
        found.push((path.clone(), metadata.ino()));
        if metadata.is_dir() {
            everything_in(&entry.path(), &path, found);
        }
    }
}

/// Returns the files of a task's executor below a work directory or its `meta`, by paths below the executor's
/// directory.
fn of_task(root: &Path, task: &str, container: &str) -> BTreeSet<String> {
    let mut found = Vec::new();
    everything_in(&root.join("slaves"), "", &mut found);
    let marker = format!("/executors/{task}");
    let below = found.into_iter().filter_map(|(path, _)| path.split_once(&marker).map(|(_, below)| below.to_owned()));
    below
        .map(|path| path.replace(container, "<container>").replace(&format!("/tasks/{task}"), "/tasks/<task>"))
        .collect()
}

/// Runs a task that does nothing; the agent has removed it when this returns.
fn run(cluster: &OneAgent, id: &str, checkpoint: bool) {
    let task = json!({"name": id, "task_id": {"value": id}, "command": {"value": "true"}, "resources": a_little()});
    let mut execute = tepui();
    execute.args(["execute", "--master", &cluster.address, &format!("--checkpoint={checkpoint}")]);
    let output = execute.arg(format!("--task={task}")).run();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    until("its executor has ended", || {
        let state = call(&cluster.agent_address(), "GET", "/state").unwrap_or_default();
        state["frameworks"] == json!([])
    });
}

fn set(paths: &[&str]) -> BTreeSet<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

#[test]
fn a_task_makes_no_more_inodes_than_its_paths_need() {
    for launcher in ["posix", "linux"] {
        if launcher == "linux" && !nix::unistd::geteuid().is_root() {
            continue;
        }
        let cluster = OneAgent::start(&format!("inodes-{launcher}"), &[format!("--launcher={launcher}")]);
        let (work, runtime) = (cluster.directory.path().join("a"), cluster.directory.path().join("r"));
        let mut spares = Vec::new();
        for (id, checkpoint, meta) in [("plain", false, &[][..]), ("checkpointed", true, &META[..])] {
            run(&cluster, id, checkpoint);
            let sandbox = cluster.sandbox(id).expect("the sandbox stays");
            let container = sandbox.file_name().unwrap().to_str().unwrap().to_owned();
            until("its end is written down", || of_task(&work.join("meta"), id, &container).len() >= meta.len());
            assert_eq!(of_task(&work, id, &container), set(&WORK), "{launcher} {id}");
            assert_eq!(of_task(&work.join("meta"), id, &container), set(meta), "{launcher} {id}");
            shows_the_sandbox(&cluster, &sandbox);
            until("nothing is noted of it", || {
                fs::read_dir(runtime.join("containers")).is_ok_and(|mut entries| entries.next().is_none())
            });
            let mut found = Vec::new();
            everything_in(&runtime.join("spares"), "", &mut found);
            // Only a directory and the file that names the agent remain, unless the task ran for long enough to be
            // recorded.
            assert!(found.len() <= 2, "{launcher}: {found:?}");
            spares.push(found.into_iter().map(|(_, inode)| inode).collect::<Vec<_>>());
        }
        // The second task used the spares of the first one, so the inodes are the same.
        assert!(spares.iter().any(Vec::is_empty) || spares[0] == spares[1], "{launcher}: {spares:?}");
    }
}

/// Asserts that `/files/browse` shows the output of a task by Mesos's paths for it; `latest` is the newest run.
fn shows_the_sandbox(cluster: &OneAgent, sandbox: &Path) {
    let (real, runs) = (sandbox.to_str().unwrap(), sandbox.parent().unwrap());
    assert_eq!(fs::read_link(runs.join("latest")).unwrap(), sandbox);
    let latest = runs.join("latest").to_str().unwrap().to_owned();
    let by_framework = latest[latest.find("/frameworks/").unwrap()..].to_owned();
    for path in [real, &latest, &by_framework] {
        let shown = call(&cluster.agent_address(), "GET", &format!("/files/browse?path={path}")).unwrap_or_default();
        let paths: Vec<&Value> = shown.as_array().into_iter().flatten().map(|file| &file["path"]).collect();
        assert_eq!(paths, [&json!(format!("{path}/stderr")), &json!(format!("{path}/stdout"))], "{path}");
    }
}
