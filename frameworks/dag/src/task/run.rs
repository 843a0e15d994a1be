//! The runner of a task: fetches its inputs, runs the program, publishes its outputs, and reports to the framework what
//! the exit code cannot express.

use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use jobs::Run;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use super::failed::TaskFailure;
use super::framework::FrameworkClient;
use super::inputs::{self, Pieces};
use super::publish::OutputDirectories;
use super::{Fault, INPUT, Report, Spec, fetch};

/// Runs a task in its sandbox, the directory `sandbox`. `say` receives messages for users. Returns the exit code: the
/// program's, or that of a [`Fault`].
pub async fn run(spec: &Spec, sandbox: &Path, say: impl Fn(&str)) -> u8 {
    let mut framework = FrameworkClient { api: spec.api.clone(), task: spec.id.clone() };
    let failed = match all(spec, sandbox, &mut framework).await {
        Ok(code) => return code,
        Err(failed) => failed,
    };
    say(&failed.message);
    if failed.fault != Fault::Framework {
        let report = Report { missing: failed.missing, value: None, message: failed.message };
        // Without the report the exit code says the kind of fault.
        if let Err(error) = framework.report(&report).await {
            say(&error.message);
        }
    }
    failed.fault.code()
}

async fn all(spec: &Spec, sandbox: &Path, framework: &mut FrameworkClient) -> Result<u8, TaskFailure> {
    inputs::check(&spec.extents)?;
    let input = sandbox.join(INPUT);
    if let Some(sources) = &spec.sources {
        fetch::fetch(sources, &input, framework).await?;
    }
    let place = OutputDirectories::make(spec, sandbox)?;
    let pieces = match (&spec.sources, spec.stdin) {
        (_, false) => None,
        (None, true) => Some(Pieces::of_extents(&spec.extents, spec.lines)),
        (Some(_), true) => {
            Some(Pieces::of_directory(&input).map_err(|e| TaskFailure::new(Fault::Storage, e.to_string()))?)
        }
    };
    let status = program(spec, sandbox, &place.writes, pieces).await?;
    let code = code_of(status);
    if code != 0 {
        return Ok(code);
    }
    let value = spec.value.as_ref().map(|name| place.value(name)).transpose()?;
    if !spec.outputs.is_empty() {
        place.publish(spec)?;
    }
    // Files that have grown while the program ran are not a fault; shortened ones are.
    inputs::check(&spec.extents)?;
    if let Some(value) = value {
        framework.report(&Report { value: Some(value), ..Report::default() }).await?;
    }
    Ok(0)
}

async fn program(
    spec: &Spec,
    sandbox: &Path,
    output: &PathBuf,
    pieces: Option<Pieces>,
) -> Result<ExitStatus, TaskFailure> {
    let mut command = match &spec.run {
        Run::Command(text) => {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", text]);
            command
        }
        Run::Program(words) => {
            let mut command = Command::new(words.first().map_or("", String::as_str));
            command.args(words.iter().skip(1));
            command
        }
        Run::Image => return Err(TaskFailure::new(Fault::Output, "there is no program".to_owned())),
    };
    // Paths in its arguments are relative to the sandbox; an image may have another directory.
    command.current_dir(sandbox).env_remove(super::VARIABLE).env("TEPUI_OUTPUT", output);
    if spec.sources.is_some() {
        let input = sandbox.join(INPUT);
        command.env("TEPUI_INPUT", &input).env("TEPUI_INPUTS", &input);
    }
    command.stdin(if pieces.is_some() { Stdio::piped() } else { Stdio::null() });
    let is_first = std::process::id() == 1;
    if is_first {
        command.process_group(0);
    }
    // As in a shell, a missing program is exit code 127.
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let code = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
            return Ok(ExitStatus::from_raw(code << 8));
        }
    };
    let stdin = child.stdin.take().map(|stdin| stdin.into_owned_fd()).transpose();
    let stdin =
        stdin.map_err(|error| TaskFailure::new(Fault::Storage, format!("the program's standard input: {error}")))?;
    let feeding = stdin.zip(pieces).map(|(stdin, pieces)| {
        std::thread::spawn(move || pieces.copy(io::BufWriter::with_capacity(256 << 10, File::from(stdin))))
    });
    let status = wait(&mut child, is_first)
        .await
        .map_err(|error| TaskFailure::new(Fault::Storage, format!("waiting for the program: {error}")))?;
    if let Some(feeding) = feeding
        && let Ok(Err(error)) = feeding.join()
    {
        return Err(TaskFailure::new(Fault::Input, format!("the program's standard input: {error}")));
    }
    Ok(status)
}

/// Waits for the program.
///
/// In a Docker container the runner is process 1, and `docker stop` sends SIGTERM to process 1 only. So the runner
/// passes the signal on to the program and its children: the kernel ignores a signal to a first process that does not
/// handle it.
async fn wait(child: &mut Child, is_first: bool) -> io::Result<ExitStatus> {
    if !is_first {
        return child.wait().await;
    }
    let mut ends = signal(SignalKind::terminate())?;
    loop {
        let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        tokio::select! {
            status = child.wait() => return status,
            Some(()) = ends.recv() => if let Some(pid) = pid {
                // A program that has just ended has no process group any more.
                let _ = kill_process_group(pid, Signal::TERM);
            },
        }
    }
}

/// Returns the exit code of a program as a shell does: 128 and the number of the signal that ended it.
fn code_of(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(1),
        (None, Some(signal)) => u8::try_from(128 + signal).unwrap_or(255),
        (None, None) => 1,
    }
}
