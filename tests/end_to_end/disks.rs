//! Disks that are full, read-only or damaged: an agent stops and says so, and goes on where it was when that is cured. A line that
//! cannot be written ends no executor and no daemon.
//!
//! Most needs root, for a small file system in memory; without it there is nothing to run.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::one_agent::OneAgent;
use crate::process::Process;
use crate::support::{Daemon, Folder, call, free_port, get, tepui, until, wait_for};

/// A small file system; gone with its owner.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: PathBuf) -> Option<Disk> {
        fs::create_dir_all(&at).unwrap();
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(&at).status();
        mount.is_ok_and(|status| status.success()).then_some(Disk(at))
    }

    fn remount(&self, how: &str) {
        // What is on its way out may still write.
        let mount = || Command::new("mount").args(["-o", &format!("remount,{how}")]).arg(&self.0).status();
        until("it is mounted in another way", || mount().unwrap().success());
    }

    fn fill(&self) -> PathBuf {
        let path = self.0.join("fill");
        let mut file = fs::File::create(&path).unwrap();
        for size in [4096, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// A file's only namesake below a folder.
fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    fs::read_dir(folder).ok()?.flatten().find_map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => find(&entry.path(), name),
        _ => (entry.file_name() == name).then(|| entry.path()),
    })
}

#[test]
fn disks_that_fail() {
    let folder = Folder::new("disks");
    let Some(disk) = Disk::mount(folder.path().join("disk")).filter(|_| nix::unistd::geteuid().is_root()) else {
        return println!("not run: it needs root, to mount a small file system");
    };
    let words = ["master", "--ip=127.0.0.1", "--port=0", "--registry=in_memory"].map(str::to_owned);
    let words: Vec<String> = words.into_iter().chain([format!("--work_dir={}", folder.join("m"))]).collect();
    let mut master = Daemon::start(&folder.path().join("m.log"), &words, &[]);
    let address = master.address().unwrap();
    let log = folder.path().join("a.log");
    // Its address must not change.
    let port = free_port();
    let start = || {
        let words = ["agent", "--ip=127.0.0.1", "--launcher=posix", "--resources=cpus:1;mem:64;disk:64"];
        let mut words: Vec<String> = words.map(str::to_owned).into();
        words.push(format!("--port={port}"));
        words.push(format!("--master={address}"));
        words.push(format!("--work_dir={}", disk.0.join("a").display()));
        words.push(format!("--runtime_dir={}", folder.join("r")));
        Daemon::start(&log, &words, &[])
    };
    let said = || fs::read_to_string(&log).unwrap();
    let stops = |mut agent: Daemon, words: &[&str]| {
        wait_for("the agent stops", || agent.ended().then_some(()));
        for word in words {
            assert!(said().contains(word), "'{word}' is not in: {}", said());
        }
    };

    let agent = start();
    wait_for("the agent is registered", || {
        let agents = call(&address, "GET", "/slaves")?;
        (!agents["slaves"].as_array()?.is_empty()).then_some(())
    });
    let info = wait_for("it has written that down", || find(&disk.0.join("a/meta"), "slave.info"));
    let filling = disk.fill();
    let scalar = |name: &str, value: f64| json!({"name": name, "type": "SCALAR", "scalar": {"value": value}});
    let task = json!({"name": "t", "task_id": {"value": "t"}, "command": {"value": "true"},
        "resources": [scalar("cpus", 0.1), scalar("mem", 32.0)]});
    let mut execute = tepui();
    execute.args(["execute", "--checkpoint=true", "--master", &address, &format!("--task={task}")]);
    let mut execute = Process::start(&mut execute);
    stops(agent, &["checkpoints cannot be written", "No space left on device"]);
    execute.kill();
    fs::remove_file(filling).unwrap();
    let mut agent = start();
    assert!(agent.address().is_some(), "with room it starts again: {}", said());
    drop(agent);

    disk.remount("ro");
    stops(start(), &["Read-only file system"]);
    disk.remount("rw");

    let whole = fs::read(&info).unwrap();
    let mut damaged = whole.clone();
    damaged[6..].fill(0xff);
    fs::write(&info, damaged).unwrap();
    stops(start(), &["slave.info", "does not start with what it cannot read", "--no-strict"]);
    fs::write(&info, whole).unwrap();
    let mut agent = start();
    assert!(agent.address().is_some(), "with the old file it starts again: {}", said());
}

/// Its executor says that the agent has gone, into a file that takes no byte more.
fn outlives_its_agent(mut cluster: OneAgent, fill: &str, container: Value) {
    let (full, go) = (cluster.folder.join("full"), cluster.folder.join("go"));
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
    if !nix::unistd::geteuid().is_root() {
        return println!("not run: it needs root, to mount a small file system");
    }
    let cluster = OneAgent::start("full", &["--launcher=posix".to_owned()]);
    // Sandboxes are on a disk of their own: what the agent writes for itself has room.
    let _disk = Disk::mount(cluster.folder.path().join("a/slaves")).expect("root may mount a file system");
    outlives_its_agent(cluster, "cat /dev/zero", json!({"type": "MESOS"}));
}

#[test]
fn an_executor_with_a_limit_of_files_sizes_keeps_its_task() {
    let flags = ["--launcher=posix", "--isolation=posix/cpu,posix/mem,posix/rlimits"].map(str::to_owned);
    let limits = json!([{"type": "RLMT_FSIZE", "soft": 65536, "hard": 65536}]);
    let container = json!({"type": "MESOS", "rlimit_info": {"rlimits": limits}});
    outlives_its_agent(OneAgent::start("fsize", &flags), "trap '' XFSZ; cat /dev/zero", container);
}

/// Neither standard error nor the file of `--log_dir` can be written.
#[test]
fn a_daemon_that_cannot_write_its_log_serves() {
    let folder = Folder::new("full-log");
    symlink("/dev/full", folder.join("tepui-master.log")).unwrap();
    let port = free_port();
    let device = || Stdio::from(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    let mut command = tepui();
    command
        .args(["master", "--ip=127.0.0.1", "--registry=in_memory", &format!("--port={port}")])
        .args([format!("--log_dir={}", folder.path().display()), format!("--work_dir={}", folder.join("m"))]);
    let mut master = command.stdin(Stdio::null()).stdout(device()).stderr(device()).spawn().unwrap();
    let answer = wait_for("the master answers, or has ended", || {
        let ended = master.try_wait().unwrap().is_some();
        get(&format!("127.0.0.1:{port}"), "/version").map(Some).or(ended.then_some(None))
    });
    let _ = master.kill();
    let _ = master.wait();
    assert!(answer.is_some_and(|answer| answer.contains("version")), "the master has ended");
}
