//! Tests the cluster of docker-compose.yml on a `dockerd` of the test's own, until after the death of the leading
//! master.
//!
//! No registry of images is available: the image of Prometheus is built from this machine's program. Requires root and
//! Docker; without a Docker daemon the test reports that.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::containers::programs_into;
use crate::docker::Dockerd;
use crate::process::ToItsEnd;
use crate::support::{binary, free_port, get, until};

/// Services of the masters in the file.
const MASTERS: [&str; 3] = ["master1", "master2", "master3"];

struct Compose {
    dockerd: Dockerd,
    port: u16,
    prometheus_port: u16,
}

impl Compose {
    fn run(&self, words: &[&str]) -> Output {
        // Newer versions of Docker have a plugin, older ones a program.
        let is_plugin = Command::new("docker").args(["compose", "version"]).run().status.success();
        let mut command = Command::new(if is_plugin { "docker" } else { "docker-compose" });
        command.args(is_plugin.then_some("compose")).args(["--project-name", "tepuitest", "--file"]);
        command.arg(repository().join("docker-compose.yml")).args(words);
        let variables = [("TEPUI_IMAGE", "tepui:1"), ("PROMETHEUS_IMAGE", "prom:1")];
        command.env("DOCKER_HOST", format!("unix://{}", self.dockerd.socket())).envs(variables);
        command.env("TEPUI_PORT", self.port.to_string());
        command.env("PROMETHEUS_PORT", self.prometheus_port.to_string()).run()
    }

    /// Returns the output of a command that must succeed.
    #[track_caller]
    fn ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let (status, out, error) = (output.status, text(output.stdout), text(output.stderr));
        assert!(status.success(), "{words:?}: {out}{error}");
        out
    }

    /// Runs a command of tepui in the container of a service and returns its output; empty if it fails.
    fn tepui(&self, service: &str, words: &[&str]) -> String {
        let output = self.run(&[&["exec", "-T", service, "tepui"], words].concat());
        if output.status.success() { String::from_utf8_lossy(&output.stdout).into_owned() } else { String::new() }
    }

    fn leads(&self, service: &str) -> bool {
        let read = ["exec", "-T", service, "wget", "-q", "-O", "-", "http://127.0.0.1:5050/metrics/snapshot"];
        let metrics: Value = serde_json::from_slice(&self.run(&read).stdout).unwrap_or_default();
        metrics["master/elected"] == 1.0
    }

    /// Returns the number of running tasks, as a master reports it.
    fn running(&self, service: &str) -> usize {
        self.tepui(service, &["tasks"]).lines().filter(|line| line.contains(" running ")).count()
    }
}

impl Drop for Compose {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let logs = self.run(&["logs", "--tail=20"]);
            eprintln!("{}", String::from_utf8_lossy(&logs.stdout));
        }
        self.run(&["down", "--volumes", "--timeout=2"]);
    }
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Builds an image from a directory, by a Dockerfile.
fn build(dockerd: &Dockerd, name: &str, dockerfile: &Path, directory: &Path) {
    let (file, directory) = (dockerfile.to_string_lossy(), directory.to_string_lossy());
    let built = dockerd.docker(&["build", "-q", "-t", name, "-f", &file, &directory]);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    fs::remove_dir_all(&*directory).unwrap();
}

fn prometheus(dockerd: &Dockerd) {
    let root = dockerd.path("prom");
    programs_into(&root, &["/usr/bin/prometheus"]);
    let flags = ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"];
    let assets = ["--web.console.templates=/usr", "--web.console.libraries=/usr"];
    let words = serde_json::json!([&["/usr/bin/prometheus"][..], &flags, &assets].concat());
    let file = dockerd.path("prom.Dockerfile");
    fs::write(&file, format!("FROM scratch\nCOPY . /\nENTRYPOINT {words}\n")).unwrap();
    build(dockerd, "prom:1", &file, &root);
}

fn tepui(dockerd: &Dockerd) {
    let image = dockerd.path("image");
    let script = repository().join("contrib/docker/root");
    let collected = Command::new(script).arg(&image).arg(binary()).run();
    assert!(collected.status.success(), "{}", String::from_utf8_lossy(&collected.stderr));
    build(dockerd, "tepui:1", &repository().join("Dockerfile"), &image);
}

#[test]
fn compose_cluster_survives_its_leading_master() {
    let has_all = ["/bin/busybox", "/usr/bin/prometheus"].iter().all(|path| Path::new(path).exists());
    if !nix::unistd::geteuid().is_root() || !has_all {
        return println!("not run: it needs root, busybox-static and prometheus");
    }
    let Some(dockerd) = Dockerd::start("compose") else { return };
    prometheus(&dockerd);
    tepui(&dockerd);
    let cluster = Compose { dockerd, port: free_port(), prometheus_port: free_port() };
    if !cluster.run(&["version"]).status.success() {
        return println!("NOT RUN: there is no docker compose; install it with: apt install docker-compose");
    }
    cluster.ok(&["up", "--detach"]);
    until("a task runs", || {
        let ran = cluster.tepui("master1", &["execute", "--command=echo hello"]);
        ran.contains("TASK_FINISHED") && ran.contains("\nhello\n")
    });
    until("all agents and frameworks are there", || {
        let agents = cluster.tepui("master1", &["agents"]);
        let frameworks = cluster.tepui("master1", &["frameworks"]);
        agents.matches(" active ").count() == 3 && frameworks.matches(" active ").count() == 3
    });
    let submit = ["job", "submit", "--name=long", "--command=exec sleep 1000", "--count=6", "--cpus=0.1"];
    assert!(cluster.tepui("binpack", &submit).contains("submitted"));
    until("the job's tasks run", || cluster.running("master1") == 6);

    let leader = MASTERS.into_iter().find(|service| cluster.leads(service)).expect("one leads");
    let other = MASTERS.into_iter().find(|service| *service != leader).unwrap();
    cluster.ok(&["kill", leader]);
    until("another master leads", || MASTERS.into_iter().any(|service| service != leader && cluster.leads(service)));
    until("the tasks are known to it", || cluster.running(other) == 6);
    assert!(!cluster.tepui(other, &["tasks", "--all"]).contains("failed"));
    until("Prometheus knows of one leader", || {
        let query = "/api/v1/query?query=sum(tepui_master_elected)";
        let answer = get(&format!("127.0.0.1:{}", cluster.prometheus_port), query).unwrap_or_default();
        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
        answer["data"]["result"][0]["value"][1] == "1"
    });
}
