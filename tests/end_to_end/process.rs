//! Processes that run during a test: their output is kept, and shown when the test fails; every wait has a limit.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::support::{PATIENCE, look_for, look_for_within, signal};

/// Maximum time for a process that does all of its work and ends, also on a busy machine.
const WORK: Duration = Duration::from_secs(900);

/// The output of a pipe so far.
struct Said {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
    /// Position up to which its lines have been examined.
    seen: usize,
}

impl Said {
    fn by(mut pipe: impl Read + Send + 'static) -> Said {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let theirs = Arc::clone(&bytes);
        let reader = std::thread::spawn(move || {
            let mut part = [0; 16 << 10];
            while let Ok(length @ 1..) = pipe.read(&mut part) {
                theirs.lock().unwrap().extend_from_slice(&part[..length]);
            }
        });
        Said { bytes, reader, seen: 0 }
    }

    fn bytes(&self) -> Vec<u8> {
        self.bytes.lock().unwrap().clone()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    fn next_line(&mut self) -> Option<String> {
        let bytes = self.bytes.lock().unwrap();
        let rest = &bytes[self.seen..];
        let length = rest.iter().position(|byte| *byte == b'\n')?;
        self.seen += length + 1;
        Some(String::from_utf8_lossy(&rest[..length]).into_owned())
    }
}

/// An output stream of a process.
#[derive(Clone, Copy)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// A process that runs during the test; it is interrupted when this is dropped.
pub struct Process {
    child: Child,
    /// Command line of the process.
    line: String,
    stdout: Said,
    stderr: Said,
    /// Whether the caller has received the whole output.
    is_told: bool,
}

impl Process {
    pub fn start(command: &mut Command) -> Process {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let line = words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Process::of(command.spawn().unwrap_or_else(|error| panic!("{line}: {error}")), line)
    }

    /// Wraps a child that was started with pipes for both of its outputs.
    pub fn of(mut child: Child, line: String) -> Process {
        let stdout = Said::by(child.stdout.take().unwrap());
        let stderr = Said::by(child.stderr.take().unwrap());
        Process { child, line, stdout, stderr, is_told: false }
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Returns the state of the process, and its whole output.
    pub fn told(&mut self) -> String {
        let how = match self.child.try_wait() {
            Ok(Some(status)) => format!("has ended ({status})"),
            _ => "goes on".to_owned(),
        };
        format!("{} {how}; it said:\n{}{}", self.line, self.stdout.text(), self.stderr.text())
    }

    /// Calls `reached` repeatedly until it returns something. Panics when the process ends before.
    pub fn wait_for<T>(&mut self, what: &str, mut reached: impl FnMut() -> Option<T>) -> T {
        let found = look_for(|| {
            let ended = self.has_ended();
            // The state at the end of the process counts.
            let found = reached();
            if found.is_some() || ended { Some(found) } else { None }
        });
        found.flatten().unwrap_or_else(|| panic!("not reached: {what}; {}", self.told()))
    }

    /// Calls `reached` repeatedly until it returns `true`. Panics when the process ends before.
    pub fn until(&mut self, what: &str, mut reached: impl FnMut() -> bool) {
        self.wait_for(what, || reached().then_some(()));
    }

    /// Waits for the next line with all these parts and returns it.
    pub fn line(&mut self, stream: Stream, parts: &[&str]) -> String {
        let found = look_for(|| {
            let said = match stream {
                Stream::Stdout => &mut self.stdout,
                Stream::Stderr => &mut self.stderr,
            };
            let over = said.reader.is_finished();
            while let Some(line) = said.next_line() {
                if parts.iter().all(|part| line.contains(part)) {
                    return Some(Some(line));
                }
            }
            over.then_some(None)
        });
        found.flatten().unwrap_or_else(|| panic!("no line with {parts:?}; {}", self.told()))
    }

    /// Sends a signal, if the process still runs.
    pub fn signal(&mut self, name: &str) {
        if !self.has_ended() {
            signal(&self.child, name);
        }
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for the end of the process and returns its status.
    pub fn end(&mut self) -> ExitStatus {
        let ended = look_for_within(WORK, || self.child.try_wait().unwrap());
        ended.unwrap_or_else(|| panic!("no end within {} s: {}", WORK.as_secs(), self.told()))
    }

    /// Waits for the end of the process and returns its status and output.
    pub fn output(mut self) -> Output {
        let status = self.end();
        // Processes that it has left running may keep its pipes open.
        let over = |process: &Process| process.stdout.reader.is_finished() && process.stderr.reader.is_finished();
        let _ = look_for(|| over(&self).then_some(()));
        self.is_told = true;
        Output { status, stdout: self.stdout.bytes(), stderr: self.stderr.bytes() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_told {
            return;
        }
        if std::thread::panicking() {
            eprintln!("{}", self.told());
            return self.kill();
        }
        self.signal("-INT");
        if look_for_within(PATIENCE, || self.has_ended().then_some(())).is_none() {
            self.kill();
        }
    }
}

/// Commands that do their work and end.
pub trait ToItsEnd {
    /// Runs the command with a time limit, and returns its status and output.
    fn run(&mut self) -> Output;
}

impl ToItsEnd for Command {
    fn run(&mut self) -> Output {
        Process::start(self).output()
    }
}
