//! A template process that waits, and whose copies become the first processes of containers.
//!
//! Executing a program costs far more than copying a process that runs it already: a new program is mapped and paged in
//! again, and the C library queries the processor, which in a virtual machine exits to the hypervisor a dozen times.
//! Copies are children of the template's parent, not of the template, so they are watched, and outlive it, like all
//! others.
//!
//! This file is the parent's side; `copy.rs` is the template's, `order.rs` the protocol between them, `hand_down.rs`
//! shares mapped memory with copies.

mod copy;
mod hand_down;
mod order;

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair, sockopt,
};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::cgroups::Entry;
use crate::procfs::tick;
use crate::spawn::{Streams, null_input, working_directory};
use crate::{Child, Launcher, Output, Program, ProgramFile, SpawnError, Spec, Step};
pub use copy::{Copy, CopyError, become_copy};
use order::{Group, Head};

/// Maximum number of open files that come with an order, more than a copy can need: three streams, a connection, a
/// directory, a group in each hierarchy, and systemd's slice in two.
const FILES_MAX: usize = 21;
/// Time limit for a copy to apply its order; see `FORKED_LIMIT` of the launcher.
const LIMIT: Duration = Duration::from_secs(30);

/// The reply to an order. The kernel adds the pid of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reply {
    /// From the copy: it has applied the order.
    Ready,
    /// A step has failed. The reply comes from the template if the step is [`Step::Clone`] and there is no copy;
    /// otherwise from the copy, which ends.
    Failed(u32, i32),
}

impl Reply {
    const BYTES: usize = 8;

    fn to_bytes(self) -> [u8; Reply::BYTES] {
        let (step, errno) = match self {
            Reply::Ready => (0_u32, 0),
            Reply::Failed(step, errno) => (step, errno),
        };
        let mut bytes = [0; Reply::BYTES];
        bytes[..4].copy_from_slice(&step.to_ne_bytes());
        bytes[4..].copy_from_slice(&errno.to_ne_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; Reply::BYTES]) -> Reply {
        let word = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        match u32::from_ne_bytes(word(0)) {
            0 => Reply::Ready,
            step => Reply::Failed(step, i32::from_ne_bytes(word(4))),
        }
    }
}

/// Creates a connection: two connected nonblocking sockets.
///
/// # Errors
/// If the system has no descriptor left.
pub fn line() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

/// The error when a copy could not be started.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The process could not be set up as the spec describes; no other way to start it would succeed either.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The template does not reply correctly: a new one is needed.
    #[error("The template of executors cannot be used any more")]
    Broken(#[source] io::Error),
}

/// A running template process. It ends when this is dropped; its copies keep running.
#[derive(Debug)]
pub struct Template {
    socket: OwnedFd,
    file: ProgramFile,
    child: Child,
    /// Standard input of the copies.
    null: Arc<OwnedFd>,
}

impl Template {
    /// Starts the program with arguments that make it call [`become_copy`]. The calling thread must live as long as the
    /// copies are to be children of its process.
    ///
    /// # Errors
    /// As [`Launcher::spawn`].
    pub fn start(file: &ProgramFile, argv: Vec<OsString>) -> Result<Template, SpawnError> {
        let program = argv.first().map_or_else(String::new, |word| word.to_string_lossy().into_owned());
        let failed = |source: io::Error| SpawnError::Failed { step: Step::Streams, program: program.clone(), source };
        let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (socket, theirs) = pair.map_err(|errno| failed(errno.into()))?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(LIMIT))
            .map_err(|errno| failed(errno.into()))?;
        sockopt::set_socket_passcred(&socket, true).map_err(|errno| failed(errno.into()))?;
        let mut spec = Spec::new(Program::Open { file: file.clone(), argv });
        spec.stdin = Some(Arc::new(theirs));
        (spec.stdout, spec.stderr) = (Output::Inherit, Output::Inherit);
        let null = Arc::new(null_input()?);
        let child = Launcher::posix().spawn(&spec)?;
        Ok(Template { socket, file: file.clone(), child, null })
    }

    /// Returns whether a copy can have the properties of the spec.
    pub fn suits(&self, spec: &Spec) -> bool {
        matches!(&spec.program, Program::Open { file, .. } if *file == self.file) && order::suits(spec)
    }

    /// Starts a process from a spec that it [suits](Template::suits), with its end of a connection. When this returns
    /// `Ok`, the process is in the state that the spec describes.
    ///
    /// # Errors
    /// See [`TemplateError`].
    pub fn spawn(&mut self, spec: &Spec, line: Option<OwnedFd>) -> Result<Child, TemplateError> {
        let streams = Streams::with_input(spec, &self.null)?;
        let group = match &spec.isolation.cgroup {
            None => Group::None,
            Some(Entry::Born(_)) => Group::Born,
            Some(Entry::Files(files)) => Group::Files(u8::try_from(files.len()).unwrap_or(u8::MAX)),
        };
        let mut files: Vec<BorrowedFd<'_>> = streams.each().to_vec();
        files.extend(line.as_ref().map(AsFd::as_fd));
        let directory = working_directory(spec);
        files.extend(directory.map(|directory| directory.as_fd()));
        match &spec.isolation.cgroup {
            None => {}
            Some(Entry::Born(directory)) => files.push(directory.as_fd()),
            Some(Entry::Files(list)) => files.extend(list.iter().map(|file| file.as_fd())),
        }
        let head = Head {
            line: line.is_some(),
            directory: directory.is_some(),
            group,
            namespaces: spec.isolation.namespaces.flags(),
        };
        let before = tick();
        self.order(&order::write(spec, head), &files).map_err(TemplateError::Broken)?;
        let child = self.child_of_order(spec)?;
        // Reading the start time from `/proc` costs more than the rest of this function, so it is derived from the
        // clock where that is exact.
        Ok(child.started_at(before.filter(|before| tick() == Some(*before))))
    }

    fn order(&self, bytes: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
        let mut beside = SendAncillaryBuffer::new(&mut room);
        if !beside.push(SendAncillaryMessage::ScmRights(files)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        rustix::io::retry_on_intr(|| sendmsg(&self.socket, &[IoSlice::new(bytes)], &mut beside, SendFlags::NOSIGNAL))?;
        Ok(())
    }

    fn child_of_order(&self, spec: &Spec) -> Result<Child, TemplateError> {
        let (pid, reply) = self.reply().map_err(TemplateError::Broken)?;
        if let Reply::Failed(step, errno) = reply
            && Step::from_number(step) == Step::Clone
        {
            return Err(failed(spec, step, errno).into());
        }
        let child = open(pid).map_err(TemplateError::Broken)?;
        match reply {
            Reply::Ready => Ok(child),
            Reply::Failed(step, errno) => {
                let _ = child.wait(None);
                Err(failed(spec, step, errno).into())
            }
        }
    }

    /// Receives a reply, and the pid of the process that sent it.
    fn reply(&self) -> io::Result<(Pid, Reply)> {
        let mut bytes = [0; Reply::BYTES];
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
        let mut beside = RecvAncillaryBuffer::new(&mut room);
        let received = rustix::io::retry_on_intr(|| {
            recvmsg(&self.socket, &mut [IoSliceMut::new(&mut bytes)], &mut beside, RecvFlags::CMSG_CLOEXEC)
        })?;
        if received.bytes != bytes.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let credentials = beside.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmCredentials(credentials) => Some(credentials),
            _ => None,
        });
        let sender = credentials.ok_or(io::ErrorKind::InvalidData)?.pid;
        Ok((sender, Reply::from_bytes(bytes)))
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        // The template would end on its own, but no other code reaps it.
        let _ = self.child.signal(libc::SIGKILL);
        let _ = self.child.wait(None);
    }
}

fn open(pid: Pid) -> io::Result<Child> {
    Ok(Child::new(pid.as_raw_nonzero().get(), pidfd_open(pid, PidfdFlags::empty())?))
}

fn failed(spec: &Spec, step: u32, errno: i32) -> SpawnError {
    let program = match &spec.program {
        Program::Open { argv, .. } | Program::Argv { argv, .. } => argv.first(),
        Program::Shell(_) => None,
    };
    let program = program.map_or_else(String::new, |word| word.to_string_lossy().into_owned());
    SpawnError::Failed { step: Step::from_number(step), program, source: io::Error::from_raw_os_error(errno) }
}
