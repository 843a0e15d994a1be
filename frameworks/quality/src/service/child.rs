//! Runs the program of a job in a worker: its process, and its lines.
//!
//! It passes lines on and does not read them; the driver interprets them.
//!
//! A program has its own process group, which ends with it. Processes that it has started, such as those of a pool,
//! would otherwise keep its output open, and the end of the program would not be seen.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use sdk::driver::link::BlockingStream;

use super::error::Error;
use crate::frame::{self, ToDriver};
use crate::learn::ProgramOptions;
use crate::scheduler::{JOB_VARIABLE, TOKEN_VARIABLE};
use crate::trainer::{LINE_MAX, LineError};

/// The process of a program; `None` once it was waited for, since its id may be reused then.
type Shared = Arc<Mutex<Option<Child>>>;

/// A running program. Dropping it ends the program and its process group.
#[derive(Debug)]
pub(super) struct Program {
    child: Shared,
    input: ChildStdin,
}

impl Program {
    /// Starts a program with its first line. The program's lines, and finally its end, are sent to the driver over
    /// `stream`.
    pub(super) fn start(options: &ProgramOptions, line: &str, stream: &BlockingStream) -> Result<Program, Error> {
        let name = options.command.first().map_or("", String::as_str);
        let mut command = Command::new(name);
        command.args(options.command.iter().skip(1)).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.process_group(0);
        // The secrets with which the worker authenticates are not for the program.
        command.env_remove(TOKEN_VARIABLE).env_remove(JOB_VARIABLE);
        // This is not an error of the connection, which would be opened again.
        let failed = |what: &str, error: std::io::Error| Error::Refused(format!("{what} '{name}': {error}"));
        let mut child = command.spawn().map_err(|error| failed("cannot run", error))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::Ended(format!("'{name}' has no standard streams")));
        };
        let child = Shared::new(Mutex::new(Some(child)));
        let stream = stream.clone();
        let mut program = Program { child: child.clone(), input };
        let watcher = std::thread::spawn(move || wait(&child));
        std::thread::spawn(move || {
            pass_on(output, &stream);
            // A program may run on without its output. A program that is too long in doing so hangs.
            let status = watcher.join().ok().flatten();
            report_end(&stream, status);
        });
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
        if let Some(child) = &*lock(&self.child) {
            kill_group(child);
        }
    }
}

fn lock(child: &Shared) -> MutexGuard<'_, Option<Child>> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills the process group of a program, which must not have been waited for.
fn kill_group(child: &Child) {
    let Some(group) = pid(child) else { return };
    if let Err(error) = kill_process_group(group, Signal::KILL) {
        tracing::debug!(%error, "the processes of the program have ended already");
    }
}

fn pid(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

/// Waits for the end of the program, kills the rest of its process group, and returns the status.
fn wait(child: &Shared) -> Option<ExitStatus> {
    let id = lock(child).as_ref().and_then(pid)?;
    // The process stays a zombie, so that the id of its group is not reused.
    let ended = loop {
        match waitid(WaitId::Pid(id), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Err(Errno::INTR) => {}
            ended => break ended,
        }
    };
    let mut child = lock(child).take()?;
    // The kernel has waited for it if the worker ignores SIGCHLD: its id may be that of another process.
    if ended.is_err() {
        return None;
    }
    kill_group(&child);
    child.wait().ok()
}

/// Passes lines on until the output of the program ends, or a line is too long.
fn pass_on(output: ChildStdout, mut stream: &BlockingStream) {
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
        if !send(&mut stream, &frame) || too_long {
            break;
        }
    }
}

fn report_end(mut stream: &BlockingStream, status: Option<ExitStatus>) {
    let (code, signal) = (status.and_then(|s| s.code()), status.and_then(|s| s.signal()));
    if !send(&mut stream, &ToDriver::Ended { code, signal }) {
        tracing::debug!("the driver has ended; the end of the program is not reported");
    }
}

fn send(stream: &mut &BlockingStream, frame: &ToDriver) -> bool {
    frame::encode(frame).is_ok_and(|bytes| stream.write_all(&bytes).is_ok())
}
