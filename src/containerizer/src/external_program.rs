//! Runs a program of the operator with an input, and reads its output: a CNI plugin, a secret resolver, `systemctl`,
//! `perf`.
//!
//! What the input asks for and what the output means is the callers' business.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use containers::{Launcher, Output, Program, Spec, WaitStatus};

/// How long a program may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);
/// Capacity of a pipe: the limit of a program's input and of its output.
pub(crate) const TEXT_MAX: usize = 64 * 1024;
const SIGKILL: i32 = 9;

/// A program to ask.
#[derive(Debug)]
pub(crate) struct ExternalProgram<'a> {
    /// It, and the words after it.
    pub(crate) file: OsString,
    pub(crate) words: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// What it reads.
    pub(crate) input: &'a [u8],
}

impl ExternalProgram<'_> {
    /// Runs the program. Returns its exit status and its output; `None` if it took too long and was killed. Blocks.
    ///
    /// # Errors
    /// The program cannot be run.
    pub(crate) fn run(self) -> anyhow::Result<Option<(WaitStatus, Vec<u8>)>> {
        self.run_for(LIMIT)
    }

    /// The same with a limit of its own.
    ///
    /// # Errors
    /// If it cannot be run.
    pub(crate) fn run_for(self, limit: Duration) -> anyhow::Result<Option<(WaitStatus, Vec<u8>)>> {
        let (stdin, input) = containers::pipe()?;
        let (answer, stdout) = containers::pipe()?;
        ensure!(containers::write_some(&input, self.input)? == self.input.len(), "a pipe holds too little");
        drop(input);
        let argv = [self.file.clone()].into_iter().chain(self.words).collect();
        let spec = Spec {
            environment: self.environment,
            stdin: Some(Arc::new(stdin)),
            stdout: Output::Fd(Arc::new(stdout)),
            stderr: Output::Inherit,
            ..Spec::new(Program::Argv { argv, file: self.file })
        };
        let child = Launcher::posix().spawn(&spec)?;
        drop(spec);
        let Some(status) = child.wait(Some(limit))? else {
            child.signal(SIGKILL)?;
            child.wait(None)?;
            return Ok(None);
        };
        Ok(Some((status, read(&answer)?)))
    }
}

/// Where programs are looked for that others run.
pub(crate) fn path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/usr/sbin:/usr/bin:/sbin:/bin".into())
}

/// Reads what has been written; another process may still have the other end open.
fn read(pipe: &std::os::fd::OwnedFd) -> anyhow::Result<Vec<u8>> {
    containers::never_wait(pipe)?;
    let mut text = vec![0; TEXT_MAX];
    let mut length = 0;
    while length < text.len() {
        match containers::read_some(pipe, &mut text[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error.into()),
        }
    }
    text.truncate(length);
    Ok(text)
}
