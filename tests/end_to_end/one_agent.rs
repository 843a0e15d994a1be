//! A master and one agent with flags of the test's own, for tests of what the agent does with tasks.
//!
//! It asserts nothing about tasks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::process::{Process, ToItsEnd};
use crate::support::{Daemon, Directory, free_port, get, look_for, request, tepui, wait_for};

/// A master and an agent whose tasks are watched through `tepui execute` and their sandboxes.
pub struct OneAgent {
    group: String,
    flags: Vec<String>,
    port: u16,
    /// Address of the master.
    pub address: String,
    agent: Option<Daemon>,
    _master: Daemon,
    work_dir: PathBuf,
    pub directory: Directory,
}

impl OneAgent {
    pub fn start(name: &str, flags: &[String]) -> OneAgent {
        OneAgent::start_at(name, "127.0.0.1", flags)
    }

    /// Starts a cluster whose agent is at this address.
    pub fn start_at(name: &str, ip: &str, flags: &[String]) -> OneAgent {
        let directory = Directory::new(&format!("containers-{name}"));
        let work_dir = directory.path().join("a");
        OneAgent::start_with(name, directory, ip, work_dir, flags)
    }

    /// Starts a cluster whose agent has this work directory.
    pub fn start_in(name: &str, work_dir: PathBuf, flags: &[String]) -> OneAgent {
        OneAgent::start_with(name, Directory::new(&format!("containers-{name}")), "127.0.0.1", work_dir, flags)
    }

    fn start_with(name: &str, directory: Directory, ip: &str, work_dir: PathBuf, flags: &[String]) -> OneAgent {
        let words = ["master".into(), "--ip=127.0.0.1".into(), "--port=0".into(), "--registry=in_memory".into()];
        let words: Vec<String> = words.into_iter().chain([format!("--work_dir={}", directory.join("m"))]).collect();
        let mut master = Daemon::start(&directory.path().join("m.log"), &words, &[]);
        let address = master.address().expect("the master runs");
        let group = format!("tepui-containers-{name}-{}", std::process::id());
        let own = [
            "agent".to_owned(),
            format!("--ip={ip}"),
            format!("--master={address}"),
            format!("--work_dir={}", work_dir.display()),
            format!("--runtime_dir={}", directory.join("r")),
            format!("--cgroups_root={group}"),
            "--resources=cpus:4;mem:1024;disk:1024;ports:[31000-31009]".to_owned(),
            // The agent waits for a running executor, also on a busy machine.
            "--executor_reregistration_timeout=15secs".to_owned(),
        ];
        // The address must be the same after a restart.
        let port = free_port();
        let is_given = |own: &&String| {
            !own.starts_with("--runtime_dir") || !flags.iter().any(|flag| flag.starts_with("--runtime_dir"))
        };
        let flags = own.iter().filter(is_given).chain(flags).cloned().chain([format!("--port={port}")]).collect();
        let mut cluster = OneAgent { group, flags, port, address, agent: None, _master: master, work_dir, directory };
        cluster.start_agent();
        cluster
    }

    fn start_agent(&mut self) {
        // A test may put programs there that the agent runs.
        let path = format!("{}:{}", self.directory.join("bin"), std::env::var("PATH").unwrap_or_default());
        let mut agent = Daemon::start(&self.directory.path().join("a.log"), &self.flags, &[("PATH", path)]);
        agent.address().expect("the agent runs");
        self.agent = Some(agent);
    }

    /// Returns the agent's address, if it has the default IP address of these agents.
    pub fn agent_address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn kill_agent_and_start_it_again(&mut self) {
        self.replace_agent(|| {});
    }

    /// Kills and restarts the agent, and calls `meanwhile` while there is none.
    pub fn replace_agent(&mut self, meanwhile: impl FnOnce()) {
        drop(self.agent.take());
        meanwhile();
        self.start_agent();
    }

    /// Kills the agent, runs another one in its place to its end, and returns its output.
    pub fn end_with_an_agent(&mut self, flags: &[&str]) -> Output {
        drop(self.agent.take());
        let mut agent = tepui();
        agent.env("MESOS_SYSTEMD_RUNTIME_DIRECTORY", "/nowhere").args(&self.flags).args(flags).run()
    }

    pub fn work_dir(&self) -> &Path {
        &self.work_dir
    }

    /// Returns the agent's process.
    pub fn agent(&mut self) -> &mut Daemon {
        self.agent.as_mut().expect("there is an agent")
    }

    /// Returns the log of all agents so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("a.log")).unwrap_or_default()
    }

    /// Stops the agent as a service manager does.
    pub fn stop_agent(&mut self) {
        let agent = self.agent.as_mut().unwrap();
        agent.signal("-TERM");
        wait_for("the agent has stopped", || agent.ended().then_some(()));
    }

    /// Starts `tepui execute` for a task, without waiting.
    pub fn start_execute(&self, id: &str, command: Value) -> Process {
        Process::start(&mut self.command(id, command, json!({"type": "MESOS"}), &[]))
    }

    /// Returns `tepui execute` for a task with a small part of the agent's resources, and `more` resources.
    fn command(&self, id: &str, command: Value, container: Value, more: &[Value]) -> Command {
        let mut resources = [&a_little(), more].concat();
        let infos = container["network_infos"].as_array().into_iter().flatten();
        let mappings = infos.flat_map(|info| info["port_mappings"].as_array().into_iter().flatten());
        for port in mappings.filter_map(|mapping| mapping["host_port"].as_u64()).filter(|port| *port >= 31000) {
            let range = json!({"range": [{"begin": port, "end": port}]});
            resources.push(json!({"name": "ports", "type": "RANGES", "ranges": range}));
        }
        // A killed task has time to end, also on a busy machine.
        let kill_policy = json!({"grace_period": {"nanoseconds": 60_000_000_000_u64}});
        self.execute(&json!({"name": id, "task_id": {"value": id}, "command": command, "container": container,
            "resources": resources, "kill_policy": kill_policy}))
    }

    /// Returns `tepui execute` for a task, with the agent's id filled in.
    pub fn execute(&self, task: &Value) -> Command {
        let mut process = tepui();
        process.args(["execute", "--checkpoint=true", "--master", &self.address]);
        process.arg(format!("--task={task}"));
        process
    }

    /// Runs a task to its end. Returns the output of `tepui execute`, and the task's standard output.
    pub fn run(&self, id: &str, command: Value, container: Value) -> (String, String) {
        let output = self.command(id, command, container, &[]).run();
        let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let written = self.sandbox(id).and_then(|sandbox| fs::read_to_string(sandbox.join("stdout")).ok());
        (told, written.unwrap_or_default())
    }

    /// Runs commands as the tasks of a pod, by their ids, to their end. Returns the output of `tepui execute`.
    pub fn run_pod(&self, commands: &[(&str, String)]) -> String {
        let task = |(id, command): &(&str, String)| {
            json!({"name": id, "task_id": {"value": id}, "agent_id": {"value": ""}, "resources": a_little(),
                "command": {"value": command}})
        };
        let tasks: Vec<Value> = commands.iter().map(task).collect();
        let output = self.pod(&tasks).run();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }

    /// Starts a pod of these tasks, with the agent's id filled in.
    pub fn start_pod(&self, tasks: &[Value]) -> Process {
        Process::start(&mut self.pod(tasks))
    }

    fn pod(&self, tasks: &[Value]) -> Command {
        let mut process = tepui();
        process.args(["execute", "--checkpoint=true", "--master", &self.address]);
        process.arg(format!("--task_group={}", json!({"tasks": tasks})));
        process
    }

    /// Returns the master's latest update of a task.
    pub fn latest(&self, id: &str) -> Option<Value> {
        let answer = request(&self.address, "POST", "/api/v1", r#"{"type": "GET_TASKS"}"#)?;
        let body: Value = serde_json::from_str(answer.get(answer.find('{')?..=answer.rfind('}')?)?).ok()?;
        let tasks = body["get_tasks"]["tasks"].as_array()?;
        let task = tasks.iter().find(|task| task["task_id"]["value"] == id)?;
        task["statuses"].as_array()?.last().cloned()
    }

    /// Returns the sandbox of a task that has run.
    pub fn sandbox(&self, id: &str) -> Option<PathBuf> {
        let children =
            |directory: PathBuf| fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
        let agents = children(self.work_dir.join("slaves"));
        let frameworks = agents.flat_map(|agent| children(agent.join("frameworks")));
        let mut runs = frameworks.map(|framework| framework.join("executors").join(id).join("runs/latest"));
        runs.find(|run| run.exists()).and_then(|run| run.canonicalize().ok())
    }

    /// Starts a task and waits until it has written a line, and its master has received that it runs.
    pub fn start_task(&self, id: &str, command: Value, container: Value) -> Process {
        self.start_task_with(id, command, container, &[])
    }

    /// Starts a task like `start_task`, with more resources.
    pub fn start_task_with(&self, id: &str, command: Value, container: Value, more: &[Value]) -> Process {
        let mut execute = Process::start(&mut self.command(id, command, container, more));
        execute.wait_for("the task has written", || {
            let text = fs::read_to_string(self.sandbox(id)?.join("stdout")).ok()?;
            text.contains('\n').then_some(())
        });
        execute.wait_for("the master knows of it", || {
            let tasks = get(&self.address, &format!("/tasks?task_id={id}"))?;
            tasks.contains("TASK_RUNNING").then_some(())
        });
        execute
    }
}

/// Returns the resources of every task.
pub fn a_little() -> Vec<Value> {
    let scalar = |name: &str, value: f64| json!({"name": name, "type": "SCALAR", "scalar": {"value": value}});
    vec![scalar("cpus", 0.1), scalar("mem", 64.0)]
}

impl Drop for OneAgent {
    fn drop(&mut self) {
        // An agent that unregisters ends all its tasks.
        let left = self.agent.as_mut().is_none_or(|agent| {
            agent.signal("-USR1");
            look_for(|| agent.ended().then_some(())).is_some()
        });
        // The last process of a group may still be ending.
        let groups = fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten();
        let groups: Vec<PathBuf> = groups.map(|hierarchy| hierarchy.path().join(&self.group)).collect();
        let removed = look_for(|| groups.iter().all(|group| remove_groups(group)).then_some(())).is_some();
        assert!(std::thread::panicking() || left && removed, "the agent does not leave, or not its control groups");
    }
}

/// Removes a control group with all groups below it. Returns whether it is gone.
fn remove_groups(directory: &Path) -> bool {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_groups(&entry.path());
        }
    }
    let _ = fs::remove_dir(directory);
    !directory.exists()
}

pub fn can_isolate() -> bool {
    nix::unistd::geteuid().is_root() && fs::read_to_string("/proc/mounts").is_ok_and(|text| text.contains("freezer"))
}

/// Interrupts `tepui execute`, which kills its task.
pub fn end(mut execute: Process) {
    execute.signal("-INT");
    execute.output();
}
