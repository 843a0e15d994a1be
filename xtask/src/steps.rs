//! Runs named steps one after the other, and prints their durations and a summary at the end.
//!
//! A failed step does not stop the ones after it: one run shows all failures. Without a terminal, the last lines of a
//! command that failed are repeated at the end, so that they are found without searching a long log.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, IsTerminal, PipeReader, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Number of lines of a failed command that are repeated.
const REPEATED: usize = 40;
/// Maximum wait for output after a command has ended: processes that it has left running may hold its output open.
const LINGER: Duration = Duration::from_secs(5);

/// Steps that were run so far.
#[derive(Default)]
pub(crate) struct Steps {
    done: Vec<Step>,
}

struct Step {
    name: &'static str,
    took: Duration,
    error: Option<anyhow::Error>,
}

impl Steps {
    /// Runs `work` under `name`, and records its duration and result. Returns its value if it succeeded.
    pub(crate) fn run<T>(&mut self, name: &'static str, work: impl FnOnce() -> Result<T>) -> Option<T> {
        println!("\n==> {name}");
        #[expect(clippy::disallowed_methods, reason = "the duration of a step is printed")]
        let began = Instant::now();
        let result = work();
        let took = began.elapsed();
        let (value, error) = match result {
            Ok(value) => (Some(value), None),
            Err(error) => (None, Some(error)),
        };
        match &error {
            None => println!("<== {name}: ok, {:.1} s", took.as_secs_f64()),
            Some(error) => println!("<== {name}: FAILED after {:.1} s: {error:#}", took.as_secs_f64()),
        }
        self.done.push(Step { name, took, error });
        value
    }

    /// Prints the summary.
    ///
    /// # Errors
    /// Names the steps that failed.
    pub(crate) fn finish(self) -> Result<()> {
        println!("\n{:<44} {:>8}  result", "step", "seconds");
        for step in &self.done {
            let result = if step.error.is_none() { "ok" } else { "FAILED" };
            println!("{:<44} {:>8.1}  {result}", step.name, step.took.as_secs_f64());
        }
        for step in &self.done {
            if let Some(Failed { line, last, .. }) = step.error.as_ref().and_then(|e| e.downcast_ref()) {
                println!("\n{}: last line: {line}", step.name);
                last.iter().for_each(|line| println!("| {line}"));
            }
        }
        let failed: Vec<&str> = self.done.iter().filter(|s| s.error.is_some()).map(|s| s.name).collect();
        if !failed.is_empty() {
            bail!("failed: {}", failed.join(", "));
        }
        Ok(())
    }
}

/// A command that ended with another status than 0.
#[derive(Debug, thiserror::Error)]
#[error("{status}: {line}")]
struct Failed {
    status: ExitStatus,
    /// Command line.
    line: String,
    /// Last lines of the output; empty with a terminal.
    last: Vec<String>,
}

/// Runs `command` to its end, with the output of this program.
///
/// # Errors
/// Names the command line if it cannot be started or ends with another status than 0.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = text(command);
    let cannot = || format!("cannot start: {line}");
    let (status, last) = match std::io::stdout().is_terminal() {
        true => (command.status().with_context(cannot)?, Vec::new()),
        false => unwatched(command, |_| ()).with_context(cannot)?,
    };
    ended(status, line, last)
}

/// Runs `command` like [`run`], and passes each line of its output to `see`.
///
/// # Errors
/// As of [`run`].
pub(crate) fn run_seen(command: &mut Command, see: impl FnMut(&str) + Send + 'static) -> Result<()> {
    let line = text(command);
    let (status, last) = unwatched(command, see).with_context(|| format!("cannot start: {line}"))?;
    ended(status, line, if std::io::stdout().is_terminal() { Vec::new() } else { last })
}

fn ended(status: ExitStatus, line: String, last: Vec<String>) -> Result<()> {
    if !status.success() {
        return Err(Failed { status, line, last }.into());
    }
    Ok(())
}

/// Runs `command`, copies its output, and returns the last lines of it.
fn unwatched(
    command: &mut Command,
    see: impl FnMut(&str) + Send + 'static,
) -> std::io::Result<(ExitStatus, Vec<String>)> {
    let (reader, writer) = std::io::pipe()?;
    let mut child = command.stdout(writer.try_clone()?).stderr(writer).spawn()?;
    // The command owns the other end of the pipe, which must be closed before its end can be read.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let last = Arc::new(Mutex::new(VecDeque::new()));
    let (ended, end) = mpsc::channel::<()>();
    let theirs = last.clone();
    std::thread::spawn(move || {
        pass(reader, &theirs, see);
        drop(ended);
    });
    let status = child.wait()?;
    // Nothing is ever sent: this waits for the end of the sender.
    let _ = end.recv_timeout(LINGER);
    let last = lock(&last).drain(..).collect();
    Ok((status, last))
}

/// Copies all output, passes each line to `see`, and keeps the last ones.
fn pass(reader: PipeReader, last: &Mutex<VecDeque<String>>, mut see: impl FnMut(&str)) {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        // Without a reader of this program's output the error cannot be reported.
        let _ = std::io::stdout().write_all(&line);
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        see(&text);
        let mut last = lock(last);
        if last.len() == REPEATED {
            last.pop_front();
        }
        last.push_back(text);
        line.clear();
    }
}

/// Locks a mutex; its value is consistent even if another thread has panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the command line as one would type it.
fn text(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|w| w.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_says_what_it_said_last() {
        let mut command = Command::new("sh");
        let (status, last) = unwatched(command.args(["-c", "seq 41; echo why >&2; exit 3"]), |_| ()).unwrap();
        assert_eq!(status.code(), Some(3));
        assert_eq!((last.len(), last[0].as_str(), last[REPEATED - 1].as_str()), (REPEATED, "3", "why"));
    }

    #[test]
    fn what_is_left_running_is_not_waited_for_without_end() {
        let mut command = Command::new("sh");
        let (status, last) = unwatched(command.args(["-c", "sleep 1000 & echo $!"]), |_| ()).unwrap();
        assert!(status.success());
        let left = std::process::Command::new("kill").arg(&last[0]).status().unwrap();
        assert!(left.success(), "it was still there");
    }
}
