//! A master and one agent with flags of the test's own, for tests that look into what the agent makes of tasks.
//!
//! What they check is theirs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Daemon, Folder, get, signal, tepui, wait_for};

/// A master and an agent whose tasks are watched through `tepui execute` and their sandboxes.
pub struct OneAgent {
    group: String,
    flags: Vec<String>,
    /// The master's.
    pub address: String,
    /// The agent and its port.
    agent: Option<(Daemon, String)>,
    _master: Daemon,
    pub folder: Folder,
}

impl OneAgent {
    pub fn start(name: &str, flags: &[String]) -> OneAgent {
        OneAgent::start_at(name, "127.0.0.1", flags)
    }

    /// The agent is at this address.
    pub fn start_at(name: &str, ip: &str, flags: &[String]) -> OneAgent {
        let folder = Folder::new(&format!("containers-{name}"));
        let words = ["master".into(), "--ip=127.0.0.1".into(), "--port=0".into(), "--registry=in_memory".into()];
        let words: Vec<String> = words.into_iter().chain([format!("--work_dir={}", folder.join("m"))]).collect();
        let mut master = Daemon::start(&folder.path().join("m.log"), &words, &[]);
        let address = master.address().expect("the master runs");
        let group = format!("tepui-containers-{name}-{}", std::process::id());
        let own = [
            "agent".to_owned(),
            format!("--ip={ip}"),
            format!("--master={address}"),
            format!("--work_dir={}", folder.join("a")),
            format!("--runtime_dir={}", folder.join("r")),
            format!("--cgroups_root={group}"),
            "--resources=cpus:4;mem:1024;disk:1024;ports:[31000-31009]".to_owned(),
        ];
        let flags = own.iter().chain(flags).cloned().collect();
        let mut cluster = OneAgent { group, flags, address, agent: None, _master: master, folder };
        cluster.start_agent("0");
        cluster
    }

    /// Starts the agent; on the same port again, as its address must not change.
    fn start_agent(&mut self, port: &str) {
        let mut flags = self.flags.clone();
        flags.push(format!("--port={port}"));
        let mut agent = Daemon::start(&self.folder.path().join("a.log"), &flags, &[]);
        let address = agent.address().expect("the agent runs");
        let port = address.rsplit(':').next().unwrap().to_owned();
        self.agent = Some((agent, port));
    }

    /// The agent's address, if it is at the one that they have by default.
    pub fn agent_address(&self) -> String {
        let (_, port) = self.agent.as_ref().expect("the agent runs");
        format!("127.0.0.1:{port}")
    }

    pub fn kill_agent_and_start_it_again(&mut self) {
        let (old, port) = self.agent.take().unwrap();
        drop(old);
        self.start_agent(&port);
    }

    /// `tepui execute` for a task with a little of the agent, and `more` resources.
    fn command(&self, id: &str, command: Value, container: Value, more: &[Value]) -> Command {
        let mut resources = [&a_little(), more].concat();
        let infos = container["network_infos"].as_array().into_iter().flatten();
        let mappings = infos.flat_map(|info| info["port_mappings"].as_array().into_iter().flatten());
        for port in mappings.filter_map(|mapping| mapping["host_port"].as_u64()).filter(|port| *port >= 31000) {
            let range = json!({"range": [{"begin": port, "end": port}]});
            resources.push(json!({"name": "ports", "type": "RANGES", "ranges": range}));
        }
        self.execute(&json!({"name": id, "task_id": {"value": id}, "command": command, "container": container,
            "resources": resources}))
    }

    /// `tepui execute` for a task, whose agent it fills in.
    pub fn execute(&self, task: &Value) -> Command {
        let mut process = tepui();
        process.args(["execute", "--checkpoint=true", "--master", &self.address]);
        process.arg(format!("--task={task}")).stdout(Stdio::piped()).stderr(Stdio::piped());
        process
    }

    /// Runs a task to its end: what `tepui execute` told, and the task's standard output.
    pub fn run(&self, id: &str, command: Value, container: Value) -> (String, String) {
        let output = self.command(id, command, container, &[]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let written = self.sandbox(id).and_then(|sandbox| fs::read_to_string(sandbox.join("stdout")).ok());
        (told, written.unwrap_or_default())
    }

    /// Runs commands as the tasks of a pod, by their ids, to their end; what `tepui execute` told.
    pub fn run_pod(&self, commands: &[(&str, String)]) -> String {
        let task = |(id, command): &(&str, String)| {
            json!({"name": id, "task_id": {"value": id}, "agent_id": {"value": ""}, "resources": a_little(),
                "command": {"value": command}})
        };
        let tasks: Vec<Value> = commands.iter().map(task).collect();
        let mut process = tepui();
        process.args(["execute", "--checkpoint=true", "--master", &self.address]);
        let output = process.arg(format!("--task_group={}", json!({"tasks": tasks}))).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }

    /// The sandbox of a task that has run.
    pub fn sandbox(&self, id: &str) -> Option<PathBuf> {
        let children = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let agents = children(self.folder.path().join("a/slaves"));
        let frameworks = agents.flat_map(|agent| children(agent.join("frameworks")));
        let mut runs = frameworks.map(|framework| framework.join("executors").join(id).join("runs/latest"));
        runs.find(|run| run.exists()).and_then(|run| run.canonicalize().ok())
    }

    /// Starts a task and waits until it has written a line, and its master knows that it runs.
    pub fn start_task(&self, id: &str, command: Value, container: Value) -> Child {
        self.start_task_with(id, command, container, &[])
    }

    /// The same with more resources.
    pub fn start_task_with(&self, id: &str, command: Value, container: Value, more: &[Value]) -> Child {
        let child = self.command(id, command, container, more).spawn().unwrap();
        wait_for("the task has written", || {
            let text = fs::read_to_string(self.sandbox(id)?.join("stdout")).ok()?;
            text.contains('\n').then_some(())
        });
        wait_for("the master knows of it", || {
            let tasks = get(&self.address, &format!("/tasks?task_id={id}"))?;
            tasks.contains("TASK_RUNNING").then_some(())
        });
        child
    }
}

/// What every task holds.
pub fn a_little() -> Vec<Value> {
    let scalar = |name: &str, value: f64| json!({"name": name, "type": "SCALAR", "scalar": {"value": value}});
    vec![scalar("cpus", 0.1), scalar("mem", 64.0)]
}

impl Drop for OneAgent {
    fn drop(&mut self) {
        // An agent that leaves ends all its tasks.
        if let Some((agent, _)) = &mut self.agent {
            agent.signal("-USR1");
            wait_for("the agent leaves", || agent.ended().then_some(()));
        }
        for hierarchy in fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten() {
            remove_groups(&hierarchy.path().join(&self.group));
        }
    }
}

fn remove_groups(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_groups(&entry.path());
        }
    }
    let _ = fs::remove_dir(folder);
}

pub fn can_isolate() -> bool {
    nix::unistd::geteuid().is_root() && fs::read_to_string("/proc/mounts").is_ok_and(|text| text.contains("freezer"))
}

/// Interrupts `tepui execute`, which kills its task.
pub fn end(execute: Child) {
    signal(&execute, "-INT");
    execute.wait_with_output().unwrap();
}
