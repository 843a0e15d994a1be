//! Tests three masters behind a ZooKeeper of Debian's, and clients with a list of addresses: a dead one, one of a
//! server that is not a master, and those of the masters. The leader is killed; an agent, a task, commands and
//! frameworks follow.
//!
//! Requires Java and ZooKeeper; where they are missing the test reports that.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::process::{Process, Stream, ToItsEnd};
use crate::support::{Daemon, Directory, call, exchange, free_port, tepui, until, wait_for};

const JAR: &str = "/usr/share/java/zookeeper.jar";

/// A server of ZooKeeper, which is killed when this is dropped.
pub struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// Starts a server; `None` if ZooKeeper is not installed.
    pub fn start(directory: &Directory) -> Option<Server> {
        if !Path::new(JAR).exists() || Command::new("java").arg("-version").output().is_err() {
            return None;
        }
        let port = free_port();
        let data = directory.join("zookeeper");
        let config = format!(
            "tickTime=500\ndataDir={data}\nclientPort={port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n\
             4lw.commands.whitelist=ruok\n"
        );
        let config = directory.write("zoo.cfg", &config);
        let main = "org.apache.zookeeper.server.quorum.QuorumPeerMain";
        let mut command = Command::new("java");
        command.args(["-Xmx128m", "-cp", "/usr/share/java/*", main, &config]);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        let server = Server { process, port };
        until("ZooKeeper serves", || {
            exchange(&format!("127.0.0.1:{port}"), "ruok").is_some_and(|answer| answer == "imok")
        });
        Some(server)
    }

    pub fn url(&self) -> String {
        format!("zk://127.0.0.1:{}/tepui", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts a server that is not a master. It ends with the test's process.
fn foreign() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    address
}

struct Group {
    masters: Vec<(Daemon, String)>,
}

impl Group {
    fn start(directory: &Directory, url: &str) -> Group {
        let master = |name: &str| {
            let words = [
                "master".to_owned(),
                "--ip=127.0.0.1".to_owned(),
                "--hostname=127.0.0.1".to_owned(),
                format!("--port={}", free_port()),
                format!("--work_dir={}", directory.join(name)),
                format!("--zk={url}"),
                "--quorum=2".to_owned(),
                "--zk_session_timeout=2secs".to_owned(),
                "--allocation_interval=50ms".to_owned(),
            ];
            let mut master = Daemon::start(&directory.path().join(format!("{name}.log")), &words, &[]);
            let address = master.address().expect("the master runs");
            (master, address)
        };
        Group { masters: ["m1", "m2", "m3"].map(master).into() }
    }

    /// Returns the address of the master that leads and has read its registry.
    fn leader(&self) -> String {
        wait_for("a master leads", || {
            let leads = |address: &&String| {
                let state = call(address, "GET", "/state");
                state.is_some_and(|state| state["leader"] == format!("master@{address}"))
            };
            self.masters.iter().map(|(_, address)| address).find(leads).cloned()
        })
    }

    /// Kills the leader and returns its address.
    fn kill_leader(&mut self) -> String {
        let leader = self.leader();
        self.masters.retain(|(_, address)| *address != leader);
        leader
    }
}

pub fn agent(directory: &Directory, masters: &str) -> (Daemon, String) {
    let words = ["agent", "--ip=127.0.0.1", "--launcher=posix", "--resources=cpus:2;mem:256;disk:256"];
    let own = [
        format!("--port={}", free_port()),
        format!("--master={masters}"),
        format!("--work_dir={}", directory.join("w")),
        format!("--runtime_dir={}", directory.join("r")),
        "--registration_backoff_factor=10ms".to_owned(),
    ];
    let words: Vec<String> = words.into_iter().map(str::to_owned).chain(own).collect();
    let mut agent = Daemon::start(&directory.path().join("a.log"), &words, &[]);
    let address = agent.address().expect("the agent runs");
    (agent, address)
}

/// Runs a command and returns its output, or its error.
fn run(masters: &str, words: &[&str]) -> Result<String, String> {
    let output = tepui().args(words).env("TEPUI_MASTER", masters).run();
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Returns the number of active agents, and the tasks with their states, as commands with the list show them.
fn seen(masters: &str) -> Option<(usize, Vec<(String, String)>)> {
    let all = |words: &[&str]| serde_json::from_str::<Value>(&run(masters, words).ok()?).ok();
    let agents = all(&["agents", "-o", "json"])?.as_array()?.clone();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let tasks = all(&["tasks", "-o", "json"])?.as_array()?.clone();
    let mut tasks: Vec<_> = tasks.iter().map(|task| (text(task, "id"), text(task, "state"))).collect();
    tasks.sort();
    Some((agents.iter().filter(|agent| agent["active"] == true).count(), tasks))
}

pub fn is_registered(agent: &str) -> bool {
    call(agent, "GET", "/metrics/snapshot").is_some_and(|told| told["slave/registered"] == 1.0)
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long clients take to follow is real time, and is printed")]
fn all_clients_follow_the_leader_among_the_masters_of_a_list() {
    let directory = Directory::new("master-list");
    let Some(zookeeper) = Server::start(&directory) else { return println!("not run: it needs Java and ZooKeeper") };
    let mut group = Group::start(&directory, &zookeeper.url());
    let leader = group.leader();
    let addresses: Vec<&str> = group.masters.iter().map(|(_, address)| address.as_str()).collect();
    let masters = format!("127.0.0.1:{},{},{}", free_port(), foreign(), addresses.join(","));

    let (_agent, agent_at) = agent(&directory, &masters);
    until("the agent is registered", || is_registered(&agent_at));
    let done = directory.path().join("done");
    let command = format!("--command=while [ ! -e {} ]; do sleep 0.1; done", done.display());
    let words = ["execute", "--name=waits", "--resources=cpus:1;mem:32", "--master", &masters, &command];
    let mut execute = Process::start(tepui().args(words));
    execute.line(Stream::Stdout, &["TASK_RUNNING"]);
    let state = directory.join("state");
    let words = ["framework", "binpack", "--json", "--master", &masters, "--state-dir", &state];
    let mut framework = Process::start(tepui().args(words));
    framework.until("the framework is known", || run(&masters, &["job", "list"]).is_ok());
    let job = "[[job]]\nname = 'serves'\nkind = 'service'\ncpus = 0.5\nmem = 32\ncommand = 'exec sleep 1000'\n";
    let file = directory.write("serves.toml", job);
    run(&masters, &["job", "submit", &file]).unwrap();
    let sees_all = || {
        let (agents, tasks) = seen(&masters)?;
        let run = tasks.len() == 2 && tasks.iter().all(|(_, state)| state == "TASK_RUNNING");
        (agents == 1 && run).then_some(tasks)
    };
    let before = wait_for("the tasks run", sees_all);

    // With ZooKeeper's session of 2 seconds no master leads for about as long.
    assert_eq!(group.kill_leader(), leader);
    let began = Instant::now();
    let next = group.leader();
    println!("the next master leads after {:?}", began.elapsed());
    until("the agent is registered with it", || {
        call(&next, "GET", "/slaves").is_some_and(|told| told["slaves"][0]["active"] == true)
    });
    println!("the agent is registered after {:?}", began.elapsed());
    until("the frameworks are connected", || {
        let told = call(&next, "GET", "/frameworks").unwrap_or_default();
        let all = told["frameworks"].as_array().cloned().unwrap_or_default();
        all.len() == 2 && all.iter().all(|framework| framework["active"] == true)
    });
    println!("the frameworks are subscribed after {:?}", began.elapsed());
    assert_eq!(wait_for("commands see the tasks", sees_all), before);
    println!("commands see all after {:?}", began.elapsed());
    assert!(!execute.has_ended() && !framework.has_ended());
    std::fs::write(&done, "").unwrap();
    execute.line(Stream::Stdout, &["TASK_FINISHED"]);
    assert!(execute.end().success());

    // The framework is dropped while there is a master, since it unregisters when it ends.
    drop(framework);

    // Without a leader the error names each address and its answer.
    group.masters.truncate(1);
    drop(zookeeper);
    let error = wait_for("no master leads", || run(&masters, &["agents"]).err());
    assert!(
        error.contains("--master") && error.contains("it is not a master: it answers /redirect with 404"),
        "{error}"
    );
}
