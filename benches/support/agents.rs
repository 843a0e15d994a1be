//! Fake agents: any number of libprocess processes `slave(n)` in this process, at one address or at several.
//!
//! They register, answer pings, and report each of their tasks as running, and after the acknowledgement as finished,
//! with minimal updates; the update's uuid states what an acknowledgement is for. Tasks that keep running are
//! remembered, so that the agents can reregister with them. One connection has all messages to the master, and one for
//! each address those from it. `--addresses=N` spreads the agents over N addresses of 127.0.0.0/8; each costs this
//! process a thread.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::{Result, bail};
use prost::Message;
use protos::mesos::internal::{
    RegisterSlaveMessage, ReregisterSlaveMessage, RunTaskMessage, SlaveRegisteredMessage, SlaveReregisteredMessage,
    StatusUpdate, StatusUpdateAcknowledgementMessage, StatusUpdateMessage, UpdateSlaveMessage, update_slave_message,
};
use protos::mesos::{
    self, FrameworkInfo, Resource, SlaveId, SlaveInfo, Task, TaskState, slave_info, task_status, value,
};

use super::http::Connection;
use super::{message, number, wait_for};

/// The fake agents of one master.
pub struct Fleet {
    shared: Arc<Shared>,
    count: usize,
}

struct Shared {
    port: u16,
    addresses: usize,
    /// Connection to the master; each write is one or more whole messages.
    out: Mutex<TcpStream>,
    registered: AtomicUsize,
    updates: AtomicUsize,
    /// Whether a task finishes once its TASK_RUNNING is acknowledged.
    finish: AtomicBool,
    /// State of the agents by name, which they report when they reregister.
    hosts: Mutex<BTreeMap<String, Host>>,
    resources: Vec<Resource>,
}

/// State of an agent.
#[derive(Default)]
struct Host {
    id: SlaveId,
    frameworks: Vec<FrameworkInfo>,
    tasks: Vec<Task>,
}

impl Fleet {
    /// Registers `count` agents with these scalar resources, all at once.
    ///
    /// # Errors
    /// No socket, or the master does not accept the messages.
    pub fn start(master: SocketAddrV4, count: usize, resources: &[(&str, f64)], finish: bool) -> Result<Fleet> {
        Fleet::start_behind(master, count, resources, finish, Ok)
    }

    /// Registers agents like [`Fleet::start`]; `port` returns the port at which the master reaches a port of this
    /// process.
    ///
    /// # Errors
    /// No socket, or the master does not accept the messages.
    pub fn start_behind(
        master: SocketAddrV4,
        count: usize,
        resources: &[(&str, f64)],
        finish: bool,
        port: impl FnOnce(u16) -> Result<u16>,
    ) -> Result<Fleet> {
        let addresses = number("addresses", 1);
        let listener =
            TcpListener::bind((if addresses == 1 { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED }, 0))?;
        let port = port(listener.local_addr()?.port())?;
        let shared = Arc::new(Shared {
            port,
            addresses,
            out: Mutex::new(connect(master)?),
            registered: AtomicUsize::new(0),
            updates: AtomicUsize::new(0),
            finish: AtomicBool::new(finish),
            hosts: Mutex::default(),
            resources: resources.iter().map(resource).collect(),
        });
        let accepting = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = accepting.clone();
                std::thread::spawn(move || shared.serve(stream));
            }
        });
        let mut bytes = Vec::new();
        for n in 0..count {
            message::push(
                &mut bytes,
                &shared.pid(&format!("slave({n})")),
                "master",
                "mesos.internal.RegisterSlaveMessage",
                &shared.registration(n),
            );
        }
        shared.send(&bytes);
        Ok(Fleet { shared, count })
    }

    /// Lets the tasks that start from now on finish, each once its TASK_RUNNING is acknowledged.
    pub fn finish_new_tasks(&self) {
        self.shared.finish.store(true, Ordering::Relaxed);
    }

    /// Reregisters all agents with a restarted master, all at once, with their tasks.
    ///
    /// # Errors
    /// The master does not accept the messages.
    pub fn register_again(&self, master: SocketAddrV4) -> Result<()> {
        *lock(&self.shared.out) = connect(master)?;
        self.shared.registered.store(0, Ordering::Relaxed);
        let mut bytes = Vec::new();
        for n in 0..self.count {
            let agent = format!("slave({n})");
            let Some(again) = self.shared.registration_again(n, &agent) else { bail!("{agent} was never registered") };
            message::push(
                &mut bytes,
                &self.shared.pid(&agent),
                "master",
                "mesos.internal.ReregisterSlaveMessage",
                &again,
            );
        }
        self.shared.send(&bytes);
        Ok(())
    }

    /// Waits until the master has sent every agent its id, and returns the time that it took.
    ///
    /// # Errors
    /// This did not happen within a minute.
    pub fn wait_registered(&self) -> Result<Duration> {
        wait_for("all agents registered", || self.shared.registered.load(Ordering::Relaxed) >= self.count)
    }

    /// Returns the number of status updates that the agents have sent.
    pub fn updates(&self) -> usize {
        self.shared.updates.load(Ordering::Relaxed)
    }

    /// Returns the number of agents.
    pub fn len(&self) -> usize {
        self.count
    }
}

impl Shared {
    /// Returns the PID of `slave(n)`: its number determines its address.
    fn pid(&self, agent: &str) -> String {
        let number = agent.trim_start_matches("slave(").trim_end_matches(')').parse().unwrap_or(0);
        let first = Ipv4Addr::LOCALHOST.to_bits() as usize;
        let ip = Ipv4Addr::from_bits((first + number % self.addresses) as u32);
        format!("{agent}@{ip}:{}", self.port)
    }

    fn send(&self, bytes: &[u8]) {
        let mut out = lock(&self.out);
        // The caller detects a master that has ended when it waits for its answer.
        let _ = out.write_all(bytes);
    }

    /// Answers the master's messages on one connection, until it closes.
    fn serve(&self, stream: TcpStream) {
        let Ok(mut connection) = Connection::over(stream) else { return };
        let mut out = Vec::new();
        loop {
            let mut taken = 0;
            while let Some(received) = message::next(&connection.waiting()[taken..]) {
                taken += received.length;
                self.react(&received, &mut out);
            }
            connection.take(taken);
            if !out.is_empty() {
                self.send(&out);
                out.clear();
            }
            match connection.read_more() {
                Err(why) if why.kind() != std::io::ErrorKind::WouldBlock => return,
                _ => {}
            }
        }
    }

    fn react(&self, received: &message::Received<'_>, out: &mut Vec<u8>) {
        let agent = received.to;
        match received.name {
            "mesos.internal.RunTaskMessage" => {
                let Ok(run) = RunTaskMessage::decode(received.body) else { return };
                let Some(framework) = run.framework.id.clone() else { return };
                if !self.finish.load(Ordering::Relaxed) {
                    self.remember(agent, &run);
                }
                self.update(agent, framework, run.task.slave_id, run.task.task_id, TaskState::TaskRunning, out);
            }
            "mesos.internal.StatusUpdateAcknowledgementMessage" => {
                let Ok(ack) = StatusUpdateAcknowledgementMessage::decode(received.body) else { return };
                let running = ack.uuid.first() == Some(&(TaskState::TaskRunning as u8));
                if running && self.finish.load(Ordering::Relaxed) {
                    self.update(agent, ack.framework_id, ack.slave_id, ack.task_id, TaskState::TaskFinished, out);
                }
            }
            "mesos.internal.SlaveRegisteredMessage" => {
                let Ok(registered) = SlaveRegisteredMessage::decode(received.body) else { return };
                lock(&self.hosts).entry(agent.to_owned()).or_default().id = registered.slave_id.clone();
                self.registered(agent, registered.slave_id, out);
            }
            "mesos.internal.SlaveReregisteredMessage" => {
                let Ok(registered) = SlaveReregisteredMessage::decode(received.body) else { return };
                self.registered(agent, registered.slave_id, out);
            }
            "mesos.internal.PingSlaveMessage" => {
                let from = self.pid(agent);
                message::push(out, &from, received.from, "mesos.internal.PongSlaveMessage", &());
            }
            _ => {}
        }
    }

    /// Reports, as agents do once they are registered, that no resources are oversubscribed.
    fn registered(&self, agent: &str, slave_id: SlaveId, out: &mut Vec<u8>) {
        let update = UpdateSlaveMessage {
            slave_id,
            update_oversubscribed_resources: Some(false),
            operations: Some(update_slave_message::Operations::default()),
            resource_version_uuid: Some(mesos::Uuid { value: base::uuid_from([7; 16]).to_vec() }),
            resource_providers: Some(update_slave_message::ResourceProviders::default()),
            ..Default::default()
        };
        message::push(out, &self.pid(agent), "master", "mesos.internal.UpdateSlaveMessage", &update);
        self.registered.fetch_add(1, Ordering::Relaxed);
    }

    /// Remembers a task that keeps running, as running and acknowledged.
    fn remember(&self, agent: &str, run: &RunTaskMessage) {
        let framework_id = run.framework.id.clone().unwrap_or_default();
        let status = mesos::TaskStatus {
            task_id: run.task.task_id.clone(),
            state: TaskState::TaskRunning as i32,
            source: Some(task_status::Source::Executor as i32),
            slave_id: Some(run.task.slave_id.clone()),
            timestamp: Some(SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64()),
            ..Default::default()
        };
        let task = Task {
            name: run.task.name.clone(),
            task_id: run.task.task_id.clone(),
            framework_id: framework_id.clone(),
            slave_id: run.task.slave_id.clone(),
            state: TaskState::TaskRunning as i32,
            resources: run.task.resources.clone(),
            statuses: vec![status],
            status_update_state: Some(TaskState::TaskRunning as i32),
            ..Default::default()
        };
        let mut hosts = lock(&self.hosts);
        let host = hosts.entry(agent.to_owned()).or_default();
        if host.frameworks.iter().all(|f| f.id.as_ref() != Some(&framework_id)) {
            host.frameworks.push(run.framework.clone().into_inner());
        }
        host.tasks.push(task);
    }

    fn info(&self, n: usize) -> SlaveInfo {
        SlaveInfo {
            hostname: format!("agent-{n}"),
            port: Some(i32::from(self.port)),
            resources: self.resources.clone(),
            checkpoint: Some(true),
            ..Default::default()
        }
    }

    fn registration(&self, n: usize) -> RegisterSlaveMessage {
        RegisterSlaveMessage {
            slave: self.info(n),
            version: Some("1.11.0".to_owned()),
            agent_capabilities: capabilities(),
            resource_version_uuid: Some(mesos::Uuid { value: base::uuid_from([7; 16]).to_vec() }),
            ..Default::default()
        }
    }

    fn registration_again(&self, n: usize, agent: &str) -> Option<ReregisterSlaveMessage> {
        let hosts = lock(&self.hosts);
        let host = hosts.get(agent)?;
        Some(ReregisterSlaveMessage {
            slave: SlaveInfo { id: Some(host.id.clone()), ..self.info(n) },
            tasks: host.tasks.clone(),
            frameworks: host.frameworks.clone(),
            version: Some("1.11.0".to_owned()),
            agent_capabilities: capabilities(),
            resource_version_uuid: Some(mesos::Uuid { value: base::uuid_from([7; 16]).to_vec() }),
            ..Default::default()
        })
    }

    fn update(
        &self,
        agent: &str,
        framework_id: mesos::FrameworkId,
        slave_id: mesos::SlaveId,
        task_id: mesos::TaskId,
        state: TaskState,
        out: &mut Vec<u8>,
    ) {
        let sent = self.updates.fetch_add(1, Ordering::Relaxed);
        let mut uuid = [state as u8; 16];
        uuid[8..].copy_from_slice(&(sent as u64).to_be_bytes());
        let uuid = base::uuid_from(uuid).to_vec();
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64();
        let status = mesos::TaskStatus {
            task_id,
            state: state as i32,
            source: Some(task_status::Source::Executor as i32),
            slave_id: Some(slave_id.clone()),
            timestamp: Some(now),
            uuid: Some(uuid.clone()),
            ..Default::default()
        };
        let update = StatusUpdate {
            framework_id,
            executor_id: None,
            slave_id: Some(slave_id),
            status,
            timestamp: now,
            uuid: Some(uuid),
            latest_state: Some(state as i32),
        };
        let pid = self.pid(agent);
        let update = StatusUpdateMessage { update, pid: Some(pid.clone()) };
        message::push(out, &pid, "master", "mesos.internal.StatusUpdateMessage", &update);
    }
}

fn capabilities() -> Vec<slave_info::Capability> {
    (1..=8).map(|kind| slave_info::Capability { r#type: Some(kind) }).collect()
}

fn resource((name, amount): &(&str, f64)) -> Resource {
    Resource {
        name: (*name).into(),
        r#type: value::Type::Scalar as i32,
        scalar: Some(value::Scalar { value: *amount }),
        role: Some("*".into()),
        ..Default::default()
    }
}

/// Opens a connection to the master that is not read.
fn connect(master: SocketAddrV4) -> Result<TcpStream> {
    let out = TcpStream::connect(master)?;
    out.set_nodelay(true)?;
    drain(out.try_clone()?);
    Ok(out)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads a connection and discards the data, until it closes.
pub fn drain(mut stream: TcpStream) {
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while stream.read(&mut buffer).is_ok_and(|read| read > 0) {}
    });
}
