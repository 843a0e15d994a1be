//! Executors that are copies of a template, with a line to their agent.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use containers::{Child, Output, Program, ProgramFile, Spec, Template, TemplateError, WaitStatus};
use prost::Message;
use protos::mesos::v1::TaskState::{TaskFinished, TaskRunning, TaskStarting};
use protos::mesos::v1::executor::{Call, Event, call, event};
use protos::mesos::v1::{self, TaskState};
use protos::recordio::{self, Decoder};

use crate::support::{FakeAgent, Folder, killing, shell};

const LIMIT: Duration = Duration::from_secs(60);

struct Nursery {
    template: Template,
    file: ProgramFile,
}

impl Nursery {
    fn new() -> Nursery {
        let file = ProgramFile::open(Path::new(env!("CARGO_BIN_EXE_tepui-executor"))).unwrap();
        let words = ["tepui-executor", "executor", "template"].map(OsString::from);
        Nursery { template: Template::start(&file, words.into()).unwrap(), file }
    }

    fn spec(&self, sandbox: &Folder, variables: &[(&str, &str)]) -> Spec {
        let argv = ["tepui", "executor", "command"].map(OsString::from).into();
        let mut spec = Spec::new(Program::Open { file: self.file.clone(), argv });
        let own = [
            ("MESOS_FRAMEWORK_ID", "F"),
            ("MESOS_EXECUTOR_ID", "E"),
            ("MESOS_AGENT_ENDPOINT", "127.0.0.1:1"),
            ("PATH", "/usr/bin:/bin"),
        ];
        let all = own.iter().chain(variables);
        spec.environment = all.map(|(name, value)| (OsString::from(name), OsString::from(value))).collect();
        spec.working_dir = Some(sandbox.0.clone());
        spec.stdout = Output::File(sandbox.0.join("stdout"));
        spec.stderr = Output::File(sandbox.0.join("stderr"));
        spec
    }

    fn start(&mut self, sandbox: &Folder, variables: &[(&str, &str)]) -> (Child, Line) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        ours.set_read_timeout(Some(LIMIT)).unwrap();
        let spec = self.spec(sandbox, variables);
        assert!(self.template.suits(&spec));
        let child = self.template.spawn(&spec, Some(OwnedFd::from(theirs))).unwrap();
        (child, Line { socket: ours, decoder: Decoder::new(1 << 20) })
    }
}

/// The agent's end.
struct Line {
    socket: UnixStream,
    decoder: Decoder,
}

impl Line {
    fn send(&mut self, events: &[Event]) {
        let mut bytes = Vec::new();
        events.iter().for_each(|event| recordio::encode(&event.encode_to_vec(), &mut bytes));
        self.socket.write_all(&bytes).unwrap();
    }

    fn subscribed_and_launched(&mut self, task: v1::TaskInfo) {
        let subscribed = event::Subscribed { framework_info: killing(), ..Default::default() };
        self.send(&[
            Event { r#type: Some(event::Type::Subscribed as i32), subscribed: Some(subscribed), ..Default::default() },
            Event {
                r#type: Some(event::Type::Launch as i32),
                launch: Some(event::Launch { task }),
                ..Default::default()
            },
        ]);
    }

    fn update(&mut self) -> v1::TaskStatus {
        loop {
            if let Some(record) = self.decoder.pull().unwrap() {
                let call: Call = protos::decode(&record).unwrap();
                assert_eq!(call.r#type(), call::Type::Update);
                return call.update.unwrap().status;
            }
            let mut buffer = [0; 4096];
            let length = self.socket.read(&mut buffer).unwrap();
            assert!(length > 0, "the executor has closed its line");
            self.decoder.push(&buffer[..length]);
        }
    }

    fn updates(&mut self, states: &[TaskState]) {
        for state in states {
            let status = self.update();
            assert_eq!(status.state(), *state);
            let acknowledged = event::Acknowledged { task_id: status.task_id, uuid: status.uuid.unwrap() };
            self.send(&[Event {
                r#type: Some(event::Type::Acknowledged as i32),
                acknowledged: Some(acknowledged),
                ..Default::default()
            }]);
        }
    }
}

fn ended(child: &Child) -> WaitStatus {
    child.wait(Some(LIMIT)).unwrap().expect("an end")
}

#[test]
fn copies_live_side_by_side() {
    let mut nursery = Nursery::new();
    let sandboxes: Vec<Folder> = (0..3).map(|n| Folder::new(&format!("copy-{n}"))).collect();
    let script = "echo $WHO $PWD; read line < go; ls -l /proc/self/fd | wc -l";
    let mut copies = Vec::new();
    for (n, sandbox) in sandboxes.iter().enumerate() {
        std::process::Command::new("mkfifo").arg(sandbox.0.join("go")).status().unwrap();
        let (child, mut line) = nursery.start(sandbox, &[("WHO", &format!("copy{n}"))]);
        line.subscribed_and_launched(shell("t", script));
        line.updates(&[TaskStarting, TaskRunning]);
        copies.push((child, line));
    }
    // Copies outlive it, and are nobody else's children.
    drop(nursery);
    for (n, ((child, mut line), sandbox)) in copies.into_iter().zip(&sandboxes).enumerate() {
        std::fs::write(sandbox.0.join("go"), "now\n").unwrap();
        line.updates(&[TaskFinished]);
        assert!(ended(&child).success(), "{}", sandbox.text("stderr"));
        // Four open files of ls, and the line before them: nothing is handed on.
        assert_eq!(sandbox.text("stdout"), format!("copy{n} {}\n5\n", sandbox.0.display()));
    }
}

#[test]
fn a_lost_line_is_replaced_by_http() {
    let agent = FakeAgent::new();
    let mut nursery = Nursery::new();
    let sandbox = Folder::new("copy-lost");
    let (child, mut line) = nursery.start(
        &sandbox,
        &[
            ("MESOS_CHECKPOINT", "1"),
            ("MESOS_RECOVERY_TIMEOUT", "15mins"),
            ("MESOS_SUBSCRIPTION_BACKOFF_MAX", "10ms"),
            ("MESOS_AGENT_ENDPOINT", &agent.address),
        ],
    );
    line.subscribed_and_launched(shell("t", "exit 0"));
    assert_eq!(line.update().state(), TaskStarting);
    // No update was acknowledged.
    drop(line);
    let (subscribe, mut stream) = agent.subscribed(killing());
    assert_eq!(subscribe.unacknowledged_tasks.len(), 1);
    let mut states: Vec<TaskState> =
        subscribe.unacknowledged_updates.iter().map(|update| update.status.state()).collect();
    subscribe.unacknowledged_updates.iter().for_each(|update| stream.acknowledge(&update.status));
    if states.last() != Some(&TaskFinished) {
        let last = agent.updates(&mut stream, &[TaskFinished]);
        states.push(last.state());
    }
    assert_eq!(states, [TaskStarting, TaskRunning, TaskFinished]);
    assert!(ended(&child).success(), "{}", sandbox.text("stderr"));
}

#[test]
fn without_checkpoints_a_lost_line_is_the_end() {
    let mut nursery = Nursery::new();
    let sandbox = Folder::new("copy-end");
    let (child, mut line) = nursery.start(&sandbox, &[]);
    line.subscribed_and_launched(shell("t", "sleep 1000"));
    line.updates(&[TaskStarting, TaskRunning]);
    drop(line);
    assert!(ended(&child).success());
    assert!(sandbox.text("stderr").contains("Shutting down"), "{}", sandbox.text("stderr"));
}

#[test]
fn failures_name_their_step() {
    let mut nursery = Nursery::new();
    let sandbox = Folder::new("copy-fails");
    let mut spec = nursery.spec(&sandbox, &[]);
    spec.working_dir = Some("/none/such".into());
    let error = nursery.template.spawn(&spec, None).unwrap_err();
    assert!(matches!(&error, TemplateError::Spawn(_)));
    assert_eq!(error.to_string(), "Failed to enter the working directory 'tepui'");
    spec.working_dir = None;
    spec.stdout = Output::File("/none/such".into());
    assert!(matches!(nursery.template.spawn(&spec, None), Err(TemplateError::Spawn(_))));
    // It is as good as before.
    let (child, mut line) = nursery.start(&sandbox, &[]);
    line.subscribed_and_launched(shell("t", "true"));
    line.updates(&[TaskStarting, TaskRunning, TaskFinished]);
    assert!(ended(&child).success());
}
