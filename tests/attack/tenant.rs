//! A cluster in which everything is authenticated, and a tenant's framework with a running task.

use serde_json::{Value, json};

use crate::client::User;
use crate::support::{Daemon, Directory, binary, free_port, wait_for};

/// Text in the names of everything that belongs to the tenant.
pub const MARK: &str = "victim";

/// Returns access control lists that allow the tenant everything and others nothing. `permissive` is off, so that a
/// user without a rule may do nothing.
fn lists() -> String {
    let may = |object: &str| json!([{"principals": {"values": ["ops"]}, object: {"type": "ANY"}}]);
    json!({
        "permissive": false,
        "register_agents": [{"principals": {"type": "ANY"}, "agents": {"type": "ANY"}}],
        "register_frameworks": may("roles"),
        "run_tasks": may("users"),
        "view_frameworks": may("users"),
        "view_tasks": may("users"),
        "view_executors": may("users"),
        "view_containers": may("users"),
        "view_roles": may("roles"),
    })
    .to_string()
}

/// A master and an agent, with the tenant's task.
pub struct Cluster {
    pub master: String,
    pub agent: String,
    pub framework: String,
    pub agent_id: String,
    /// Container id of the tenant's executor.
    pub container: String,
    /// Path of the executor's sandbox.
    pub sandbox: String,
    pub master_process: Daemon,
    execute: std::process::Child,
    _agent: Daemon,
    _directory: Directory,
}

impl Cluster {
    pub fn start(name: &str) -> Cluster {
        Cluster::start_with(name, &[])
    }

    /// Starts a cluster with these additional flags of the master.
    pub fn start_with(name: &str, more: &[&str]) -> Cluster {
        let directory = Directory::new(&format!("attack-{name}"));
        let known = r#"{"credentials": [{"principal": "ops", "secret": "x"}, {"principal": "dev", "secret": "x"}]}"#;
        let known = directory.write("known", known);
        let common = [format!("--acls={}", lists()), "--ip=127.0.0.1".into()];
        let realms = ["--authenticate_http_readonly".to_owned(), "--authenticate_http_readwrite".to_owned()];
        let own = [
            "master".to_owned(),
            format!("--port={}", free_port()),
            "--registry=in_memory".into(),
            format!("--work_dir={}", directory.join("m")),
            format!("--credentials={known}"),
            "--authenticate_http_frameworks".into(),
            "--http_framework_authenticators=basic".into(),
        ];
        let words: Vec<String> = own
            .into_iter()
            .chain(common.clone())
            .chain(realms.clone())
            .chain(more.iter().map(|flag| (*flag).to_owned()))
            .collect();
        let mut master_process = Daemon::start(&directory.path().join("m.log"), &words, &[]);
        let master = master_process.address().expect("the master runs");
        let own = [
            "agent".to_owned(),
            format!("--port={}", free_port()),
            format!("--master={master}"),
            "--launcher=posix".into(),
            "--resources=cpus:4;mem:1024;disk:1024".into(),
            format!("--work_dir={}", directory.join("a")),
            format!("--runtime_dir={}", directory.join("r")),
            format!("--http_credentials={known}"),
        ];
        let words: Vec<String> = own.into_iter().chain(common).chain(realms).collect();
        let mut agent_process = Daemon::start(&directory.path().join("a.log"), &words, &[]);
        let agent = agent_process.address().expect("the agent runs");
        let execute = std::process::Command::new(binary())
            .args(["execute", "--master", &master, "--principal=ops", "--secret=x"])
            .args(["--name=victim-task", "--command=exec sleep 1000"])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("the tenant's framework starts");
        let tasks = wait_for("the tenant's task runs", || {
            let (status, body) = User::Tenant.ask(&master, "GET", "/tasks", "");
            let told: Value = serde_json::from_str(&body).ok()?;
            (status == 200 && told["tasks"][0]["state"] == "TASK_RUNNING").then(|| told["tasks"][0].clone())
        });
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (_, body) = User::Tenant.ask(&agent, "GET", "/state", "");
        let state: Value = serde_json::from_str(&body).expect("a document");
        let sandbox = text(&state["frameworks"][0]["executors"][0]["directory"]);
        assert!(!sandbox.is_empty(), "{state}");
        let container = wait_for("its container is shown", || {
            let (_, body) = User::Tenant.call(&agent, "/api/v1", &json!({"type": "GET_CONTAINERS"}));
            let told: Value = serde_json::from_str(&body).ok()?;
            told["get_containers"]["containers"][0]["container_id"]["value"].as_str().map(str::to_owned)
        });
        Cluster {
            framework: text(&tasks["framework_id"]),
            agent_id: text(&tasks["slave_id"]),
            container,
            sandbox,
            master,
            agent,
            master_process,
            execute,
            _agent: agent_process,
            _directory: directory,
        }
    }

    /// Panics if the tenant's task has changed.
    pub fn is_untouched(&self) {
        let (_, body) = User::Tenant.ask(&self.master, "GET", "/tasks?limit=100000", "");
        let told: Value = serde_json::from_str(&body).expect("a document");
        let theirs = told["tasks"].as_array().into_iter().flatten().filter(|task| task["name"] == "victim-task");
        let states: Vec<&Value> = theirs.map(|task| &task["state"]).collect();
        assert_eq!(states, ["TASK_RUNNING"]);
    }

    /// Returns the memory of the master in bytes.
    pub fn master_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.master_process.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() << 10
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.execute.kill();
        let _ = self.execute.wait();
    }
}
