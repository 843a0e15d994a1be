//! Tests containers with roots of their own, and filtered system calls, on a real agent that is also killed in between.
//!
//! Requires root and control groups; without them no test runs.
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::one_agent::{OneAgent, a_little, can_isolate, end};
use crate::process::Process;
use crate::support::{Directory, call, request, tepui, until, wait_for};

/// Copies what an image from scratch needs to run scripts: the host's shell and sleep(1), their loader and libraries.
pub fn shell_into(root: &Path) {
    programs_into(root, &["/bin/sh", "/bin/sleep"]);
}

/// Copies programs, their loader and libraries, to the paths that they have on the host.
pub fn programs_into(root: &Path, programs: &[&str]) {
    libraries_into(root, programs);
    programs.iter().for_each(|program| copy_into(root, program));
}

/// Copies the loader and libraries of programs to the paths that they have on the host.
pub fn libraries_into(root: &Path, programs: &[&str]) {
    let ldd = Command::new("ldd").args(programs).output().unwrap();
    let text = String::from_utf8(ldd.stdout).unwrap();
    let libraries = text.split_whitespace().filter(|word| word.starts_with('/') && !word.ends_with(':'));
    libraries.for_each(|file| copy_into(root, file));
}

fn copy_into(root: &Path, file: &str) {
    let target = root.join(file.trim_start_matches('/'));
    fs::create_dir_all(target.parent().unwrap()).unwrap();
    fs::copy(file, &target).unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Packs a directory and returns the checksum of the archive.
pub fn tar(directory: &Path, archive: &Path) -> String {
    let status = Command::new("tar").arg("-C").arg(directory).arg("-cf").arg(archive).arg(".").status().unwrap();
    assert!(status.success());
    let sum = Command::new("sha256sum").arg(archive).output().unwrap();
    String::from_utf8(sum.stdout).unwrap().split_whitespace().next().unwrap().to_owned()
}

/// Creates `<registry>/tiny:1.tar`: two layers, the upper one of which changes, hides and removes files of the lower
/// one. Also creates the same as `labelled:1.tar`, which requires the driver of GPUs.
pub fn image(registry: &Path) {
    let work = registry.join("work");
    let (lower, upper, saved) = (work.join("lower"), work.join("upper"), work.join("saved"));
    for directory in [lower.join("etc"), lower.join("hidden"), upper.join("etc"), upper.join("hidden"), saved.clone()] {
        fs::create_dir_all(directory).unwrap();
    }
    shell_into(&lower);
    for (file, text) in [("etc/version", "one\n"), ("etc/gone", "x"), ("hidden/old", "x")] {
        fs::write(lower.join(file), text).unwrap();
    }
    // An extraction that follows this link would write to the host.
    symlink("/tmp", lower.join("outside")).unwrap();
    for (file, text) in
        [("etc/version", "two\n"), ("etc/.wh.gone", ""), ("hidden/new", "x"), ("hidden/.wh..wh..opq", "")]
    {
        fs::write(upper.join(file), text).unwrap();
    }
    let ids = [tar(&lower, &saved.join("1.tar")), tar(&upper, &saved.join("2.tar"))];
    let ids = ids.map(|id| format!("sha256:{id}"));
    let mut config = json!({"os": "linux", "config": {"Env": ["COLOR=blue"], "Entrypoint": ["/bin/sh", "-c"],
        "Cmd": ["echo the default"], "WorkingDir": "/work/here"}, "rootfs": {"type": "layers", "diff_ids": ids}});
    fs::write(saved.join("config.json"), config.to_string()).unwrap();
    let manifest = json!([{"Config": "config.json", "RepoTags": ["tiny:1"], "Layers": ["1.tar", "2.tar"]}]);
    fs::write(saved.join("manifest.json"), manifest.to_string()).unwrap();
    tar(&saved, &registry.join("tiny:1.tar"));
    config["config"]["Labels"] = json!({"com.nvidia.volumes.needed": "nvidia_driver"});
    fs::write(saved.join("config.json"), config.to_string()).unwrap();
    tar(&saved, &registry.join("labelled:1.tar"));
}

fn mesos_image(name: &str) -> Value {
    json!({"type": "MESOS", "mesos": {"image": {"type": "DOCKER", "docker": {"name": name}}}})
}

const LOOK: &str = "read v < /etc/version; echo version $v; [ -e /etc/gone ] && echo gone is there; \
    [ -e /hidden/old ] && echo old is there; [ -e /hidden/new ] && echo new is there; echo $COLOR $PWD $MESOS_SANDBOX; \
    echo x > /mnt/mesos/sandbox/made; echo x > /etc/version; [ -c /dev/null ] && echo null";

#[test]
fn roots_made_of_images() {
    if !can_isolate() {
        return println!("not run: it needs root, and cgroups v1");
    }
    for backend in ["overlay", "copy"] {
        let registry = Directory::new(&format!("images-{backend}"));
        image(registry.path());
        let flags = [
            "--isolation=cgroups/cpu,cgroups/mem,filesystem/linux,namespaces/pid,docker/runtime".to_owned(),
            "--image_providers=docker".to_owned(),
            format!("--docker_registry={}", registry.path().display()),
            format!("--docker_store_dir={}", registry.join("store")),
            format!("--image_provisioner_backend={backend}"),
        ];
        let mut cluster = OneAgent::start(backend, &flags);
        for id in ["a", "b"] {
            // The second task sees no changes of the first one.
            let (told, written) = cluster.run(id, json!({"value": LOOK}), mesos_image("tiny:1"));
            assert!(told.contains("TASK_FINISHED"), "{told}");
            assert_eq!(written, "version two\nnew is there\nblue /work/here /mnt/mesos/sandbox\nnull\n", "{told}");
            assert!(cluster.sandbox(id).unwrap().join("made").exists());
        }
        let (told, written) = cluster.run("default", json!({"shell": false}), mesos_image("tiny:1"));
        assert_eq!(written, "the default\n", "{told}");
        let look = "read v < tools/etc/version; echo $v; echo x > tools/made || echo read-only";
        let shown = json!({"mode": "RO", "container_path": "tools", "image": mesos_image("tiny:1")["mesos"]["image"]});
        let container = json!({"type": "MESOS", "volumes": [shown]});
        let (told, written) = cluster.run("volume", json!({"value": look}), container);
        assert_eq!(written, "two\nread-only\n", "{told}");
        let (told, _) = cluster.run("none", json!({"value": "true"}), mesos_image("other"));
        assert!(told.contains("TASK_FAILED") && told.contains("There is no image 'other:latest'"), "{told}");
        let (told, _) = cluster.run("out", json!({"value": "true"}), mesos_image("../tiny:1"));
        assert!(told.contains("is not a name of an image"), "{told}");
        a_session_has_the_roots_terminals(&cluster);
        checks_of_pods_see_the_root(&cluster);
        a_root_outlives_the_agent(&mut cluster);
        let left =
            || fs::read_dir(cluster.directory.path().join("a/provisioner/containers")).into_iter().flatten().count();
        until("roots are deleted with their containers", || left() == 0);
        prune(&cluster, registry.path());
    }
}

/// A device of the host that every container may read, and which images do not have.
const KMSG: &str = r#"{"allowed_devices": [{"device": {"path": "/dev/kmsg"}, "access": {"read": true}}]}"#;

#[test]
fn allowed_devices_are_in_the_dev_of_images() {
    if !can_isolate() {
        return println!("not run: it needs root, and cgroups v1");
    }
    let registry = Directory::new("images-devices");
    image(registry.path());
    let look = "[ -c /dev/kmsg ] || echo no device; true < /dev/kmsg && echo read; \
        true 2> /dev/null >> /dev/kmsg || echo not written";
    for (isolator, expected) in [(",linux/devices", "read\nnot written\n"), ("", "no device\n")] {
        let flags = [
            format!("--isolation=cgroups/cpu,cgroups/devices,filesystem/linux,docker/runtime{isolator}"),
            format!("--allowed_devices={KMSG}"),
            "--image_providers=docker".to_owned(),
            format!("--docker_registry={}", registry.path().display()),
            format!("--docker_store_dir={}", registry.join("store")),
        ];
        let cluster = OneAgent::start("devices", &flags);
        let (told, written) = cluster.run("look", json!({"value": look}), mesos_image("tiny:1"));
        assert!(written.starts_with(expected), "{written} {told}");
    }
}

/// The driver is the host's; without one, an image that requires it is refused.
#[test]
fn images_that_want_the_driver_of_gpus() {
    if !can_isolate() {
        return println!("not run: it needs root, and cgroups v1");
    }
    let registry = Directory::new("images-driver");
    image(registry.path());
    let flags = [
        "--isolation=cgroups/cpu,cgroups/mem,cgroups/devices,filesystem/linux,docker/runtime,gpu/nvidia".to_owned(),
        "--image_providers=docker".to_owned(),
        format!("--docker_registry={}", registry.path().display()),
        format!("--docker_store_dir={}", registry.join("store")),
    ];
    let cluster = OneAgent::start("driver", &flags);
    let look =
        "cd /usr/local/nvidia/lib64 && for file in libcuda.so*; do echo $file; echo x > $file || echo read-only; done";
    let (told, written) = cluster.run("labelled", json!({"value": look}), mesos_image("labelled:1"));
    let directories = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/nvidia/lib64"];
    if directories.iter().any(|directory| Path::new(directory).join("libcuda.so.1").exists()) {
        assert!(written.contains("libcuda.so.1\nread-only\n"), "{written} {told}");
    } else {
        assert!(told.contains("TASK_FAILED") && told.contains("the host's GPU driver"), "{told}");
    }
    let (told, written) =
        cluster.run("plain", json!({"value": "[ -e /usr/local/nvidia ] || echo nothing"}), mesos_image("tiny:1"));
    assert_eq!(written, "nothing\n", "{told}");
}

fn a_session_has_the_roots_terminals(cluster: &OneAgent) {
    let task = cluster.start_task("around", json!({"value": "echo up; sleep 1000"}), mesos_image("tiny:1"));
    // A task may have written a line before its update arrives.
    wait_for("the task is known to run", || {
        let tasks = call(&cluster.address, "GET", "/tasks?task_id=around")?;
        (tasks["tasks"][0]["state"] == "TASK_RUNNING").then_some(())
    });
    let look = "[ -t 0 ] && [ /dev/fd/0 -ef /dev/pts/0 ] && echo it is mine";
    let (seen, _) = at_a_terminal(cluster, &format!("exec -it around sh -c '{look}'"), "");
    assert!(seen.contains("it is mine"), "{seen}");
    end(task);
}

/// Tests checks of a pod: one task has a root of its own, another one a volume; a check that hangs is ended.
fn checks_of_pods_see_the_root(cluster: &OneAgent) {
    let task = |id: &str, container: Value, script: &str| {
        let variables = json!({"variables": [{"name": "CODE", "value": "7"}]});
        let command = json!({"value": "sleep 1000", "environment": variables});
        let check = json!({"type": "COMMAND", "delay_seconds": 0, "interval_seconds": 0.1,
            "command": {"command": {"value": script}}});
        json!({"name": id, "task_id": {"value": id}, "agent_id": {"value": ""}, "resources": a_little(),
            "command": command, "container": container, "check": check})
    };
    let volume = json!({"type": "MESOS", "volumes": [{"mode": "RW", "container_path": "seen",
        "source": {"type": "SANDBOX_PATH", "sandbox_path": {"type": "SELF", "path": "given"}}}]});
    let pod = cluster.start_pod(&[
        task("rooted", mesos_image("tiny:1"), "read v < /etc/version; [ $v = two ] && exit $CODE"),
        task("shown", volume, "[ -d seen ] && [ ! -e /etc/version ] && exit $CODE"),
    ]);
    for id in ["rooted", "shown"] {
        wait_for("its check has run in its container", || {
            let status = cluster.latest(id)?;
            (status["check_status"]["command"]["exit_code"] == 7).then_some(())
        });
    }
    end(pod);
}

fn a_root_outlives_the_agent(cluster: &mut OneAgent) {
    let wait =
        "echo up; while [ ! -e /mnt/mesos/sandbox/end ]; do sleep 0.05; done; read v < /etc/version; echo end $v";
    let task = cluster.start_task("long", json!({"value": wait}), mesos_image("tiny:1"));
    cluster.kill_agent_and_start_it_again();
    let sandbox = cluster.sandbox("long").unwrap();
    fs::write(sandbox.join("end"), "").unwrap();
    let told = String::from_utf8_lossy(&task.output().stdout).into_owned();
    assert!(told.contains("TASK_FINISHED"), "{told}");
    assert_eq!(fs::read_to_string(sandbox.join("stdout")).unwrap(), "up\nend two\n");
}

/// A command of `tepui task` at a terminal of its own.
struct Terminal(Child);

impl Terminal {
    fn open(cluster: &OneAgent, words: &str) -> Terminal {
        let line = format!("stty rows 33 cols 77; {} task {words}", tepui().get_program().display());
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).env("SHELL", "/bin/sh").env("TEPUI_MASTER", &cluster.address);
        Terminal(script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    fn type_in(&mut self, text: &str) {
        let input = self.0.stdin.as_mut().unwrap();
        std::io::Write::write_all(input, text.as_bytes()).unwrap();
        std::io::Write::flush(input).unwrap();
    }

    /// Waits for the end. Returns the output, and the exit code.
    fn end(mut self) -> (String, Option<i32>) {
        // The command would see the end of its input before its own end.
        let input = self.0.stdin.take();
        let output = Process::of(self.0, "a command at a terminal".to_owned()).output();
        drop(input);
        (String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n"), output.status.code())
    }
}

/// Runs a command at a terminal, and types all input at once.
fn at_a_terminal(cluster: &OneAgent, words: &str, typed: &str) -> (String, Option<i32>) {
    let mut terminal = Terminal::open(cluster, words);
    terminal.type_in(typed);
    terminal.end()
}

#[test]
fn terminals_of_tasks_outlive_the_agent() {
    for flags in [vec!["--launcher=posix"], vec!["--isolation=cgroups/cpu,namespaces/pid"]] {
        if flags[0] != "--launcher=posix" && !can_isolate() {
            return println!("not run: it needs root, and cgroups v1");
        }
        let flags: Vec<String> = flags.into_iter().map(str::to_owned).collect();
        let mut cluster = OneAgent::start("terminal", &flags);
        let container = json!({"type": "MESOS", "tty_info": {"window_size": {"rows": 30, "columns": 90}}});
        let talk = "stty size < /dev/tty; stty -echo; echo ready; while read word; do [ $word = end ] && exit 3; echo got $word; \
            stty size; done";
        let task = cluster.start_task("talk", json!({"value": talk}), container);
        let written = |cluster: &OneAgent| fs::read_to_string(cluster.sandbox("talk").unwrap().join("stdout")).unwrap();
        wait_for("the task is ready", || written(&cluster).contains("ready").then_some(()));
        assert!(written(&cluster).starts_with("30 90"), "{}", written(&cluster));
        let mut terminal = Terminal::open(&cluster, "attach talk");
        terminal.type_in("one\n");
        wait_for("the task has heard", || written(&cluster).contains("got one\r\n33 77").then_some(()));
        terminal.type_in("\u{10}\u{11}");
        let (seen, code) = terminal.end();
        assert!(seen.contains("detached; task 'talk' is still running") && code == Some(0), "{seen}");
        cluster.kill_agent_and_start_it_again();
        wait_for("the task can be attached to again", || {
            let (seen, code) = at_a_terminal(&cluster, "attach talk", "two\nend\n");
            (code == Some(1)).then_some(seen).filter(|seen| seen.contains("is failed"))
        });
        assert!(written(&cluster).contains("got two"), "{}", written(&cluster));
        let told = String::from_utf8_lossy(&task.output().stdout).into_owned();
        assert!(told.contains("Command exited with status 3"), "{told}");
        let plain = cluster.start_task("plain", json!({"value": "echo up; sleep 1000"}), json!({"type": "MESOS"}));
        let (seen, code) = at_a_terminal(&cluster, "attach plain", "");
        assert!(seen.contains("has no terminal") && code == Some(1), "{seen}");
        let (seen, code) = at_a_terminal(&cluster, "exec -it plain sh -c 'tty; stty size; read x; exit $x'", "5\n");
        assert!(seen.contains("/dev/pts/") && seen.contains("33 77") && code == Some(5), "{seen}");
        end(plain);
    }
}

fn prune(cluster: &OneAgent, registry: &Path) {
    let layers = || fs::read_dir(registry.join("store/layers")).unwrap().count();
    assert_eq!(layers(), 2);
    let answer = request(&cluster.agent_address(), "POST", "/api/v1", r#"{"type": "PRUNE_IMAGES"}"#).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    until("the store is empty", || layers() == 0);
}

#[test]
fn system_calls_are_refused() {
    if !can_isolate() {
        return println!("not run: it needs root, and cgroups v1");
    }
    let profiles = Directory::new("profiles");
    let profile = |names: &[&str]| {
        json!({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": names, "action": "SCMP_ACT_ERRNO"}]})
            .to_string()
    };
    profiles.write("default.json", &profile(&["mkdir", "mkdirat"]));
    profiles.write("links.json", &profile(&["symlink", "symlinkat"]));
    let flags = [
        "--isolation=cgroups/cpu,linux/seccomp".to_owned(),
        format!("--seccomp_config_dir={}", profiles.path().display()),
        "--seccomp_profile_name=default.json".to_owned(),
    ];
    let cluster = OneAgent::start("seccomp", &flags);
    let script = json!({"value": "mkdir d 2>/dev/null && echo mkdir; ln -s x l 2>/dev/null && echo link; true"});
    let of = |id: &str, seccomp: Value| {
        let container = json!({"type": "MESOS", "linux_info": {"seccomp": seccomp}});
        cluster.run(id, script.clone(), container)
    };
    assert_eq!(cluster.run("default", script.clone(), json!({"type": "MESOS"})).1, "link\n");
    assert_eq!(of("named", json!({"profile_name": "links.json"})).1, "mkdir\n");
    assert_eq!(of("free", json!({"unconfined": true})).1, "mkdir\nlink\n");
    let (told, _) = of("none", json!({"profile_name": "../x.json"}));
    assert!(told.contains("TASK_FAILED") && told.contains("is not a name of a file"), "{told}");
}
