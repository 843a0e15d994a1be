//! Runs the program of a job in a worker: its process, and its lines.
//!
//! It passes lines on and does not read them; the driver interprets them.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use sdk::driver::link::BlockingStream;

use super::error::Error;
use crate::frame::{self, ToDriver};
use crate::learn::ProgramOptions;
use crate::scheduler::{JOB_VARIABLE, TOKEN_VARIABLE};
use crate::trainer::{LINE_MAX, LineError};

/// A running program. Dropping it ends the program.
#[derive(Debug)]
pub(super) struct Program {
    child: Arc<Mutex<Child>>,
    input: ChildStdin,
}

impl Program {
    /// Starts a program with its first line. The program's lines, and finally its end, are sent to the driver over
    /// `stream`.
    pub(super) fn start(options: &ProgramOptions, line: &str, stream: &BlockingStream) -> Result<Program, Error> {
        let name = options.command.first().map_or("", String::as_str);
        let mut command = Command::new(name);
        command.args(options.command.iter().skip(1)).stdin(Stdio::piped()).stdout(Stdio::piped());
        // The secrets with which the worker authenticates are not for the program.
        command.env_remove(TOKEN_VARIABLE).env_remove(JOB_VARIABLE);
        // This is not an error of the connection, which would be opened again.
        let failed = |what: &str, error: std::io::Error| Error::Refused(format!("{what} '{name}': {error}"));
        let mut child = command.spawn().map_err(|error| failed("cannot run", error))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::Ended(format!("'{name}' has no standard streams")));
        };
        let child = Arc::new(Mutex::new(child));
        let stream = stream.clone();
        let mut program = Program { child: child.clone(), input };
        std::thread::spawn(move || pass_on(output, &stream, &child));
        program.send(line);
        Ok(program)
    }

    /// Writes a line to the program's standard input. A program that does not read it has most likely ended, and that
    /// is reported separately.
    pub(super) fn send(&mut self, line: &str) {
        if let Err(error) = self.input.write_all(format!("{line}\n").as_bytes()).and_then(|()| self.input.flush()) {
            tracing::debug!(%error, "the program does not read its standard input");
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Err(error) = lock(&self.child).kill() {
            tracing::debug!(%error, "the program has ended already");
        }
    }
}

fn lock(child: &Mutex<Child>) -> std::sync::MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes lines on until the program closes its output; then waits for its end, and reports it.
fn pass_on(output: ChildStdout, mut stream: &BlockingStream, child: &Mutex<Child>) {
    let mut send = |frame: ToDriver| frame::encode(&frame).is_ok_and(|bytes| stream.write_all(&bytes).is_ok());
    let mut output = BufReader::new(output);
    for number in 1.. {
        let mut line = Vec::new();
        // One byte more than is allowed, and the end of the line, show that the line is too long.
        let read = output.by_ref().take(LINE_MAX as u64 + 2).read_until(b'\n', &mut line);
        if line.is_empty() || read.is_err() {
            break;
        }
        let too_long = line.len() > LINE_MAX + 1;
        let frame = match String::from_utf8(line) {
            _ if too_long => ToDriver::Failed { why: LineError::TooLong(number).to_string() },
            Ok(text) => ToDriver::Line { number, text: text.trim_end().to_owned() },
            Err(_) => ToDriver::Failed { why: LineError::NotText(number).to_string() },
        };
        if !send(frame) || too_long {
            break;
        }
    }
    // A program that still writes must not wait for a reader.
    drop(output);
    // A program that runs on without its output would block the worker, so it is killed.
    let ended = loop {
        match lock(child).try_wait() {
            Ok(None) => {}
            ended => break ended,
        }
        super::worker::pause(EXIT_LOOK);
    };
    let status = ended.ok().flatten();
    let (code, signal) = (status.and_then(|s| s.code()), status.and_then(|s| s.signal()));
    if !send(ToDriver::Ended { code, signal }) {
        tracing::debug!("the driver has ended; the end of the program is not reported");
    }
}

/// Interval at which the exit of a program that has closed its output is polled.
const EXIT_LOOK: std::time::Duration = std::time::Duration::from_millis(20);
