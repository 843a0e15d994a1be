//! A scheduler over HTTP: one stream of events, one connection on which its calls are pipelined.
//!
//! Calls are collected while events are queued, and written at once when none is, as Mesos's own library pipelines
//! them.

use std::fmt::Write as _;
use std::io::Write;
use std::net::{SocketAddrV4, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use prost::Message;
use protos::json::{Dialect, FromJson, ToJson};
use protos::mesos::v1::scheduler::{Call, Event, call};
use protos::mesos::v1::{self, TaskState, framework_info, offer, value};
use protos::recordio;

use super::http::{Connection, header};

/// Encoding of calls and events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// `application/json`.
    Json,
    /// `application/x-protobuf`.
    Protobuf,
}

impl Encoding {
    fn media_type(self) -> &'static str {
        match self {
            Encoding::Json => "application/json",
            Encoding::Protobuf => "application/x-protobuf",
        }
    }

    fn encode(self, call: &Call) -> Vec<u8> {
        match self {
            Encoding::Json => call.json(Dialect::V1),
            Encoding::Protobuf => call.encode_to_vec(),
        }
    }

    fn decode(self, bytes: &[u8]) -> Result<Event> {
        Ok(match self {
            Encoding::Json => Event::from_json(bytes, Dialect::V1)?,
            Encoding::Protobuf => Event::decode(bytes)?,
        })
    }
}

/// A subscribed scheduler.
pub struct Scheduler {
    encoding: Encoding,
    events: Connection,
    records: recordio::Decoder,
    chunk: Vec<u8>,
    calls: TcpStream,
    head: String,
    out: Vec<u8>,
    refused: Arc<OnceLock<String>>,
    /// Id of the framework.
    pub id: v1::FrameworkId,
}

/// Role with which a framework requests checkpoints.
pub const CHECKPOINTING: &str = "checkpointing";

impl Scheduler {
    /// Subscribes a framework of one role, and reads SUBSCRIBED.
    ///
    /// # Errors
    /// The master does not accept it.
    pub fn subscribe(master: SocketAddrV4, encoding: Encoding, role: &str) -> Result<Scheduler> {
        Scheduler::subscribe_as(master, encoding, framework(role))
    }

    /// Subscribes again, with its id, to a restarted master.
    ///
    /// # Errors
    /// The master does not accept it.
    pub fn subscribe_again(self, master: SocketAddrV4, role: &str) -> Result<Scheduler> {
        let framework = v1::FrameworkInfo { id: Some(self.id), ..framework(role) };
        Scheduler::subscribe_as(master, self.encoding, framework)
    }

    /// Subscribes a framework that has an id, in JSON.
    ///
    /// # Errors
    /// The master does not accept it.
    pub fn subscribe_as_known(master: SocketAddrV4, id: v1::FrameworkId, role: &str) -> Result<Scheduler> {
        let framework = v1::FrameworkInfo { id: Some(id), ..framework(role) };
        Scheduler::subscribe_as(master, Encoding::Json, framework)
    }

    fn subscribe_as(master: SocketAddrV4, encoding: Encoding, framework: v1::FrameworkInfo) -> Result<Scheduler> {
        let framework_id = framework.id.clone();
        let subscribe = call::Subscribe { framework_info: framework, ..Default::default() };
        let call = Call {
            framework_id,
            r#type: Some(call::Type::Subscribe as i32),
            subscribe: Some(Box::new(subscribe)),
            ..Default::default()
        };
        let body = encoding.encode(&call);
        let kind = encoding.media_type();
        let mut events = Connection::open(master)?;
        let head = format!(
            "POST /api/v1/scheduler HTTP/1.1\r\nHost: bench\r\nContent-Type: {kind}\r\nAccept: {kind}\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        events.socket()?.write_all(&[head.as_bytes(), &body].concat())?;
        let (status, head) = events.head()?;
        if status != 200 {
            bail!("SUBSCRIBE was answered {status}");
        }
        let stream = header(&head, "mesos-stream-id").context("no stream id")?;
        let head = format!(
            "POST /api/v1/scheduler HTTP/1.1\r\nHost: bench\r\nContent-Type: {kind}\r\n\
             Mesos-Stream-Id: {stream}\r\nContent-Length: "
        );
        let calls = TcpStream::connect(master)?;
        calls.set_nodelay(true)?;
        let refused = Arc::new(OnceLock::new());
        watch_answers(calls.try_clone()?, refused.clone())?;
        let mut scheduler = Scheduler {
            encoding,
            events,
            records: recordio::Decoder::new(1 << 28),
            chunk: Vec::new(),
            calls,
            head,
            out: Vec::new(),
            refused,
            id: v1::FrameworkId::default(),
        };
        let first = scheduler.event()?;
        scheduler.id = first.subscribed.context("the first event is not SUBSCRIBED")?.framework_id;
        Ok(scheduler)
    }

    /// Returns the next event. Pending calls are sent first.
    ///
    /// # Errors
    /// The stream ended or was silent for a minute, or a call was refused.
    pub fn event(&mut self) -> Result<Event> {
        loop {
            if let Some(record) = self.records.pull()? {
                return self.encoding.decode(&record);
            }
            if !self.events.has_chunk() {
                self.flush()?;
            }
            self.chunk.clear();
            if !self.events.chunk(&mut self.chunk)? {
                bail!("the stream of events ended");
            }
            self.records.push(&self.chunk);
        }
    }

    /// Adds a call to those that are collected.
    pub fn call(&mut self, kind: call::Type, fill: impl FnOnce(&mut Call)) {
        let mut call = Call { framework_id: Some(self.id.clone()), r#type: Some(kind as i32), ..Default::default() };
        fill(&mut call);
        let body = self.encoding.encode(&call);
        let mut length = String::new();
        // Writing to memory cannot fail.
        let _ = write!(length, "{}\r\n\r\n", body.len());
        for part in [self.head.as_bytes(), length.as_bytes(), &body] {
            self.out.extend_from_slice(part);
        }
    }

    /// Sends the collected calls.
    ///
    /// # Errors
    /// Those of the socket, or one was refused.
    pub fn flush(&mut self) -> Result<()> {
        if let Some(answer) = self.refused.get() {
            bail!("a call was answered {answer}");
        }
        if !self.out.is_empty() {
            self.calls.write_all(&self.out)?;
            self.out.clear();
        }
        Ok(())
    }

    /// Acknowledges an update that has a UUID.
    pub fn acknowledge(&mut self, status: &v1::TaskStatus) {
        let (Some(uuid), Some(agent_id)) = (&status.uuid, &status.agent_id) else { return };
        let acknowledge =
            call::Acknowledge { agent_id: agent_id.clone(), task_id: status.task_id.clone(), uuid: uuid.clone() };
        self.call(call::Type::Acknowledge, |call| call.acknowledge = Some(acknowledge));
    }

    /// Declines offers.
    pub fn decline(&mut self, offer_ids: Vec<v1::OfferId>, refuse: Option<Duration>) {
        let filters = refuse.map(|time| v1::Filters { refuse_seconds: Some(time.as_secs_f64()) });
        let decline = call::Decline { offer_ids, filters };
        self.call(call::Type::Decline, |call| call.decline = Some(decline));
    }

    /// Launches tasks on an offer.
    pub fn launch(&mut self, offer: &v1::Offer, tasks: Vec<v1::TaskInfo>) {
        let operation = offer::Operation {
            r#type: Some(offer::operation::Type::Launch as i32),
            launch: Some(offer::operation::Launch { task_infos: tasks }),
            ..Default::default()
        };
        let filters = Some(v1::Filters { refuse_seconds: Some(0.0) });
        let accept = call::Accept { offer_ids: vec![offer.id.clone()], operations: vec![operation], filters };
        self.call(call::Type::Accept, |call| call.accept = Some(accept));
    }

    /// Launches this many tasks that keep running, on this many agents, and acknowledges that they run. Further offers
    /// are declined for good.
    ///
    /// # Errors
    /// The stream ended, or an error event arrived.
    pub fn fill(&mut self, agents: usize, tasks: usize) -> Result<()> {
        let share = tasks.div_ceil(agents);
        let (mut launched, mut running) = (0, 0);
        while running < tasks {
            let event = self.event()?;
            for offer in event.offers.into_iter().flat_map(|o| o.offers) {
                let batch = share.min(tasks - launched);
                if batch == 0 {
                    self.decline(vec![offer.id], Some(Duration::from_secs(1_000_000)));
                    continue;
                }
                let needs = [("cpus", 1.0), ("mem", 32.0)];
                let make = |n: usize| task(format!("t{n}"), &offer, "bench", "sleep 1000", &needs);
                self.launch(&offer, (launched..launched + batch).map(make).collect());
                launched += batch;
            }
            if let Some(update) = event.update {
                self.acknowledge(&update.status);
                running += 1;
            }
            if let Some(error) = event.error {
                bail!("ERROR: {}", error.message);
            }
        }
        self.flush()
    }

    /// Runs this many tasks of a command, as many at once as the offers allow. Returns the total time, and the time of
    /// each task from its launch to its end.
    ///
    /// # Errors
    /// A task did not finish, the stream ended, or an error event arrived.
    pub fn run_all(&mut self, tasks: usize, command: &str) -> Result<(Duration, Vec<Duration>)> {
        let mut launched = Vec::with_capacity(tasks);
        let mut lives = Vec::with_capacity(tasks);
        let mut start = None;
        while lives.len() < tasks {
            let event = self.event()?;
            for offer in event.offers.into_iter().flat_map(|o| o.offers) {
                let start = *start.get_or_insert_with(Instant::now);
                let room = amount(&offer, "cpus") as usize;
                let batch = room.min(tasks - launched.len());
                let first = launched.len();
                let needs = [("cpus", 1.0), ("mem", 32.0)];
                let role = offer.allocation_info.as_ref().and_then(|info| info.role.clone()).unwrap_or_default();
                let make = |n: usize| task(format!("t{n}"), &offer, &role, command, &needs);
                let infos = (first..first + batch).map(make).collect();
                launched.resize(first + batch, start.elapsed());
                self.launch(&offer, infos);
            }
            if let Some(update) = event.update {
                let state = update.status.state;
                self.acknowledge(&update.status);
                if state == TaskState::TaskFinished as i32 {
                    let id = &update.status.task_id.value;
                    let number: usize = id.trim_start_matches('t').parse()?;
                    lives.push(start.context("no start")?.elapsed() - launched[number]);
                } else if state != TaskState::TaskRunning as i32 && state != TaskState::TaskStarting as i32 {
                    bail!("a task did not finish: {:?}", update.status);
                }
            }
            if let Some(error) = event.error {
                bail!("ERROR: {}", error.message);
            }
        }
        self.flush()?;
        Ok((start.context("no start")?.elapsed(), lives))
    }

    /// Continues to read in a thread of its own until the stream ends, and counts offers; answers nothing.
    ///
    /// # Errors
    /// A call was refused.
    pub fn watch(mut self) -> Result<Arc<AtomicUsize>> {
        self.flush()?;
        let offers = Arc::new(AtomicUsize::new(0));
        let counted = offers.clone();
        std::thread::spawn(move || {
            while let Ok(event) = self.event() {
                counted.fetch_add(event.offers.map_or(0, |o| o.offers.len()), Ordering::Relaxed);
            }
        });
        Ok(offers)
    }

    /// Tears the framework down.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn teardown(mut self) -> Result<()> {
        self.call(call::Type::Teardown, |_| {});
        self.flush()?;
        while self.event().is_ok() {}
        Ok(())
    }
}

/// Reads the responses to the calls, and keeps the first that is not a success.
fn watch_answers(stream: TcpStream, refused: Arc<OnceLock<String>>) -> Result<()> {
    let mut connection = Connection::over(stream)?;
    std::thread::spawn(move || {
        loop {
            match connection.answer() {
                Ok(answer) if answer.status < 300 => {}
                Ok(answer) => {
                    let text = format!("{} {}", answer.status, String::from_utf8_lossy(&answer.body));
                    let _ = refused.set(text);
                }
                Err(why) if why.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    });
    Ok(())
}

fn framework(role: &str) -> v1::FrameworkInfo {
    use framework_info::capability::Type;
    let kinds = [Type::MultiRole, Type::ReservationRefinement];
    v1::FrameworkInfo {
        user: nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten().map_or("root".to_owned(), |u| u.name),
        name: "bench".to_owned(),
        roles: vec![role.to_owned()],
        checkpoint: Some(role == CHECKPOINTING),
        capabilities: kinds.map(|kind| framework_info::Capability { r#type: Some(kind as i32) }).to_vec(),
        ..Default::default()
    }
}

/// Returns a task with a shell command and these scalar resources, on an offer's agent.
pub fn task(id: String, offer: &v1::Offer, role: &str, command: &str, resources: &[(&str, f64)]) -> v1::TaskInfo {
    let resource = |(name, amount): &(&str, f64)| v1::Resource {
        name: (*name).into(),
        r#type: value::Type::Scalar as i32,
        scalar: Some(value::Scalar { value: *amount }),
        allocation_info: Some(v1::resource::AllocationInfo { role: Some(role.into()) }),
        ..Default::default()
    };
    v1::TaskInfo {
        name: "bench".to_owned(),
        task_id: v1::TaskId { value: id.into() },
        agent_id: offer.agent_id.clone(),
        resources: resources.iter().map(resource).collect(),
        command: Some(v1::CommandInfo { value: Some(command.to_owned()), ..Default::default() }),
        ..Default::default()
    }
}

/// Returns the amount of a scalar resource in an offer.
pub fn amount(offer: &v1::Offer, name: &str) -> f64 {
    let of_name = offer.resources.iter().filter(|r| r.name == name);
    of_name.filter_map(|r| r.scalar.as_ref()).map(|s| s.value).sum()
}
