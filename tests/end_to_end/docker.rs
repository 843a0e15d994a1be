//! Tests tasks and executors in Docker containers, with a `dockerd` of the test's own, on an agent that is also killed
//! in between.
//!
//! Requires root; without a Docker daemon the test reports that.
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::containers::{programs_into, shell_into, tar};
use crate::docker_checks;
use crate::one_agent::{OneAgent, a_little, end};
use crate::process::{Process, ToItsEnd};
use crate::support::{binary, call, wait_for};

/// A Docker daemon of the test's own.
pub struct Dockerd {
    process: Child,
    directory: PathBuf,
}

impl Dockerd {
    /// Starts a daemon whose directory has this name. Returns `None`, with the reason on standard output, if Docker is
    /// not installed or cannot start.
    pub fn start(name: &str) -> Option<Dockerd> {
        let directory = std::env::temp_dir().join(format!("tepui-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let at = |name: &str| directory.join(name).display().to_string();
        let log = fs::File::create(directory.join("log")).unwrap();
        let started = Command::new("dockerd")
            .args(["--data-root", &at("data"), "--exec-root", &at("exec"), "--pidfile", &at("pid")])
            .args(["-H", &format!("unix://{}", at("socket")), "--iptables=false", "--ip6tables=false", "--bridge=none"])
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        let Ok(process) = started else {
            println!("NOT RUN: there is no dockerd; install it with: apt install docker.io");
            return None;
        };
        let mut dockerd = Dockerd { process, directory };
        let up = wait_for("dockerd answers, or has ended", || {
            if dockerd.process.try_wait().unwrap().is_some() {
                return Some(false);
            }
            dockerd.docker(&["version"]).status.success().then_some(true)
        });
        if !up {
            let log = fs::read_to_string(dockerd.directory.join("log")).unwrap();
            println!("NOT RUN: dockerd cannot start here: {}", log.lines().last().unwrap_or_default());
            return None;
        }
        Some(dockerd)
    }

    pub fn socket(&self) -> String {
        self.directory.join("socket").display().to_string()
    }

    /// Returns a path in the daemon's directory, which is deleted with it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Creates an image with only these programs and what they need.
    fn import(&self, name: &str, programs: &[&str]) {
        let root = self.directory.join(name.replace(':', "-"));
        programs_into(&root, programs);
        self.import_root(name, &root, &[]);
    }

    /// Creates an image from a directory, with these instructions of a Dockerfile.
    pub fn import_root(&self, name: &str, root: &Path, changes: &[&str]) {
        let archive = root.with_extension("tar");
        tar(root, &archive);
        let archive = archive.to_string_lossy();
        let changes = changes.iter().flat_map(|change| ["--change", change]);
        let words: Vec<&str> = ["import"].into_iter().chain(changes).chain([&*archive, name]).collect();
        let imported = self.docker(&words);
        assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
    }

    pub fn docker(&self, words: &[&str]) -> std::process::Output {
        let mut docker = Command::new("docker");
        docker.args(["-H", &format!("unix://{}", self.socket())]).args(words).run()
    }

    pub fn running(&self) -> String {
        String::from_utf8_lossy(&self.docker(&["ps", "--format", "{{.Names}}"]).stdout).into_owned()
    }
}

impl Drop for Dockerd {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", fs::read_to_string(self.directory.join("log")).unwrap_or_default());
        }
        let all = String::from_utf8_lossy(&self.docker(&["ps", "-aq"]).stdout).into_owned();
        for container in all.split_whitespace() {
            self.docker(&["rm", "-f", container]);
        }
        self.docker(&["network", "prune", "-f"]);
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
        // The daemon leaves a mounted network namespace behind.
        let _ = Command::new("umount").arg(self.directory.join("exec/netns/default")).status();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

pub fn docker_image(more: Value) -> Value {
    let mut docker = json!({"image": "shell:1"});
    docker.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    json!({"type": "DOCKER", "docker": docker})
}

#[test]
fn docker_runs_tasks() {
    if !nix::unistd::geteuid().is_root() {
        return println!("not run: dockerd needs root");
    }
    let Some(dockerd) = Dockerd::start("dockerd") else { return };
    let root = dockerd.directory.join("root");
    shell_into(&root);
    tar(&root, &dockerd.directory.join("root.tar"));
    let archive = dockerd.directory.join("root.tar").display().to_string();
    let imported = dockerd.docker(&["import", &archive, "shell:1"]);
    assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
    let flags = [
        "--launcher=posix".to_owned(),
        "--containerizers=mesos,docker".to_owned(),
        format!("--docker_socket={}", dockerd.socket()),
        "--docker_remove_delay=1ms".to_owned(),
        format!("--docker_config={}", dockerd.directory.join("config.json").display()),
    ];
    let registry = Registry::start();
    fs::write(dockerd.directory.join("config.json"), registry.login("operator")).unwrap();
    let mut cluster = OneAgent::start("docker", &flags);
    let data = cluster.directory.path().join("data");
    fs::create_dir_all(&data).unwrap();
    fs::write(data.join("file"), "of the host\n").unwrap();
    let mut container = docker_image(json!({"parameters": [{"key": "env", "value": "MORE=2"}]}));
    container["volumes"] = json!([{"mode": "RO", "container_path": "/data", "host_path": data}]);
    let script = "echo $WORD $MORE; echo problem >&2; read x < /data/file; echo $x; echo y > $MESOS_SANDBOX/made; \
        echo z > /data/new || echo read-only; exit 3";
    let variables = json!({"variables": [{"name": "WORD", "value": "one"}]});
    let (told, written) = cluster.run("first", json!({"value": script, "environment": variables}), container);
    assert!(told.contains("TASK_RUNNING") && told.contains("Container exited with status 3"), "{told}");
    assert_eq!(written, "one 2\nof the host\nread-only\n", "{told}");
    let sandbox = cluster.sandbox("first").unwrap();
    assert!(sandbox.join("made").exists());
    assert!(fs::read_to_string(sandbox.join("stderr")).unwrap().contains("problem"));
    let none = json!({"type": "DOCKER", "docker": {"image": "127.0.0.1:1/none:1"}});
    let (told, _) = cluster.run("none", json!({"value": "true"}), none);
    assert!(told.contains("TASK_FAILED") && told.contains("Failed to pull the image '127.0.0.1:1/none:1'"), "{told}");
    assert!(told.contains("REASON_CONTAINER_LAUNCH_FAILED"), "{told}");
    let (told, _) = cluster.run(
        "bad",
        json!({"value": "true"}),
        docker_image(json!({"parameters": [{"key": "nonsense", "value": "1"}]})),
    );
    assert!(told.contains("The Docker parameter 'nonsense' is not supported"), "{told}");
    docker_outlives_the_agent(&mut cluster, &dockerd);
    docker_runs_executors(&mut cluster, &dockerd);
    docker_checks::run(&cluster, &dockerd);
    docker_pulls_with_logins(&cluster, &registry);
    drop(cluster);
    docker_has_executors_apart(&dockerd, &flags);
}

/// Tests an agent that runs in a container (`--docker_mesos_image`): its executors are in containers of their own, and
/// continue when all processes that it has started end with it.
fn docker_has_executors_apart(dockerd: &Dockerd, flags: &[String]) {
    dockerd.import("tepui:1", &[&binary()]);
    let flags: Vec<String> = flags.iter().cloned().chain(["--docker_mesos_image=tepui:1".to_owned()]).collect();
    let mut cluster = OneAgent::start("apart", &flags);
    let image = || docker_image(json!({}));
    // A path with a colon is hard to write as a bind.
    let mut container = image();
    container["volumes"] = json!([{"mode": "RW", "container_path": "/own", "host_path": "deep/own"}]);
    // Variables that configure executors reach the task only.
    let elsewhere = cluster.directory.path().join("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    let variables = ["TEPUI_DOCKER_OUTPUT", "TEPUI_DOCKER_STOP_TIMEOUT"]
        .map(|name| json!({"name": name, "value": elsewhere.display().to_string()}));
    let script = "echo one; echo $TEPUI_DOCKER_OUTPUT > /own/file; exit 3";
    let command = json!({"value": script, "environment": {"variables": variables}});
    let (told, written) = cluster.run("a:b", command, container);
    assert!(told.contains("TASK_RUNNING") && told.contains("Container exited with status 3"), "{told}");
    assert_eq!(written, "one\n", "{told}");
    let own = cluster.sandbox("a:b").unwrap().join("deep/own/file");
    assert_eq!(fs::read_to_string(own).unwrap().trim_end(), elsewhere.to_string_lossy());
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    let loops = "while [ ! -e $MESOS_SANDBOX/end ]; do sleep 0.05; done";
    let task = cluster.start_task("long", json!({"value": format!("echo up; {loops}; echo down; exit 7")}), image());
    let other = cluster.start_task("other", json!({"value": "echo up; sleep 1000"}), image());
    wait_for("the tasks run, and their executors", || (dockerd.running().lines().count() == 4).then_some(()));
    // Stopping a unit signals all its processes before their agent has ended.
    let stopped = runners(dockerd);
    assert_eq!(stopped.len(), 2, "{stopped:?}");
    tell_all(&stopped, "-TERM");
    cluster.stop_agent();
    wait_for("they have ended with the agent", || runners(dockerd).is_empty().then_some(()));
    cluster.kill_agent_and_start_it_again();
    assert_eq!(dockerd.running().lines().count(), 4, "{}", dockerd.running());
    cluster.replace_agent(|| tell_all(&runners(dockerd), "-KILL"));
    assert_eq!(dockerd.running().lines().count(), 4, "{}", dockerd.running());
    fs::write(cluster.sandbox("long").unwrap().join("end"), "").unwrap();
    let told = String::from_utf8_lossy(&task.output().stdout).into_owned();
    assert!(told.contains("Container exited with status 7"), "{told}");
    assert_eq!(fs::read_to_string(cluster.sandbox("long").unwrap().join("stdout")).unwrap(), "up\ndown\n");
    end(other);
    wait_for("nothing is left", || {
        String::from_utf8_lossy(&dockerd.docker(&["ps", "-aq"]).stdout).trim().is_empty().then_some(())
    });
}

fn tell_all(processes: &[u32], signal: &str) {
    for process in processes {
        let _ = Command::new("kill").args([signal, &process.to_string()]).status();
    }
}

/// Returns the processes beside executors that are in containers of this daemon.
fn runners(dockerd: &Dockerd) -> Vec<u32> {
    let socket = format!("TEPUI_DOCKER_SOCKET={}", dockerd.socket());
    let all = fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let stands_beside = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let variables: Vec<_> = environment.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        let is_beside = |name: &str| name.starts_with("TEPUI_DOCKER_NAME=mesos-") && name.ends_with(".executor");
        variables.iter().any(|own| *own == socket) && variables.iter().any(|name| is_beside(name))
    };
    pids.filter(stands_beside).collect()
}

/// A registry without images that records its requests.
struct Registry {
    address: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Registry {
    fn start() -> Registry {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let noted = heard.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let head = BufReader::new(&stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
                let login = head.filter_map(|line| Some(line.strip_prefix("Authorization: Basic ")?.to_owned())).last();
                let answer = match login {
                    Some(login) => {
                        noted.lock().unwrap().push(login);
                        "404 Not Found"
                    }
                    None => "401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"",
                };
                let version = "Docker-Distribution-Api-Version: registry/2.0";
                let rest = format!("{version}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                let _ = stream.write_all(format!("HTTP/1.1 {answer}\r\n{rest}").as_bytes());
            }
        });
        Registry { address, heard }
    }

    /// Returns Docker's configuration file for this user.
    fn login(&self, user: &str) -> String {
        let mut logins = json!({});
        logins[&self.address] = json!({"username": user, "password": "x"});
        json!({"auths": logins, "credHelpers": {self.by_name(): "test"}}).to_string()
    }

    /// Returns the registry's address in the form under which programs store logins.
    fn by_name(&self) -> String {
        self.address.replace("127.0.0.1", "localhost")
    }
}

/// Asserts that the operator's logins, and those in a task's sandbox, are used for pulls.
fn docker_pulls_with_logins(cluster: &OneAgent, registry: &Registry) {
    let directory = cluster.directory.path().join("logins");
    fs::create_dir_all(directory.join("packed/.docker")).unwrap();
    fs::write(directory.join("packed/.docker/config.json"), registry.login("packed")).unwrap();
    let packed = directory.join("docker.tar.gz");
    assert!(
        Command::new("tar")
            .arg("-C")
            .arg(directory.join("packed"))
            .arg("-czf")
            .arg(&packed)
            .arg(".docker")
            .status()
            .unwrap()
            .success()
    );
    fs::write(directory.join(".dockercfg"), registry.login("older")).unwrap();
    let (address, by_name) = (registry.address.clone(), registry.by_name());
    let bin = cluster.directory.path().join("bin");
    fs::create_dir_all(&bin).unwrap();
    let helper = bin.join("docker-credential-test");
    let script = format!(
        "#!/bin/sh\n[ \"$1 $(cat)\" = 'get {by_name}' ] && echo '{{\"Username\":\"helped\",\"Secret\":\"x\"}}'\n"
    );
    fs::write(&helper, script).unwrap();
    fs::set_permissions(&helper, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    // The users above, with the password, in base64.
    for (id, host, uri, login) in [
        ("operator", &address, None, "b3BlcmF0b3I6eA=="),
        ("packed", &address, Some(packed), "cGFja2VkOng="),
        ("older", &address, Some(directory.join(".dockercfg")), "b2xkZXI6eA=="),
        ("helped", &by_name, None, "aGVscGVkOng="),
    ] {
        let image = format!("{host}/none:1");
        let uris: Vec<Value> = uri.iter().map(|path| json!({"value": path})).collect();
        let container = json!({"type": "DOCKER", "docker": {"image": image}});
        let (told, _) = cluster.run(id, json!({"value": "true", "uris": uris}), container);
        assert!(told.contains("TASK_FAILED") && told.contains("Failed to pull the image"), "{told}");
        let heard = std::mem::take(&mut *registry.heard.lock().unwrap());
        assert!(!heard.is_empty() && heard.iter().all(|heard| heard == login), "{id}: {heard:?} {told}");
    }
}

/// Runs a custom executor in a Docker container: `examples/executor.rs`, which counts primes.
fn docker_runs_executors(cluster: &mut OneAgent, dockerd: &Dockerd) {
    let program = Path::new(env!("CARGO_BIN_EXE_tepui")).parent().unwrap().join("examples/executor");
    assert!(program.exists(), "{} is not built: cargo build --examples", program.display());
    let program = program.to_string_lossy().into_owned();
    dockerd.import("counter:1", &[&program]);
    let task = |id: &str, image: &str, below: &str| {
        let executor = json!({"executor_id": {"value": id}, "command": {"shell": false, "value": program},
            "resources": a_little(), "container": {"type": "DOCKER", "docker": {"image": image}}});
        json!({"name": id, "task_id": {"value": id}, "resources": a_little(), "executor": executor, "data": below})
    };
    let told = |task: &Value| {
        let output = cluster.execute(task).run();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    let said = told(&task("count", "counter:1", "AAAD6A=="));
    assert!(said.contains("TASK_FINISHED") && said.contains("168 primes"), "{said}");
    let said = told(&task("missing", "127.0.0.1:1/none:1", "AAAD6A=="));
    assert!(said.contains("TASK_FAILED") && said.contains("Failed to pull the image '127.0.0.1:1/none:1'"), "{said}");
    wait_for("nothing is left", || dockerd.running().trim().is_empty().then_some(()));
    // The executor would count for a long time (numbers are four bytes, in base64), and outlives its agent.
    let mut execute = Process::start(&mut cluster.execute(&task("long", "counter:1", "AP///w==")));
    let runs = |cluster: &OneAgent| {
        let tasks = call(&cluster.address, "GET", "/tasks?task_id=long")?;
        (tasks["tasks"][0]["state"] == "TASK_RUNNING" && dockerd.running().lines().count() == 1).then_some(())
    };
    execute.wait_for("it runs", || runs(cluster));
    cluster.kill_agent_and_start_it_again();
    wait_for("the agent has it again", || {
        let state = call(&cluster.agent_address(), "GET", "/state")?;
        let executors = state["frameworks"].as_array()?.iter().flat_map(|framework| framework["executors"].as_array());
        executors.flatten().any(|executor| executor["id"] == "long").then_some(())
    });
    wait_for("it runs as before", || runs(cluster));
    execute.kill();
    wait_for("it has ended with its framework", || dockerd.running().trim().is_empty().then_some(()));
}

fn docker_outlives_the_agent(cluster: &mut OneAgent, dockerd: &Dockerd) {
    let loops = "while [ ! -e $MESOS_SANDBOX/end ]; do sleep 0.05; done";
    let wait = |end: &str| format!("trap '{end}' TERM; echo up; {loops}; exit 7");
    let polite = cluster.start_task("polite", json!({"value": wait("echo asked; exit 0")}), docker_image(json!({})));
    let task = cluster.start_task("long", json!({"value": wait(":")}), docker_image(json!({})));
    // A container may write output before dockerd lists it as running.
    wait_for("both run", || (dockerd.running().lines().count() == 2).then_some(()));
    cluster.kill_agent_and_start_it_again();
    assert_eq!(dockerd.running().lines().count(), 2);
    fs::write(cluster.sandbox("long").unwrap().join("end"), "").unwrap();
    let told = String::from_utf8_lossy(&task.output().stdout).into_owned();
    assert!(told.contains("Container exited with status 7"), "{told}");
    end(polite);
    let sandbox = cluster.sandbox("polite").unwrap();
    wait_for("it was asked to end", || {
        fs::read_to_string(sandbox.join("stdout")).unwrap().contains("asked").then_some(())
    });
    wait_for("nothing is left", || {
        String::from_utf8_lossy(&dockerd.docker(&["ps", "-aq"]).stdout).trim().is_empty().then_some(())
    });
}
