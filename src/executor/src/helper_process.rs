//! Starts processes beside an executor that run a check's command elsewhere: in a Docker container, or in a session.
//!
//! The standard input of such a process is a pipe that nothing is written to. When its other end is closed, no process
//! waits for the result any more.

use std::ffi::OsString;
use std::io::{self, PipeWriter, Read};
use std::sync::Arc;

use containers::{Output, Program, Spec};

/// Returns the process `executor KIND`, and the writing end of its standard input, which must be kept open while the
/// process is waited for.
pub(crate) fn spec(kind: &str, environment: Vec<(OsString, OsString)>) -> io::Result<(Spec, PipeWriter)> {
    let (stdin, line) = io::pipe()?;
    let argv = ["tepui-executor", "executor", kind].map(OsString::from).into();
    let mut spec = Spec::new(Program::Argv { file: "/proc/self/exe".into(), argv });
    spec.environment = environment;
    spec.stdin = Some(Arc::new(stdin.into()));
    (spec.stdout, spec.stderr) = (Output::Inherit, Output::Inherit);
    Ok((spec, line))
}

/// Calls `clear` and ends this process as soon as standard input is closed, that is, no process waits for it any more.
pub(crate) fn exit_when_abandoned(clear: impl FnOnce() + Send + 'static) {
    std::thread::spawn(move || {
        let _ = io::stdin().read(&mut [0]);
        clear();
        containers::end_now(1);
    });
}
