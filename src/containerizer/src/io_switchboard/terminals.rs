//! The pipes and terminals of sessions, and the terminals of other containers (`tty_info`).
//!
//! The streams of a session are the agent's, and end with it. The terminal of any other container belongs to a
//! switchboard, a small process beside it (crate `executor`) that outlives the agent: it writes the output to the
//! sandbox, and the agent is its client. Its socket is in the container's runtime directory.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;

use agent::{ContainerSpec, Session};
use containers::isolation::Isolation;
use containers::{Child, Launcher, Output, Program, ProgramFile, Spec, Terminal};

/// Name of the socket of a container's switchboard.
const SOCKET: &str = "terminal";
/// Byte that ends the input of a terminal.
const END_OF_INPUT: &[u8] = &[4];
/// Default size of a terminal: rows and columns.
const USUAL_SIZE: (u32, u32) = (24, 80);
/// Kinds of frames to a switchboard: input, and the size of the terminal.
const TYPED: u8 = 0;
const SIZE: u8 = 1;
/// Maximum length of the input in one frame.
const FRAME_MAX: usize = 64 * 1024;

/// Kind of an input stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum InputKind {
    #[default]
    Pipe,
    Terminal,
    Switchboard,
}

impl InputKind {
    /// Returns the bytes to write to this kind of input, for some input or for its end.
    pub(crate) fn typed(self, bytes: &[u8]) -> Cow<'_, [u8]> {
        let bytes = if bytes.is_empty() { END_OF_INPUT } else { bytes };
        match self {
            InputKind::Pipe | InputKind::Terminal => Cow::Borrowed(bytes),
            InputKind::Switchboard => bytes.chunks(FRAME_MAX).flat_map(|piece| frame(TYPED, piece)).collect(),
        }
    }
}

/// Returns the frame that sets the terminal's size at a switchboard.
pub(crate) fn size(rows: u32, columns: u32) -> Vec<u8> {
    frame(SIZE, &[rows.to_be_bytes(), columns.to_be_bytes()].concat())
}

fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[kind], &length[..], body].concat()
}

/// The agent's ends of a container's streams.
pub(crate) struct StreamEnds {
    pub(crate) input_kind: InputKind,
    pub(crate) input: OwnedFd,
    pub(crate) output: OwnedFd,
    /// Standard error; `None` for a terminal, which has only one output.
    pub(crate) error: Option<OwnedFd>,
}

impl StreamEnds {
    /// Opens the pipes or the terminal of a session, and attaches the other ends to the process that is about to start.
    /// With `inside`, the terminal is opened in the `/dev/pts` of that process.
    ///
    /// # Errors
    /// If there are no descriptors left.
    pub(crate) fn open(session: Session, inside: Option<i32>, process: &mut Spec) -> io::Result<StreamEnds> {
        let ends = match session.terminal {
            Some((rows, columns)) => {
                let terminal = match inside {
                    Some(pid) => Terminal::open_inside(pid, rows, columns)?,
                    None => Terminal::open(rows, columns)?,
                };
                let user = give(terminal, process)?;
                process.isolation.terminal = true;
                StreamEnds { input_kind: InputKind::Terminal, input: user.try_clone()?, output: user, error: None }
            }
            None => {
                let ((stdin, input), (output, stdout), (error, stderr)) =
                    (containers::pipe()?, containers::pipe()?, containers::pipe()?);
                process.stdin = Some(Arc::new(stdin));
                process.stdout = Output::Fd(Arc::new(stdout));
                process.stderr = Output::Fd(Arc::new(stderr));
                StreamEnds { input_kind: InputKind::Pipe, input, output, error: Some(error) }
            }
        };
        for fd in [Some(&ends.input), Some(&ends.output), ends.error.as_ref()].into_iter().flatten() {
            containers::set_nonblocking(fd)?;
        }
        Ok(ends)
    }

    /// Returns the agent's ends of the streams of a switchboard, from the container's runtime directory.
    ///
    /// # Errors
    /// The container has no switchboard, or it has ended.
    pub(crate) fn of_switchboard(directory: &Path) -> io::Result<StreamEnds> {
        let directory = File::open(directory)?;
        let stream = UnixStream::connect(below(&directory))?;
        stream.set_nonblocking(true)?;
        Ok(StreamEnds {
            input_kind: InputKind::Switchboard,
            input: stream.try_clone()?.into(),
            output: stream.into(),
            error: None,
        })
    }
}

/// Returns a path of the socket that goes through an open directory: its own path may exceed the limit of a socket's
/// address.
fn below(directory: &File) -> String {
    format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd())
}

/// Attaches a terminal to a process, and returns the agent's end.
fn give(terminal: Terminal, process: &mut Spec) -> io::Result<OwnedFd> {
    if let Some(user) = &process.user {
        terminal.give(user)?;
    }
    let Terminal { user, process: theirs } = terminal;
    let theirs = Arc::new(theirs);
    process.stdin = Some(theirs.clone());
    (process.stdout, process.stderr) = (Output::Fd(theirs.clone()), Output::Fd(theirs));
    Ok(user)
}

/// Returns the size of the terminal that a container requests for itself.
pub(crate) fn wanted(spec: &ContainerSpec) -> Option<(u32, u32)> {
    let info = spec.container.as_ref()?.tty_info.as_ref().filter(|_| spec.session.is_none())?;
    Some(info.window_size.as_ref().map_or(USUAL_SIZE, |size| (size.rows, size.columns)))
}

/// Starts the switchboard of a container that is about to start, with the runtime directory `directory`; `isolation` is
/// that of the switchboard.
///
/// # Errors
/// There is no terminal left, or the switchboard cannot be started.
pub(crate) fn start(
    (rows, columns): (u32, u32),
    directory: &Path,
    executor: &ProgramFile,
    process: &mut Spec,
    isolation: Isolation,
) -> anyhow::Result<Child> {
    let output = std::mem::take(&mut process.stdout);
    let terminal = give(Terminal::open(rows, columns)?, process)?;
    // tepui's own executor passes the terminal on to its task.
    process.isolation.terminal = match &process.program {
        Program::Open { argv, .. } => argv.iter().any(|word| word == "init"),
        _ => true,
    };
    let directory = File::open(directory)?;
    let socket = UnixListener::bind(below(&directory))?;
    let argv = ["tepui-executor", "executor", "switchboard"].map(Into::into).to_vec();
    let board = Spec {
        stdin: Some(Arc::new(terminal)),
        stdout: output,
        stderr: Output::Fd(Arc::new(socket.into())),
        isolation,
        ..Spec::new(Program::Open { file: executor.clone(), argv })
    };
    Ok(Launcher::posix().spawn(&board)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed() {
        assert_eq!(*InputKind::Terminal.typed(b"a"), *b"a");
        assert_eq!(*InputKind::Terminal.typed(b""), [4]);
        assert_eq!(*InputKind::Switchboard.typed(b"ab"), [0, 0, 0, 0, 2, b'a', b'b']);
        assert_eq!(*InputKind::Switchboard.typed(b""), [0, 0, 0, 0, 1, 4]);
        let long = vec![b'x'; FRAME_MAX + 1];
        assert_eq!(InputKind::Switchboard.typed(&long).len(), long.len() + 10);
        assert_eq!(size(2, 3), [1, 0, 0, 0, 8, 0, 0, 0, 2, 0, 0, 0, 3]);
    }
}
