//! Tests an agent that finds the leading master through ZooKeeper, over the death of a leader and of ZooKeeper.

use std::path::Path;

use tokio::runtime::Runtime;

use crate::process::{Process, Stream};
use crate::support::{Daemon, Directory, call, free_port, get, request, tepui, until, wait_for};
use crate::zookeeper::ZooKeeper;

fn master(directory: &Directory, name: &str) -> (Daemon, String) {
    let words = ["master", "--ip=127.0.0.1", "--registry=in_memory", "--allocation_interval=50ms"].map(str::to_owned);
    let own = [format!("--port={}", free_port()), format!("--work_dir={}", directory.join(name))];
    let words: Vec<String> = words.into_iter().chain(own).collect();
    let mut master = Daemon::start(&directory.path().join(format!("{name}.log")), &words, &[]);
    let address = master.address().expect("the master runs");
    (master, address)
}

fn agent(directory: &Directory, log: &Path, url: &str) -> (Daemon, String) {
    let words = ["agent", "--ip=127.0.0.1", "--launcher=posix", "--resources=cpus:1;mem:64;disk:64"].map(str::to_owned);
    let own = [
        format!("--port={}", free_port()),
        format!("--master={url}"),
        "--zk_session_timeout=2secs".to_owned(),
        format!("--work_dir={}", directory.join("w")),
        format!("--runtime_dir={}", directory.join("r")),
        "--registration_backoff_factor=10ms".to_owned(),
    ];
    let words: Vec<String> = words.into_iter().chain(own).collect();
    let mut agent = Daemon::start(log, &words, &[]);
    let address = agent.address().expect("the agent runs");
    (agent, address)
}

/// Returns the ids of a master's active agents.
fn agents(master: &str) -> Vec<String> {
    let told = call(master, "GET", "/slaves").unwrap_or_default();
    let all = told["slaves"].as_array().cloned().unwrap_or_default();
    let active = all.iter().filter(|agent| agent["active"] == true);
    active.filter_map(|agent| Some(agent["id"].as_str()?.to_owned())).collect()
}

fn is_registered(agent: &str) -> bool {
    call(agent, "GET", "/metrics/snapshot").is_some_and(|told| told["slave/registered"] == 1.0)
}

fn knows_a_master(agent: &str) -> bool {
    let state = wait_for("the agent tells its state", || call(agent, "GET", "/state"));
    state["master_hostname"].is_string()
}

#[test]
fn an_agent_and_its_task_outlive_the_leader_and_zookeeper() {
    let directory = Directory::new("detection");
    let runtime = Runtime::new().unwrap();
    let mut zookeeper = runtime.block_on(ZooKeeper::start(free_port()));
    let ((first, first_at), (_second, second_at)) = (master(&directory, "m1"), master(&directory, "m2"));
    let log = directory.path().join("a.log");
    let (_agent, agent_at) = agent(&directory, &log, &zookeeper.url().replace("zk://", "zk://user:s3cret@"));
    assert!(!is_registered(&agent_at) && !knows_a_master(&agent_at), "no master leads yet");

    zookeeper.enter("json.info_0000000004", &first_at);
    zookeeper.enter("json.info_0000000005", &second_at);
    let id = wait_for("the agent registers with the leader", || agents(&first_at).pop());
    assert!(is_registered(&agent_at) && knows_a_master(&agent_at));
    assert!(agents(&second_at).is_empty());

    let done = directory.path().join("done");
    let command = format!("while [ ! -e {} ]; do sleep 0.1; done", done.display());
    let mut execute = tepui();
    execute.args(["execute", "--resources=cpus:1;mem:32", "--master", &zookeeper.url()]);
    let mut execute = Process::start(execute.arg(format!("--command={command}")));
    execute.line(Stream::Stdout, &["TASK_RUNNING"]);

    // The leader dies, and then its node is removed.
    drop(first);
    zookeeper.leave("json.info_0000000004");
    execute.until("the agent registers with the next leader", || agents(&second_at) == [id.clone()]);
    execute.until("the next leader knows the task", || {
        let told = call(&second_at, "GET", "/tasks").unwrap_or_default();
        told["tasks"][0]["state"] == "TASK_RUNNING" && told["tasks"][0]["slave_id"] == *id
    });
    until("the agent is registered", || is_registered(&agent_at));

    // Without ZooKeeper the leader is unknown; status updates are kept.
    runtime.block_on(zookeeper.stop());
    until("the session is over", || !is_registered(&agent_at));
    assert!(!knows_a_master(&agent_at));
    std::fs::write(&done, "").unwrap();
    until("the task has ended", || {
        let state = call(&agent_at, "GET", "/state").unwrap_or_default();
        state.to_string().contains("TASK_FINISHED")
    });
    assert!(!execute.has_ended(), "the agent tells a leader that it does not know");
    zookeeper.forget_sessions();
    runtime.block_on(zookeeper.resume());
    execute.line(Stream::Stdout, &["TASK_FINISHED"]);
    assert!(execute.end().success());
    until("the agent is registered again", || is_registered(&agent_at));
    assert_eq!(agents(&second_at), [id]);

    // The password was sent to ZooKeeper, and appears nowhere else.
    assert!(zookeeper.was_asked_as("user:s3cret"));
    let told = call(&agent_at, "GET", "/flags").expect("the agent's flags");
    assert_eq!(told["flags"]["master"], zookeeper.url());
    let told = request(&agent_at, "POST", "/api/v1", r#"{"type": "GET_FLAGS"}"#).expect("the agent's flags");
    assert!(told.contains(&zookeeper.url()) && !told.contains("s3cret"), "{told}");
    assert!(!get(&agent_at, "/state").expect("the agent's state").contains("s3cret"));
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.contains(&format!("the leading master is master@{second_at}")) && !log.contains("s3cret"), "{log}");
}
