//! A template of executors, and the agent's ends of the lines of its copies, for tests.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use containers::{Child, Output, Program, ProgramFile, Spec, Template, WaitStatus};
use prost::Message;
use protos::mesos::v1::executor::{Call, Event, call, event};
use protos::mesos::v1::{self, TaskState};
use protos::recordio::{self, Decoder};

use crate::support::{Directory, LIMIT, killing};

pub struct Nursery {
    pub template: Template,
    file: ProgramFile,
}

impl Nursery {
    pub fn new() -> Nursery {
        Nursery::of(env!("CARGO_BIN_EXE_tepui-executor"))
    }

    pub fn of(program: &str) -> Nursery {
        // An agent starts the template in the same way.
        let file = ProgramFile::in_memory(c"tepui-executor", &std::fs::read(program).unwrap()).unwrap();
        let words = ["tepui-executor", "executor", "template"].map(OsString::from);
        Nursery { template: Template::start(&file, words.into()).unwrap(), file }
    }

    pub fn spec(&self, sandbox: &Directory, variables: &[(&str, &str)]) -> Spec {
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

    pub fn start(&mut self, sandbox: &Directory, variables: &[(&str, &str)]) -> (Child, Line) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        ours.set_read_timeout(Some(LIMIT)).unwrap();
        let spec = self.spec(sandbox, variables);
        assert!(self.template.suits(&spec));
        let child = self.template.spawn(&spec, Some(OwnedFd::from(theirs))).unwrap();
        (child, Line { socket: ours, decoder: Decoder::new(1 << 20) })
    }
}

/// The agent's end of a line.
pub struct Line {
    socket: UnixStream,
    decoder: Decoder,
}

impl Line {
    fn send(&mut self, events: &[Event]) {
        let mut bytes = Vec::new();
        events.iter().for_each(|event| recordio::encode(&event.encode_to_vec(), &mut bytes));
        self.socket.write_all(&bytes).unwrap();
    }

    pub fn subscribed_and_launched(&mut self, task: v1::TaskInfo) {
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

    pub fn update(&mut self) -> v1::TaskStatus {
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

    pub fn updates(&mut self, states: &[TaskState]) {
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

pub fn ended(child: &Child) -> WaitStatus {
    child.wait(Some(LIMIT)).unwrap().expect("an end")
}
