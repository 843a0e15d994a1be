//! Real processes in real namespaces and control groups. The tests need root; without it they do nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use containers::cgroups::{Controller, Device, Hierarchies};
use containers::isolation::{Capabilities, FilterStep, Isolation, Mount, MountPath, Namespaces};
use containers::{Launcher, Output, Program, Spec};

/// Time limit for an expected event, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(180);

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("tepui-isolation-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    /// Runs a script. Returns its output and its exit code.
    fn run(&self, script: &str, isolation: Isolation) -> (String, Option<i32>) {
        let child = Launcher::posix().spawn(&self.spec(script, isolation)).unwrap();
        let status = child.wait(Some(LIMIT)).unwrap().expect("it ends");
        (std::fs::read_to_string(self.0.join("stdout")).unwrap(), status.code())
    }

    fn spec(&self, script: &str, isolation: Isolation) -> Spec {
        let output = self.0.join("stdout");
        let _ = std::fs::remove_file(&output);
        Spec {
            working_dir: Some(self.0.clone()),
            stdout: Output::File(output.clone()),
            stderr: Output::File(output),
            isolation,
            ..Spec::new(Program::Shell(script.into()))
        }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

const OWN: Namespaces = Namespaces { mount: true, pid: true, ipc: true, uts: true, network: false };

fn processes() -> Mount {
    Mount::Processes { target: "/proc".into() }
}

#[test]
fn a_world_of_its_own() {
    if !is_root() {
        return;
    }
    let directory = Directory::new("own");
    let isolation = Isolation {
        namespaces: OWN,
        hostname: Some("inside".into()),
        mounts: vec![processes()],
        ..Isolation::default()
    };
    let (text, code) = directory.run("echo $$; cat /proc/sys/kernel/hostname; ls /proc | grep -c '^[0-9]'", isolation);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[0], lines[1], code), ("1", "inside", Some(0)));
    assert!(lines[2].parse::<u32>().unwrap() < 6, "{text}");
    assert_ne!(std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim(), "inside");
}

#[test]
fn another_one_enters() {
    if !is_root() {
        return;
    }
    let directory = Directory::new("enter");
    let isolation = Isolation { namespaces: OWN, mounts: vec![processes()], ..Isolation::default() };
    let first = Launcher::posix().spawn(&directory.spec("exec sleep 1000", isolation)).unwrap();
    let pidfd = first.pidfd().try_clone_to_owned().unwrap();
    let second = Directory::new("entered");
    let isolation = Isolation { enter: Some(Arc::new(pidfd)), enter_which: OWN, ..Isolation::default() };
    // While the shell executes another program, `/proc` does not show its arguments.
    let script =
        "until grep -qa sleep /proc/1/cmdline; do :; done; tr '\\0' ' ' < /proc/1/cmdline; ls /proc/$$ > /dev/null";
    let (text, code) = second.run(script, isolation);
    assert_eq!((text.trim(), code), ("sleep 1000", Some(0)));
    // Processes that this thread starts are created outside again.
    let (text, _) = Directory::new("outside").run("echo $$", Isolation::default());
    assert!(text.trim().parse::<u32>().unwrap() > 2);
    first.signal(9).unwrap();
    first.wait(Some(LIMIT)).unwrap().expect("it ends");
}

#[test]
fn mounts_and_roots() {
    if !is_root() {
        return;
    }
    let (directory, shown) = (Directory::new("mounts"), Directory::new("shown"));
    std::fs::write(shown.0.join("file"), "of the host\n").unwrap();
    std::fs::create_dir_all(directory.0.join("data")).unwrap();
    std::fs::create_dir_all(directory.0.join("fixed")).unwrap();
    let bind = |inside: &str, read_only| Mount::Bind {
        source: MountPath::trusted(&shown.0),
        target: MountPath { base: directory.0.clone(), inside: inside.into() },
        read_only,
    };
    let namespaces = Namespaces { mount: true, ..Namespaces::default() };
    let mounts = vec![bind("data", false), bind("fixed", true)];
    let isolation = Isolation { namespaces, mounts, ..Isolation::default() };
    let (text, _) =
        directory.run("cat data/file; echo new > data/made; echo x > fixed/other || echo refused", isolation);
    assert!(text.starts_with("of the host") && text.contains("refused"), "{text}");
    assert!(shown.0.join("made").exists() && !shown.0.join("other").exists());
    assert!(!directory.0.join("data/file").exists(), "the mount is seen outside");

    // The owner of a sandbox cannot lead a mount out of it.
    std::os::unix::fs::symlink("/etc", directory.0.join("led")).unwrap();
    let isolation = Isolation { namespaces, mounts: vec![bind("led", false)], ..Isolation::default() };
    let error = Launcher::posix().spawn(&directory.spec("true", isolation)).unwrap_err().to_string();
    assert!(error.contains("make the mounts"), "{error}");

    // Nor into it, where the same user owns a directory above it, too: the link may be created after the directories
    // were checked.
    let inner = directory.0.canonicalize().unwrap().join("containers/inner");
    std::fs::create_dir_all(inner.join("data")).unwrap();
    let mount = |source: &Path| Mount::Bind {
        source: MountPath::without_links(source),
        target: MountPath::without_links(inner.join("data")),
        read_only: false,
    };
    let with = |mount| Isolation { namespaces, mounts: vec![mount], ..Isolation::default() };
    let shown = shown.0.canonicalize().unwrap();
    let (text, _) = directory.run("cat containers/inner/data/file", with(mount(&shown)));
    assert!(text.starts_with("of the host"), "{text}");
    std::fs::rename(directory.0.join("containers"), directory.0.join("aside")).unwrap();
    std::os::unix::fs::symlink("aside", directory.0.join("containers")).unwrap();
    let error = Launcher::posix().spawn(&directory.spec("true", with(mount(&shown)))).unwrap_err().to_string();
    assert!(error.contains("make the mounts"), "{error}");
}

#[test]
fn rights() {
    if !is_root() {
        return;
    }
    let directory = Directory::new("rights");
    let isolation = Isolation { no_new_privileges: true, ..Isolation::default() };
    let (text, _) = directory.run("grep NoNewPrivs /proc/self/status", isolation);
    assert_eq!(text.split_whitespace().last(), Some("1"));
    let bounding = 1 << 0 | 1 << 5;
    let isolation =
        Isolation { capabilities: Some(Capabilities { bounding, effective: Some(1 << 5) }), ..Isolation::default() };
    let (text, _) = directory.run("grep -E 'CapBnd|CapAmb' /proc/self/status", isolation);
    let sets: Vec<u64> =
        text.lines().map(|line| u64::from_str_radix(line.split_whitespace().last().unwrap(), 16).unwrap()).collect();
    assert_eq!(sets, [bounding, 1 << 5]);
    // mkdir(2) fails with EPERM: load the number, compare, return.
    let step = |code, if_true, if_false, value| FilterStep { code, if_true, if_false, value };
    let mut steps = vec![step(0x20, 0, 0, 0)];
    for call in [libc_number::MKDIR, libc_number::MKDIRAT] {
        steps.extend([step(0x15, 0, 1, call), step(0x06, 0, 0, 0x0005_0001)]);
    }
    steps.push(step(0x06, 0, 0, 0x7fff_0000));
    let isolation = Isolation { seccomp: vec![steps.into()], ..Isolation::default() };
    let (text, _) = directory.run("mkdir made || echo refused", isolation);
    assert!(text.contains("refused") && !directory.0.join("made").exists(), "{text}");
}

mod libc_number {
    #[cfg(target_arch = "x86_64")]
    pub(super) const MKDIR: u32 = 83;
    #[cfg(target_arch = "x86_64")]
    pub(super) const MKDIRAT: u32 = 258;
    #[cfg(not(target_arch = "x86_64"))]
    pub(super) const MKDIR: u32 = 34;
    #[cfg(not(target_arch = "x86_64"))]
    pub(super) const MKDIRAT: u32 = 34;
}

/// With the control groups of this host: processes are created in the group, and found and ended there, whatever they
/// do.
#[test]
fn ended_by_the_group() {
    if !is_root() {
        return;
    }
    let name = format!("tepui-test-{}", std::process::id());
    let mut hosts: Vec<Hierarchies> = Hierarchies::of_this_host(&name).into_iter().collect();
    let unified = std::path::Path::new("/sys/fs/cgroup/unified");
    if unified.join("cgroup.procs").exists() {
        hosts.push(Hierarchies::unified(unified, &name));
    }
    for host in hosts {
        let own = [Controller::Freezer];
        if host.prepare(&own).is_err() {
            continue;
        }
        let group = host.group("a");
        group.create(&own).unwrap();
        let directory = Directory::new(&format!("group-{}", host.version()));
        let entry = group.entry(&own, &[], &group).unwrap();
        let script = "setsid sleep 1000 & setsid setsid sleep 1000 & echo; exec sleep 1000";
        let isolation = Isolation { cgroup: Some(entry), ..Isolation::default() };
        let child = Launcher::posix().spawn(&directory.spec(script, isolation)).unwrap();
        assert!(group.processes().contains(&child.pid()));
        group.end(LIMIT).unwrap();
        assert_eq!(group.processes(), [] as [i32; 0]);
        assert_eq!(child.wait(Some(LIMIT)).unwrap().and_then(|status| status.signal()), Some(9));
        group.remove().unwrap();
        assert!(!group.exists());
        host.group("").remove().unwrap();
    }
}

/// Also with version 2, a device that no rule allows cannot be opened, and later rules replace earlier ones.
#[test]
fn devices_of_a_unified_group() {
    let unified = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].map(std::path::Path::new);
    let unified = unified.into_iter().find(|mount| mount.join("cgroup.procs").exists());
    let Some(unified) = unified.filter(|_| is_root()) else { return };
    let host = Hierarchies::unified(unified, &format!("tepui-devices-{}", std::process::id()));
    if !host.available().contains(&Controller::Devices) {
        return;
    }
    let own = [Controller::Freezer, Controller::Devices];
    host.prepare(&own).unwrap();
    let group = host.group("a");
    group.create(&own).unwrap();
    // The kernel's messages: a device that every host has, and that is not among the usual ones.
    let directory = Directory::new("devices");
    let script = "[ -e log ] || mknod log c 1 11; true < log && true > /dev/null && exit 7; true > /dev/null && exit 8";
    let run = || {
        let cgroup = Some(group.entry(&own, &[], &group).unwrap());
        directory.run(script, Isolation { cgroup, ..Isolation::default() }).1
    };
    assert_eq!(run(), Some(7), "nothing is restricted");
    group.allow_devices(&[]).unwrap();
    assert_eq!(run(), Some(8), "only what is usual");
    group.allow_devices(&[Device("c 1:11 r".into())]).unwrap();
    assert_eq!(run(), Some(7), "and what is allowed");
    group.allow_devices(&[Device("c 1:11 w".into())]).unwrap();
    assert_eq!(run(), Some(8), "for what it is allowed");
    group.end(LIMIT).unwrap();
    group.remove().unwrap();
    host.group("").remove().unwrap();
}
