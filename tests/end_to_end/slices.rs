//! Tests systemd's slice for the processes of tasks: on control groups as systemd mounts them, with a script in place
//! of `systemctl`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::one_agent::{OneAgent, end};
use crate::support::wait_for;

const SLICE: &str = "mesos_executors.slice";
const HIERARCHY: &str = "/sys/fs/cgroup/systemd";

/// Returns the task's control groups in systemd's hierarchies, from its `/proc/self/cgroup`.
fn groups(cluster: &OneAgent, id: &str) -> String {
    let (told, written) =
        cluster.run(id, json!({"value": "grep -e name=systemd -e ^0:: /proc/self/cgroup"}), Value::Null);
    assert!(told.contains("TASK_FINISHED"), "{told}");
    written
}

fn tasks_are_in_the_slice(launcher: &str) {
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    if !nix::unistd::geteuid().is_root() || !mounts.contains("name=systemd") || !mounts.contains("freezer") {
        return println!("NOT RUN: needs root and control groups as systemd mounts them");
    }
    let units = std::env::temp_dir().join(format!("tepui-units-{launcher}-{}", std::process::id()));
    let flags = [format!("--launcher={launcher}"), format!("--systemd_runtime_directory={}", units.display())];
    let mut cluster = OneAgent::start(&format!("slices-{launcher}"), &flags);
    assert!(!groups(&cluster, "before").contains(SLICE), "a host without systemd is left alone");
    let bin = cluster.directory.path().join("bin");
    let heard = cluster.directory.path().join("heard");
    fs::create_dir_all(&units).unwrap();
    fs::create_dir_all(&bin).unwrap();
    let systemctl = bin.join("systemctl");
    fs::write(&systemctl, format!("#!/bin/sh\necho \"$@\" >> {}\n", heard.display())).unwrap();
    fs::set_permissions(&systemctl, fs::Permissions::from_mode(0o755)).unwrap();
    cluster.kill_agent_and_start_it_again();
    assert_eq!(fs::read_to_string(&heard).unwrap(), format!("daemon-reload\nstart {SLICE}\n"));
    assert!(units.join(SLICE).exists());
    let inside = groups(&cluster, "after");
    assert!(inside.contains(&format!("name=systemd:/{SLICE}\n")), "{inside}");
    if mounts.contains(" cgroup2 ") {
        assert!(inside.contains(&format!("0::/{SLICE}/executors\n")), "{inside}");
    }
    // Its executor is in the slice, too; and stays there after a restart of the agent.
    let task = cluster.start_task("long", json!({"value": "echo up; exec sleep 1000"}), Value::Null);
    let processes = || fs::read_to_string(Path::new(HIERARCHY).join(SLICE).join("cgroup.procs")).unwrap();
    assert!(processes().lines().count() >= 2, "{}", processes());
    cluster.kill_agent_and_start_it_again();
    assert!(processes().lines().count() >= 2, "{}", processes());
    end(task);
    drop(cluster);
    fs::remove_dir_all(&units).unwrap();
    for directory in [format!("{HIERARCHY}/{SLICE}"), format!("/sys/fs/cgroup/unified/{SLICE}/executors")] {
        wait_for("nothing is left in the slice", || {
            let text = fs::read_to_string(Path::new(&directory).join("cgroup.procs")).unwrap_or_default();
            text.trim().is_empty().then_some(())
        });
        // Another test may be using the directory.
        let _ = fs::remove_dir(&directory);
    }
    let _ = fs::remove_dir(format!("/sys/fs/cgroup/unified/{SLICE}"));
}

/// The cases run one after the other: there is one slice on a host.
#[test]
fn tasks_are_in_systemds_slice() {
    tasks_are_in_the_slice("posix");
    tasks_are_in_the_slice("linux");
}
