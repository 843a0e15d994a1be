//! Runs an operator's program with an input, and reads its output: a CNI plugin, a secret resolver, `systemctl`,
//! `perf`.
//!
//! The callers know the meaning of input and output.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use containers::{Launcher, Output, Program, Spec, WaitStatus};

/// Time limit of a program.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);
/// Capacity of a pipe, which limits a program's input and its output.
pub(crate) const TEXT_MAX: usize = 64 * 1024;
const SIGKILL: i32 = 9;

/// A program to run.
#[derive(Debug)]
pub(crate) struct ExternalProgram<'a> {
    /// Program, and its arguments.
    pub(crate) file: OsString,
    pub(crate) words: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Content of standard input.
    pub(crate) input: &'a [u8],
}

impl ExternalProgram<'_> {
    /// Runs the program. Returns its exit status and its output; `None` if it took longer than [`LIMIT`] and was
    /// killed. Blocks.
    ///
    /// # Errors
    /// The program cannot be run.
    pub(crate) fn run(self) -> anyhow::Result<Option<(WaitStatus, Vec<u8>)>> {
        self.run_for(LIMIT)
    }

    /// Runs the program with another time limit. Returns its exit status and its output; `None` if it took longer and
    /// was killed. Blocks.
    ///
    /// # Errors
    /// The program cannot be run.
    pub(crate) fn run_for(self, limit: Duration) -> anyhow::Result<Option<(WaitStatus, Vec<u8>)>> {
        let (stdin, input) = containers::pipe()?;
        let (answer, stdout) = containers::pipe()?;
        ensure!(
            containers::write_some(&input, self.input)? == self.input.len(),
            "the input is longer than the buffer of a pipe"
        );
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

/// Returns the `PATH` in which programs are searched.
pub(crate) fn path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/usr/sbin:/usr/bin:/sbin:/bin".into())
}

/// Reads what has been written. It does not wait for the end of the file, because another process may still have the
/// other end open.
fn read(pipe: &std::os::fd::OwnedFd) -> anyhow::Result<Vec<u8>> {
    containers::set_nonblocking(pipe)?;
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
