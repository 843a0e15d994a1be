//! Tests messages that name another process as their sender: they have no effect. They come from a process of the same
//! host, as a task is, over a connection of its own.

use std::io::{Read, Write};
use std::net::TcpStream;

use prost::{Message, Name};
use protos::mesos::internal::{
    RegisterSlaveMessage, RunTaskMessage, ShutdownFrameworkMessage, ShutdownMessage, StatusUpdate, StatusUpdateMessage,
    UnregisterSlaveMessage,
};
use protos::mesos::{self, TaskState};
use serde_json::{Value, json};

use crate::one_agent::OneAgent;
use crate::support::{call, until};

/// Sends a message as libprocess does and returns the status line of the answer.
fn send<M: Message + Name>(to: &str, process: &str, from: &str, message: &M) -> String {
    let body = message.encode_to_vec();
    let head = format!(
        "POST /{process}/{} HTTP/1.1\r\nUser-Agent: libprocess/{from}\r\nLibprocess-From: {from}\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n",
        M::full_name(),
        body.len()
    );
    let mut stream = TcpStream::connect(to).expect("a connection");
    stream.write_all(&[head.as_bytes(), &body].concat()).expect("the message is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer.lines().next().unwrap_or_default().to_owned()
}

/// Returns the agents that the master shows, by their ids.
fn agents(master: &str) -> Vec<String> {
    let told = call(master, "GET", "/slaves").unwrap_or_default();
    let rows = told["slaves"].as_array().cloned().unwrap_or_default();
    rows.iter().filter(|row| row["active"] == true).filter_map(|row| Some(row["id"].as_str()?.to_owned())).collect()
}

/// Returns the task's states, as its framework and the master's page see them.
fn states(cluster: &OneAgent, id: &str) -> Vec<Value> {
    let told = call(&cluster.address, "GET", "/tasks").unwrap_or_default();
    let rows = told["tasks"].as_array().cloned().unwrap_or_default();
    rows.iter().filter(|row| row["id"] == id).map(|row| row["state"].clone()).collect()
}

const REFUSED: &str = "HTTP/1.1 400 Bad Request";

struct Cluster {
    one: OneAgent,
    agent: String,
    framework: String,
}

impl Cluster {
    fn start(name: &str) -> (Cluster, crate::process::Process) {
        let one = OneAgent::start(name, &[]);
        let task = one.start_task("t", json!({"value": "echo up; exec sleep 1000"}), json!({"type": "MESOS"}));
        let agent = agents(&one.address).pop().expect("an agent");
        let tasks = call(&one.address, "GET", "/tasks").unwrap();
        let framework = tasks["tasks"][0]["framework_id"].as_str().expect("a framework").to_owned();
        (Cluster { one, agent, framework }, task)
    }

    fn update(&self) -> StatusUpdateMessage {
        let status = mesos::TaskStatus {
            task_id: mesos::TaskId { value: "t".into() },
            state: TaskState::TaskFailed as i32,
            ..Default::default()
        };
        let update = StatusUpdate {
            framework_id: mesos::FrameworkId { value: self.framework.as_str().into() },
            slave_id: Some(mesos::SlaveId { value: self.agent.as_str().into() }),
            uuid: Some(b"0123456789abcdef".to_vec()),
            status,
            ..Default::default()
        };
        StatusUpdateMessage { update, pid: Some(format!("slave(1)@{}", self.one.agent_address())) }
    }

    fn is_as_it_was(&self) {
        assert_eq!(states(&self.one, "t"), ["TASK_RUNNING"]);
        assert_eq!(agents(&self.one.address), std::slice::from_ref(&self.agent));
    }
}

#[test]
fn for_an_agent_to_its_master() {
    let (cluster, mut task) = Cluster::start("forged-agent");
    let (master, agent) = (&cluster.one.address, format!("slave(1)@{}", cluster.one.agent_address()));
    assert_eq!(send(master, "master", &agent, &cluster.update()), REFUSED);
    let id = mesos::SlaveId { value: cluster.agent.as_str().into() };
    assert_eq!(send(master, "master", &agent, &UnregisterSlaveMessage { slave_id: id }), REFUSED);
    let slave = mesos::SlaveInfo { hostname: "127.0.0.1".into(), ..Default::default() };
    let register = RegisterSlaveMessage { slave, version: Some("1.11.0".into()), ..Default::default() };
    assert_eq!(send(master, "master", &agent, &register), REFUSED);
    let metrics = call(master, "GET", "/metrics/snapshot").expect("metrics");
    assert_eq!(metrics["security/forged_messages"], json!(3.0));
    // Another process than the agent sends it under its own name: it is accepted, and has no effect.
    assert_eq!(send(master, "master", "x@127.0.0.1:9", &cluster.update()), "HTTP/1.1 202 Accepted");
    cluster.is_as_it_was();
    assert!(!task.has_ended(), "{}", task.told());
    task.kill();
}

#[test]
fn for_a_master_to_its_agent() {
    let (cluster, mut task) = Cluster::start("forged-master");
    let (agent, master) = (cluster.one.agent_address(), format!("master@{}", cluster.one.address));
    let framework_id = mesos::FrameworkId { value: cluster.framework.as_str().into() };
    let end = ShutdownFrameworkMessage { framework_id: framework_id.clone() };
    assert_eq!(send(&agent, "slave(1)", &master, &end), REFUSED);
    assert_eq!(send(&agent, "slave(1)", &master, &ShutdownMessage { message: Some("no".into()) }), REFUSED);
    let framework = mesos::FrameworkInfo { id: Some(framework_id), ..Default::default() };
    let run = RunTaskMessage {
        framework: framework.into(),
        task: mesos::TaskInfo {
            name: "forged".into(),
            task_id: mesos::TaskId { value: "forged".into() },
            slave_id: mesos::SlaveId { value: cluster.agent.as_str().into() },
            command: Some(mesos::CommandInfo { value: Some("true".into()), ..Default::default() }),
            ..Default::default()
        },
        ..Default::default()
    };
    assert_eq!(send(&agent, "slave(1)", &master, &run), REFUSED);
    // A v0 executor's report about a task of another executor.
    assert_eq!(send(&agent, "slave(1)", "executor(1)@127.0.0.1:9", &cluster.update()), "HTTP/1.1 202 Accepted");
    cluster.is_as_it_was();
    assert!(cluster.one.sandbox("forged").is_none());
    assert!(!task.has_ended(), "{}", task.told());
    task.kill();
}

#[test]
fn a_restarted_agent_takes_its_place_again() {
    let (mut cluster, mut task) = Cluster::start("forged-restart");
    let (master, agent) = (cluster.one.address.clone(), format!("slave(1)@{}", cluster.one.agent_address()));
    cluster.one.replace_agent(|| {
        // There is no agent now, and the address that the sender names is not its own either.
        assert_eq!(send(&master, "master", &agent, &Cluster::start_update(&agent)), REFUSED);
    });
    until("the agent is back", || agents(&master) == std::slice::from_ref(&cluster.agent));
    cluster.is_as_it_was();
    assert_eq!(send(&master, "master", &agent, &cluster.update()), REFUSED);
    cluster.is_as_it_was();
    assert!(!task.has_ended(), "{}", task.told());
    task.kill();
}

impl Cluster {
    /// Returns an update without a task, for cases in which only its sender matters.
    fn start_update(agent: &str) -> StatusUpdateMessage {
        StatusUpdateMessage { update: StatusUpdate::default(), pid: Some(agent.to_owned()) }
    }
}
