//! Tests disks that are full or return other errors: tasks continue, an agent keeps running and reports why it launches
//! nothing, and launches again when it can write. A line that cannot be written ends no executor and no daemon.
//!
//! Most tests need root, to mount small file systems.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::one_agent::{OneAgent, a_little};
use crate::process::Process;
use crate::small_disk::{Filling, SmallDisk};
use crate::support::{Directory, call, free_port, get, request, tepui, until, wait_for};

/// Returns the checkpoint of this name of a task's executor, its framework or its agent.
fn find_of(meta: &Path, name: &str, executor: &str) -> PathBuf {
    let pids = find(meta, "forked.pid", &format!("/executors/{executor}/")).expect("the executor has a checkpoint");
    pids.ancestors()
        .map(|directory| directory.join(name))
        .find(|path| path.exists())
        .expect("there is such a checkpoint")
}

/// Returns the first file of this name below a directory whose path contains `part`.
fn find(directory: &Path, name: &str, part: &str) -> Option<PathBuf> {
    fs::read_dir(directory).ok()?.flatten().find_map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => find(&entry.path(), name, part),
        _ => (entry.file_name() == name).then(|| entry.path()).filter(|path| path.to_string_lossy().contains(part)),
    })
}

const LAUNCHER: &str = "--launcher=posix";

/// Returns a command that prints a line and ends when the file exists.
fn until_there(file: &Path) -> Value {
    json!({"value": format!("echo up; while [ ! -e {} ]; do sleep 0.05; done", file.display())})
}

/// Starts a cluster whose agent has its work directory on this disk and has its journal and reserve.
fn cluster_on(name: &str, disk: &SmallDisk) -> OneAgent {
    let cluster = OneAgent::start_in(name, disk.path().join("a"), &[LAUNCHER.to_owned()]);
    until("the agent has its journal", || disk.path().join("a/meta/checkpoints.journal").exists());
    cluster
}

/// Returns the reason why the agent accepts no tasks, as its master shows it.
fn unhealthy(cluster: &OneAgent) -> Option<String> {
    let agents = call(&cluster.address, "GET", "/slaves")?;
    agents["slaves"][0]["attributes"]["unhealthy"].as_str().map(str::to_owned)
}

/// Waits until the master shows that the agent is unhealthy for this reason.
fn becomes_unhealthy(cluster: &OneAgent, why: &str) {
    let wanted = format!("cannot write checkpoints to {}: {why}", cluster.work_dir().display());
    until("the master shows why the agent takes no tasks", || unhealthy(cluster).as_deref() == Some(wanted.as_str()));
}

/// Calls the agent's operator API.
fn ask_agent(cluster: &OneAgent, call: &Value) -> String {
    request(&cluster.agent_address(), "POST", "/api/v1", &call.to_string()).expect("the agent answers")
}

/// Asserts that the agent refuses to launch a container, with the reason.
fn refuses_a_launch(cluster: &OneAgent, why: &str) {
    let told = ask_agent(
        cluster,
        &json!({"type": "LAUNCH_CONTAINER", "launch_container": {"container_id": {"value": "refused"},
            "command": {"value": "true"}}}),
    );
    assert!(told.starts_with("HTTP/1.1 503") && told.contains("Launch refused") && told.contains(why), "{told}");
}

/// Asserts that EXPLAIN of the only framework without a task names the agent's reason.
fn is_explained(cluster: &OneAgent, why: &str) {
    until("the explanation names the reason", || {
        let state = call(&cluster.address, "GET", "/frameworks").unwrap_or_default();
        let idle = |framework: &&Value| framework["tasks"].as_array().is_some_and(Vec::is_empty);
        let framework = state["frameworks"].as_array().and_then(|all| all.iter().find(idle).cloned());
        let Some(id) = framework.and_then(|framework| framework["id"].as_str().map(str::to_owned)) else {
            return false;
        };
        let call = json!({"type": "EXPLAIN", "explain": {"framework": id}}).to_string();
        request(&cluster.address, "POST", "/api/v1", &call)
            .is_some_and(|told| told.contains("unhealthy: cannot write checkpoints") && told.contains(why))
    });
}

/// Waits for the end of `tepui execute` and returns its output.
fn told(execute: Process) -> String {
    let output = execute.output();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

const FULL: &str = "No space left on device";

/// Asserts that a running task continues on a full disk, that its updates arrive, and that nothing new starts. With
/// space tasks are launched again.
fn tasks_go_on_on_a_full_disk(name: &str, disk: &SmallDisk, fill: fn(&SmallDisk) -> Filling) {
    let mut cluster = cluster_on(name, disk);
    let go = |number: u32| cluster_file(&cluster, &format!("go{number}"));
    let (first_go, second_go) = (go(1), go(2));
    let running = cluster.start_task("running", until_there(&first_go), json!({"type": "MESOS"}));
    let filling = fill(disk);
    // The agent detects the full disk as it launches.
    let unlucky = told(cluster.start_execute("unlucky", json!({"value": "true"})));
    assert!(unlucky.contains(FULL) || unlucky.contains("TASK_FINISHED"), "{unlucky}");
    becomes_unhealthy(&cluster, FULL);
    let waiting = cluster.start_execute("waiting", json!({"value": "true"}));
    is_explained(&cluster, FULL);
    refuses_a_launch(&cluster, FULL);
    fs::write(&first_go, "").unwrap();
    let ended = told(running);
    assert!(ended.contains("TASK_FINISHED"), "{ended}");
    filling.remove();
    let ended = told(waiting);
    assert!(ended.contains("TASK_FINISHED"), "{ended}");
    assert_eq!(unhealthy(&cluster), None);

    // An agent that starts on a full disk recovers running tasks, and launches when there is space.
    let running = cluster.start_task("recovered", until_there(&second_go), json!({"type": "MESOS"}));
    let mut filling = None;
    cluster.replace_agent(|| filling = Some(fill(disk)));
    fs::write(&second_go, "").unwrap();
    let ended = told(running);
    assert!(ended.contains("TASK_FINISHED"), "{ended}");
    // Garbage collection may have freed space already.
    until("the agent has noticed that the disk is full", || cluster.log().contains(FULL));
    let waiting = cluster.start_execute("later", json!({"value": "true"}));
    filling.unwrap().remove();
    let ended = told(waiting);
    assert!(ended.contains("TASK_FINISHED"), "{ended}");
    assert_eq!(unhealthy(&cluster), None);
}

fn cluster_file(cluster: &OneAgent, name: &str) -> PathBuf {
    cluster.directory.path().join(name)
}

#[test]
fn tasks_go_on_while_a_tmpfs_is_full() {
    let Some(disk) = SmallDisk::tmpfs("full-tmpfs") else { return };
    tasks_go_on_on_a_full_disk("full-tmpfs", &disk, SmallDisk::fill);
}

#[test]
fn tasks_go_on_while_an_ext4_is_full() {
    let Some(disk) = SmallDisk::ext4("full-ext4", 4096) else { return };
    tasks_go_on_on_a_full_disk("full-ext4", &disk, SmallDisk::fill);
}

/// There is no inode, although there are free blocks.
#[test]
fn tasks_go_on_while_inodes_are_exhausted() {
    let Some(disk) = SmallDisk::ext4("inodes", 300) else { return };
    tasks_go_on_on_a_full_disk("inodes", &disk, SmallDisk::fill_inodes);
}

const READ_ONLY: &str = "Read-only file system";

/// ext4 makes a file system read-only after an error of its device: neither checkpoints nor their journal can be
/// written, so they are written to the journal in the runtime directory. Tasks end and are reported, also by an agent
/// that starts on that disk.
#[test]
fn tasks_go_on_while_the_disk_is_read_only() {
    let Some(disk) = SmallDisk::ext4("aborted", 4096) else { return };
    let mut cluster = cluster_on("aborted", &disk);
    let go = |number: u32| cluster_file(&cluster, &format!("go{number}"));
    let gates = [go(1), go(2), go(3)];
    let [first, second, third] =
        [0, 1, 2].map(|n| cluster.start_task(&format!("t{n}"), until_there(&gates[n]), json!({"type": "MESOS"})));
    disk.remount("abort");
    let unlucky = told(cluster.start_execute("unlucky", json!({"value": "true"})));
    assert!(unlucky.contains(READ_ONLY), "{unlucky}");
    becomes_unhealthy(&cluster, READ_ONLY);
    refuses_a_launch(&cluster, READ_ONLY);
    fs::write(&gates[0], "").unwrap();
    let ended = told(first);
    assert!(ended.contains("TASK_FINISHED"), "{ended}");
    let state = call(&cluster.agent_address(), "GET", "/state").expect("the agent answers");
    assert_eq!(state["frameworks"].as_array().map(Vec::len), Some(2), "{state}");

    cluster.replace_agent(|| {});
    becomes_unhealthy(&cluster, READ_ONLY);
    fs::write(&gates[1], "").unwrap();
    let ended = told(second);
    assert!(ended.contains("TASK_FINISHED"), "{ended}");

    let waiting = cluster.start_execute("waiting", json!({"value": "true"}));
    is_explained(&cluster, READ_ONLY);
    cluster.replace_agent(|| disk.replace());
    fs::write(&gates[2], "").unwrap();
    for task in [third, waiting] {
        let ended = told(task);
        assert!(ended.contains("TASK_FINISHED"), "{ended}");
    }
    assert_eq!(unhealthy(&cluster), None);
}

/// With the runtime directory on the same disk no update can be made durable. Requests are answered with a reason, and
/// SIGUSR1 ends tasks and agent.
#[test]
fn an_agent_without_a_journal_answers_and_ends() {
    let Some(disk) = SmallDisk::ext4("left", 4096) else { return };
    let runtime = disk.path().join("r");
    let flags = [LAUNCHER.to_owned(), format!("--runtime_dir={}", runtime.display())];
    let mut cluster = OneAgent::start_in("left", disk.path().join("a"), &flags);
    until("the agent has its journal", || disk.path().join("a/meta/checkpoints.journal").exists());
    let never = cluster_file(&cluster, "never");
    let running = cluster.start_task("running", until_there(&never), json!({"type": "MESOS"}));
    disk.remount("abort");
    let unlucky = json!({"name": "unlucky", "task_id": {"value": "unlucky"}, "command": {"value": "true"},
        "resources": a_little()});
    let _unlucky = Process::start(&mut cluster.execute(&unlucky));
    until("the agent has noticed", || cluster.log().contains("cannot write checkpoints"));
    let state = request(&cluster.agent_address(), "GET", "/state", "").expect("the agent answers");
    assert!(state.starts_with("HTTP/1.1 503") && state.contains("cannot write its checkpoints: Read-only"), "{state}");
    cluster.agent().signal("-USR1");
    until("the agent has ended", || cluster.agent().ended());
    let ended = told(running);
    assert!(ended.contains("TASK_"), "{ended}");
}

/// An agent starts on a read-only file system that it has used before. With damaged checkpoints it does not start, and
/// its message says what to do.
#[test]
fn an_agent_starts_on_a_read_only_disk_and_not_with_a_damaged_slave_info() {
    let Some(disk) = SmallDisk::tmpfs("start") else { return };
    let mut cluster = cluster_on("start", &disk);
    let info = wait_for("it has written its info", || find(&disk.path().join("a/meta"), "slave.info", ""));
    cluster.replace_agent(|| disk.remount("ro"));
    disk.remount("rw");
    cluster.stop_agent();

    let whole = fs::read(&info).unwrap();
    let mut damaged = whole.clone();
    damaged[6..].fill(0xff);
    fs::write(&info, damaged).unwrap();
    let told = cluster.end_with_an_agent(&[]);
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
    for words in ["slave.info", "does not start with damaged checkpoints", "--no-strict"] {
        assert!(told.contains(words), "'{words}' is not in: {told}");
    }
    fs::write(&info, whole).unwrap();
    cluster.replace_agent(|| {});
}

/// The agent deletes sandboxes of executors that have ended when it has no space, although their time is not over.
#[test]
fn a_full_disk_is_relieved_of_old_sandboxes() {
    let Some(disk) = SmallDisk::ext4("relieved", 4096) else { return };
    let cluster = cluster_on("relieved", &disk);
    let leave = json!({"value": "head -c 20M /dev/zero > left"});
    let ended = told(cluster.start_execute("old", leave));
    assert!(ended.contains("TASK_FINISHED"), "{ended}");
    let left = cluster.sandbox("old").expect("its sandbox is kept").join("left");
    assert_eq!(fs::metadata(&left).unwrap().len(), 20 << 20);
    let _filling = disk.fill();
    // The agent detects the full disk as it launches one of these, and the other one waits until there is space.
    for id in ["unlucky", "lucky"] {
        let ended = told(cluster.start_execute(id, json!({"value": "true"})));
        assert!(ended.contains("TASK_FINISHED") || id == "unlucky" && ended.contains(FULL), "{ended}");
    }
    assert!(!left.exists());
    until("the agent is healthy", || unhealthy(&cluster).is_none());
}

/// Limits the agent's file descriptors to those up to the last one in reserve, or removes that limit.
///
/// Descriptors that the agent opened before the reserve stay open. Connections and files that are opened later have
/// higher numbers, so that closing one of them does not help.
fn limit_descriptors(cluster: &mut OneAgent, limit: bool) {
    let id = cluster.agent().id();
    let is_reserve = |number: &u32| {
        fs::read_link(format!("/proc/{id}/fd/{number}")).is_ok_and(|file| file == Path::new("/dev/null"))
    };
    let number = if limit { 1 + (0..1024).filter(is_reserve).max().unwrap() } else { 1024 };
    let limited = Command::new("prlimit").args([format!("--pid={id}"), format!("--nofile={number}:")]).status();
    assert!(limited.unwrap().success());
}

/// A checkpoint is written with descriptors that are kept in reserve.
#[test]
fn tasks_go_on_without_file_descriptors() {
    let mut cluster = OneAgent::start("descriptors", &[LAUNCHER.to_owned()]);
    let go = cluster_file(&cluster, "go");
    let running = cluster.start_task("running", until_there(&go), json!({"type": "MESOS"}));
    limit_descriptors(&mut cluster, true);
    fs::write(&go, "").unwrap();
    let ended = told(running);
    assert!(ended.contains("TASK_FINISHED"), "{ended}");
    becomes_unhealthy(&cluster, "Too many open files");
    limit_descriptors(&mut cluster, false);
    let ended = told(cluster.start_execute("later", json!({"value": "true"})));
    assert!(ended.contains("TASK_FINISHED"), "{ended}");
}

/// The log names an empty checkpoint and the consequence for the task.
#[test]
fn empty_checkpoints_are_logged() {
    let mut cluster = OneAgent::start("empty", &[LAUNCHER.to_owned()]);
    let (never, meta) = (cluster_file(&cluster, "never"), cluster.work_dir().join("meta"));
    for (file, id, effect) in [
        ("executor.info", "t1", "the executor is ended and its tasks are lost"),
        ("framework.info", "t2", "the framework's executors are ended and its tasks are lost"),
        ("slave.info", "t3", "the agent registers as a new one"),
    ] {
        let running = cluster.start_task(id, until_there(&never), json!({"type": "MESOS"}));
        let path = find_of(&meta, file, id);
        cluster.replace_agent(|| fs::write(&path, "").unwrap());
        let log = cluster.log();
        let words = format!("The checkpoint '{}' is empty: {effect}", path.display());
        assert!(log.contains(&words), "'{words}' is not in: {log}");
        drop(running);
    }
}

/// Asserts that an executor outlives its agent when its report of the loss goes to a file that accepts no further byte.
/// The disk, if sandboxes have one of their own, is unmounted before the cluster's directory is removed.
fn outlives_its_agent(mut cluster: OneAgent, fill: &str, container: Value, _disk: Option<SmallDisk>) {
    let (full, go) = (cluster.directory.join("full"), cluster.directory.join("go"));
    let script = format!("echo up; {fill} >&2; : > {full}; while [ ! -e {go} ]; do sleep 0.05; done");
    let task = cluster.start_task("filler", json!({"value": script}), container);
    until("there is no room", || Path::new(&full).exists());
    cluster.replace_agent(|| ());
    fs::write(go, "").unwrap();
    let told = String::from_utf8_lossy(&task.output().stdout).into_owned();
    assert!(told.contains("TASK_FINISHED"), "{told}");
}

#[test]
fn an_executor_on_a_full_disk_keeps_its_task() {
    let cluster = OneAgent::start("full", &[LAUNCHER.to_owned()]);
    // Sandboxes are on a disk of their own: the agent's own files have space.
    let Some(disk) = SmallDisk::tmpfs_at("executor", cluster.work_dir().join("slaves")) else { return };
    outlives_its_agent(cluster, "cat /dev/zero", json!({"type": "MESOS"}), Some(disk));
}

#[test]
fn an_executor_with_a_limit_of_files_sizes_keeps_its_task() {
    let flags = ["--launcher=posix", "--isolation=posix/cpu,posix/mem,posix/rlimits"].map(str::to_owned);
    let limits = json!([{"type": "RLMT_FSIZE", "soft": 65536, "hard": 65536}]);
    let container = json!({"type": "MESOS", "rlimit_info": {"rlimits": limits}});
    outlives_its_agent(OneAgent::start("fsize", &flags), "trap '' XFSZ; cat /dev/zero", container, None);
}

/// Neither standard error nor the file of `--log_dir` can be written.
#[test]
fn a_daemon_that_cannot_write_its_log_serves() {
    let directory = Directory::new("full-log");
    symlink("/dev/full", directory.join("tepui-master.log")).unwrap();
    let port = free_port();
    let device = || Stdio::from(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    let mut command = tepui();
    command
        .args(["master", "--ip=127.0.0.1", "--registry=in_memory", &format!("--port={port}")])
        .args([format!("--log_dir={}", directory.path().display()), format!("--work_dir={}", directory.join("m"))]);
    let mut master = command.stdin(Stdio::null()).stdout(device()).stderr(device()).spawn().unwrap();
    let answer = wait_for("the master answers, or has ended", || {
        let ended = master.try_wait().unwrap().is_some();
        get(&format!("127.0.0.1:{port}"), "/version").map(Some).or(ended.then_some(None))
    });
    let _ = master.kill();
    let _ = master.wait();
    assert!(answer.is_some_and(|answer| answer.contains("version")), "the master has ended");
}
