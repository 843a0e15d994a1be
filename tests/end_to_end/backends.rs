//! Tests backends of images that are not the default ones, and those that this host does not support.
//!
//! Requires root and control groups; without them no test runs. The other backends are in `containers.rs`.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::containers::{shell_into, tar};
use crate::one_agent::{OneAgent, can_isolate};
use crate::support::{Daemon, Directory, wait_for};

fn image(name: &str) -> Value {
    json!({"type": "MESOS", "mesos": {"image": {"type": "DOCKER", "docker": {"name": name}}}})
}

/// Creates `<registry>/<name>:1.tar` of one layer with these directories.
fn one_layer(registry: &Path, name: &str, directories: &[&str]) {
    let (root, saved) = (registry.join(name).join("root"), registry.join(name).join("saved"));
    fs::create_dir_all(&saved).unwrap();
    shell_into(&root);
    for directory in directories {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    let id = tar(&root, &saved.join("1.tar"));
    let config = json!({"os": "linux", "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{id}")]}});
    fs::write(saved.join("config.json"), config.to_string()).unwrap();
    let manifest = json!([{"Config": "config.json", "RepoTags": [format!("{name}:1")], "Layers": ["1.tar"]}]);
    fs::write(saved.join("manifest.json"), manifest.to_string()).unwrap();
    tar(&saved, &registry.join(format!("{name}:1.tar")));
}

fn flags(registry: &Path, store: &Path, backend: &str) -> Vec<String> {
    vec![
        "--isolation=cgroups/cpu,filesystem/linux,namespaces/pid,docker/runtime".to_owned(),
        "--image_providers=docker".to_owned(),
        format!("--docker_registry={}", registry.display()),
        format!("--docker_store_dir={}", store.display()),
        format!("--image_provisioner_backend={backend}"),
    ]
}

#[test]
fn a_read_only_root() {
    if !can_isolate() {
        return println!("not run: it needs root, and cgroups v1");
    }
    let registry = Directory::new("images-bind");
    one_layer(registry.path(), "whole", &["proc", "dev", "mnt/mesos/sandbox", "given"]);
    one_layer(registry.path(), "bare", &["proc", "dev"]);
    let store = registry.path().join("store");
    let cluster = OneAgent::start("bind", &flags(registry.path(), &store, "bind"));
    let look = "echo x > /made || echo read-only; echo x > /mnt/mesos/sandbox/made; echo x > /dev/null && echo null; \
        [ -d /proc/$$ ] && echo processes; echo x > /given/made && echo given";
    let mut container = image("whole:1");
    container["volumes"] = json!([{"mode": "RW", "container_path": "/given",
        "source": {"type": "SANDBOX_PATH", "sandbox_path": {"type": "SELF", "path": "own"}}}]);
    let (told, written) = cluster.run("whole", json!({"value": look}), container.clone());
    assert_eq!(written, "read-only\nnull\nprocesses\ngiven\n", "{told}");
    assert!(cluster.sandbox("whole").unwrap().join("own/made").exists());
    container["volumes"][0]["container_path"] = json!("/nowhere");
    let (told, _) = cluster.run("nowhere", json!({"value": "true"}), container);
    assert!(told.contains("The image has no '/nowhere'"), "{told}");
    let (told, _) = cluster.run("bare", json!({"value": "true"}), image("bare:1"));
    assert!(told.contains("The image has no directory '/mnt/mesos/sandbox'"), "{told}");
    // As a volume it is read-only, too.
    let shown = json!({"mode": "RW", "container_path": "tools", "image": image("whole:1")["mesos"]["image"]});
    let look = "[ -d tools/given ] && echo there; echo x > tools/made || echo read-only";
    let (told, written) = cluster.run("volume", json!({"value": look}), json!({"type": "MESOS", "volumes": [shown]}));
    assert_eq!(written, "there\nread-only\n", "{told}");
}

/// A directory of the host that is an overlay; it is unmounted when this is dropped.
struct Overlay(Directory);

impl Overlay {
    fn mount() -> Overlay {
        let directory = Directory::new("images-above");
        for part in ["lower", "upper", "work", "seen"] {
            fs::create_dir(directory.path().join(part)).unwrap();
        }
        let [lower, upper, work] = ["lower", "upper", "work"].map(|part| directory.join(part));
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
        let mut mount = Command::new("mount");
        let status = mount.args(["-t", "overlay", "overlay", "-o", &options, &directory.join("seen")]).status();
        assert!(status.unwrap().success());
        Overlay(directory)
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.join("seen")).status();
    }
}

#[test]
fn what_a_host_cannot_have_is_refused_or_copied() {
    if !can_isolate() {
        return println!("not run: it needs root, and cgroups v1");
    }
    let registry = Directory::new("images-copied");
    crate::containers::image(registry.path());
    let overlay = Overlay::mount();
    let store = overlay.0.path().join("seen/store");
    let mut words = vec!["agent".to_owned(), "--ip=127.0.0.1".to_owned(), "--port=0".to_owned()];
    words.extend(["--master=127.0.0.1:1".to_owned(), format!("--work_dir={}", registry.join("a"))]);
    for (backend, why) in [
        ("overlay", "'overlay' cannot be used here: the file system of"),
        ("zfs", "'zfs' is none of 'auto', 'overlay', 'aufs', 'bind' and 'copy'"),
    ] {
        let log = registry.path().join("log");
        let all: Vec<String> = words.iter().cloned().chain(flags(registry.path(), &store, backend)).collect();
        let mut agent = Daemon::start(&log, &all, &[]);
        wait_for("the agent has ended", || agent.ended().then_some(()));
        let text = fs::read_to_string(log).unwrap();
        assert!(text.contains(&format!("flag '--image_provisioner_backend': {why}")), "{text}");
    }
    // The store's file system does not support whiteouts; deleted files are missing all the same.
    let cluster = OneAgent::start("auto", &flags(registry.path(), &store, "auto"));
    let look = "[ -e /etc/gone ] && echo gone is there; [ -e /hidden/old ] && echo old is there; \
        [ -e /hidden/new ] && echo new is there; echo /etc/.wh* /hidden/.wh*";
    let (told, written) = cluster.run("copied", json!({"value": look}), image("tiny:1"));
    assert_eq!(written, "new is there\n/etc/.wh* /hidden/.wh*\n", "{told}");
    let log = fs::read_to_string(cluster.directory.path().join("a.log")).unwrap();
    assert!(log.contains("the backend is Copy"), "{log}");
}
