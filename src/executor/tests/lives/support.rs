//! A fake agent with the v1 executor API, and the executor's process that is connected to it.
//!
//! The agent does nothing by itself: a test receives the executor's requests in order, and answers them.
#![allow(clippy::disallowed_methods)] // limits of real waiting need the real clock

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use prost::Message;
use protos::mesos::v1;
use protos::mesos::v1::executor::{Call, Event, call, event};

/// Time limit of events that must occur, also on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(180);

/// A connection of any kind.
trait Stream: Read + Write + Send {
    fn copy(&self) -> Box<dyn Stream>;
    fn shut(&self);
}

impl Stream for TcpStream {
    fn copy(&self) -> Box<dyn Stream> {
        Box::new(self.try_clone().unwrap())
    }
    fn shut(&self) {
        let _ = self.shutdown(std::net::Shutdown::Both);
    }
}

impl Stream for UnixStream {
    fn copy(&self) -> Box<dyn Stream> {
        Box::new(self.try_clone().unwrap())
    }
    fn shut(&self) {
        let _ = self.shutdown(std::net::Shutdown::Both);
    }
}

/// A request, and the connection for its response.
pub struct Request {
    pub head: String,
    body: Vec<u8>,
    stream: Box<dyn Stream>,
}

impl Request {
    pub fn executor_call(&self) -> Call {
        assert!(self.head.starts_with("POST /slave(1)/api/v1/executor HTTP/1.1\r\n"), "{}", self.head);
        protos::decode(&self.body).unwrap()
    }

    pub fn agent_call(&self) -> v1::agent::Call {
        assert!(self.head.starts_with("POST /slave(1)/api/v1 HTTP/1.1\r\n"), "{}", self.head);
        protos::decode(&self.body).unwrap()
    }

    pub fn answer(mut self, status: &str, body: &[u8]) {
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
        // The executor may be gone, which the test detects in another way.
        let _ = self.stream.write_all(&[head.as_bytes(), body].concat());
    }
}

/// The event stream of one subscription.
pub struct Subscription(Box<dyn Stream>);

impl Subscription {
    pub fn send(&mut self, event: &Event) {
        let record = event.encode_to_vec();
        let framed = [format!("{}\n", record.len()).as_bytes(), &record].concat();
        let _ = self.0.write_all(&[format!("{:x}\r\n", framed.len()).as_bytes(), &framed, b"\r\n"].concat());
    }

    fn of(&mut self, r#type: event::Type, complete: impl FnOnce(&mut Event)) {
        let mut event = Event { r#type: Some(r#type as i32), ..Default::default() };
        complete(&mut event);
        self.send(&event);
    }

    pub fn launch(&mut self, task: v1::TaskInfo) {
        self.of(event::Type::Launch, |e| e.launch = Some(event::Launch { task }));
    }

    pub fn launch_group(&mut self, tasks: Vec<v1::TaskInfo>) {
        let task_group = v1::TaskGroupInfo { tasks };
        self.of(event::Type::LaunchGroup, |e| e.launch_group = Some(event::LaunchGroup { task_group }));
    }

    pub fn kill(&mut self, task: &str, grace: Option<Duration>) {
        let kill_policy = grace.map(kill_policy);
        self.of(event::Type::Kill, |e| e.kill = Some(event::Kill { task_id: task_id(task), kill_policy }));
    }

    pub fn shutdown(&mut self) {
        self.of(event::Type::Shutdown, |_| {});
    }

    pub fn acknowledge(&mut self, status: &v1::TaskStatus) {
        let (task_id, uuid) = (status.task_id.clone(), status.uuid.clone().unwrap());
        self.of(event::Type::Acknowledged, |e| e.acknowledged = Some(event::Acknowledged { task_id, uuid }));
    }
}

/// Returns a framework with the capability TASK_KILLING_STATE.
pub fn killing() -> v1::FrameworkInfo {
    let r#type = Some(v1::framework_info::capability::Type::TaskKillingState as i32);
    v1::FrameworkInfo { capabilities: vec![v1::framework_info::Capability { r#type }], ..Default::default() }
}

pub fn task_id(value: &str) -> v1::TaskId {
    v1::TaskId { value: value.into() }
}

pub fn kill_policy(grace: Duration) -> v1::KillPolicy {
    v1::KillPolicy { grace_period: Some(duration(grace)) }
}

pub fn duration(time: Duration) -> v1::DurationInfo {
    v1::DurationInfo { nanoseconds: i64::try_from(time.as_nanos()).unwrap() }
}

/// Returns a task that runs a shell command.
pub fn shell(id: &str, script: &str) -> v1::TaskInfo {
    let allocation_info = Some(v1::resource::AllocationInfo { role: Some("dev".into()) });
    v1::TaskInfo {
        name: id.to_owned(),
        task_id: task_id(id),
        agent_id: v1::AgentId { value: "agent".into() },
        command: Some(v1::CommandInfo { value: Some(script.to_owned()), ..Default::default() }),
        resources: vec![v1::Resource { name: "cpus".into(), allocation_info, ..Default::default() }],
        ..Default::default()
    }
}

pub struct FakeAgent {
    pub address: String,
    requests: Receiver<Request>,
    agent_requests: Receiver<Request>,
    connections: Receiver<Box<dyn Stream>>,
}

impl FakeAgent {
    pub fn new() -> FakeAgent {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        FakeAgent::serve(address, move || Box::new(listener.accept().unwrap().0))
    }

    pub fn on_unix_socket(path: &Path) -> FakeAgent {
        let listener = UnixListener::bind(path).unwrap();
        FakeAgent::serve(path.to_str().unwrap().to_owned(), move || Box::new(listener.accept().unwrap().0))
    }

    fn serve(address: String, accept: impl Fn() -> Box<dyn Stream> + Send + 'static) -> FakeAgent {
        let (sender, requests) = channel();
        let (agent_sender, agent_requests) = channel();
        let (opened, connections) = channel();
        std::thread::spawn(move || {
            loop {
                let stream = accept();
                let requests = [sender.clone(), agent_sender.clone()];
                if opened.send(stream.copy()).is_err() {
                    return;
                }
                std::thread::spawn(move || read_requests(stream, &requests));
            }
        });
        FakeAgent { address, requests, agent_requests, connections }
    }

    /// Returns the next request to the executor API.
    pub fn request(&self) -> Request {
        self.requests.recv_timeout(LIMIT).expect("a request from the executor")
    }

    /// Returns the next request to the agent API. Requests to the two APIs are in no order: they arrive over different
    /// connections.
    pub fn agent_request(&self) -> Request {
        self.agent_requests.recv_timeout(LIMIT).expect("a request to the agent API")
    }

    /// Receives SUBSCRIBE and answers it with the stream's first event.
    pub fn subscribed(&self, framework: v1::FrameworkInfo) -> (call::Subscribe, Subscription) {
        let mut request = self.request();
        let call = request.executor_call();
        assert_eq!(call.r#type(), call::Type::Subscribe);
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: application/x-protobuf\r\n\r\n";
        request.stream.write_all(head.as_bytes()).unwrap();
        let mut subscription = Subscription(request.stream);
        let subscribed = event::Subscribed {
            framework_info: framework,
            container_id: Some(v1::ContainerId { value: "own".into(), parent: None }),
            ..Default::default()
        };
        subscription.of(event::Type::Subscribed, |e| e.subscribed = Some(subscribed));
        (call.subscribe.unwrap(), subscription)
    }

    /// Receives UPDATE and accepts it, without acknowledging the update.
    pub fn update(&self) -> v1::TaskStatus {
        let request = self.request();
        let call = request.executor_call();
        assert_eq!(call.r#type(), call::Type::Update);
        request.answer("202 Accepted", b"");
        let status = call.update.unwrap().status;
        assert_eq!(status.source(), v1::task_status::Source::Executor);
        assert_eq!(status.uuid.as_ref().map(Vec::len), Some(16));
        assert_eq!(status.executor_id.as_ref().unwrap().value, call.executor_id.value);
        assert!(status.timestamp.unwrap() > 1e9);
        status
    }

    /// Receives UPDATEs in this order, acknowledges each, and returns the last one.
    pub fn updates(&self, stream: &mut Subscription, states: &[v1::TaskState]) -> v1::TaskStatus {
        let mut last = None;
        for state in states {
            let status = self.update();
            assert_eq!(status.state(), *state, "{status:?}");
            stream.acknowledge(&status);
            last = Some(status);
        }
        last.unwrap()
    }

    /// Closes all connections, as an agent that crashes.
    pub fn drop_connections(&self) {
        while let Ok(stream) = self.connections.try_recv() {
            stream.shut();
        }
    }
}

/// Passes the executor API's requests of one connection to the first receiver, those to the agent API to the second.
fn read_requests(mut stream: Box<dyn Stream>, receivers: &[Sender<Request>; 2]) {
    let mut pending = Vec::new();
    let mut buffer = [0; 65536];
    loop {
        while let Some((head, body, used)) = request_in(&pending) {
            pending.drain(..used);
            let receiver = &receivers[usize::from(!head.contains("/executor "))];
            if receiver.send(Request { head, body, stream: stream.copy() }).is_err() {
                return;
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(length) => pending.extend_from_slice(&buffer[..length]),
        }
    }
}

fn request_in(bytes: &[u8]) -> Option<(String, Vec<u8>, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
    let whole = end + length.parse::<usize>().unwrap();
    (bytes.len() >= whole).then(|| (head, bytes[end..whole].to_vec(), whole))
}

/// A directory that is deleted when this is dropped.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("tepui-executor-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running executor in a sandbox of its own; it is killed when this is dropped.
pub struct Executor {
    process: Child,
    pub sandbox: Directory,
}

impl Executor {
    pub fn start(kind: &str, name: &str, address: &str, more: &[(&str, &str)]) -> Executor {
        let sandbox = Directory::new(name);
        let file = |name: &str| Stdio::from(std::fs::File::create(sandbox.0.join(name)).unwrap());
        let process = Command::new(env!("CARGO_BIN_EXE_tepui-executor"))
            .arg(kind)
            .env_clear()
            .envs([("MESOS_FRAMEWORK_ID", "F"), ("MESOS_EXECUTOR_ID", "E"), ("MESOS_AGENT_ENDPOINT", address)])
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("MESOS_SANDBOX", &sandbox.0)
            .envs(more.iter().copied())
            .current_dir(&sandbox.0)
            .stdin(Stdio::null())
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .spawn()
            .unwrap();
        Executor { process, sandbox }
    }

    #[allow(dead_code)] // for the benchmark
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Waits for the executor's end, which must be successful.
    pub fn ends(&mut self) {
        let mut status = None;
        until("the executor to end", || {
            status = self.process.try_wait().unwrap();
            status.is_some()
        });
        assert_eq!(status.and_then(|s: ExitStatus| s.code()), Some(0), "{}", self.sandbox.text("stderr"));
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !reached() {
        assert!(Instant::now() < deadline, "waited for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
