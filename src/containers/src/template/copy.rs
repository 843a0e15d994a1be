//! The template's side: it waits for orders and forks. The child applies its spawn request after the fork.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendFlags, recvmsg, sendmsg,
};

use super::hand_down::{hand_down_program, leave_signal_stack, room_of_the_template};
use super::order::{self, Group, Head};
use super::{FILES_MAX, Reply};
use crate::cgroups::Entry;
use crate::spawn::{Copied, Prepared, copy_of_this, note_signals, settle_copy};
use crate::{Directory, Output, Program, SpawnError, Spec, Step, end_now};

/// Size of the buffer for an order: more than the kernel sends in one message. Unused pages cost nothing.
const ORDER_MAX: usize = 512 * 1024;
/// Size of the buffer that is enough for nearly all orders. It is beside the other memory that the template writes for
/// each copy: the kernel must copy each page that the template writes to, because the last copy shares it.
const ORDER_USUAL: usize = 2 * 1024;

/// The state of the calling process after the fork: a process of its own, with the requested environment, directory and
/// streams.
#[derive(Debug)]
pub struct Copy {
    /// The arguments with which the program would have been started.
    pub argv: Vec<OsString>,
    /// The connection to the process that ordered the copy, if it sent one.
    pub line: Option<OwnedFd>,
}

/// The error when the calling process cannot be a template.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The process has several threads. A copy has only one, so work of the others would never be completed.
    #[error("A template must have one thread only")]
    Threads,
    /// Standard input is not the socket of [`Template::start`](super::Template::start), or failed.
    #[error("A template's requests cannot be read")]
    Orders(#[from] io::Error),
}

/// Makes the calling process a template until the process at the other end of its standard input is gone; then returns
/// `None`. In each copy, returns the copy's state.
///
/// # Errors
/// If it cannot be a template.
pub fn become_copy() -> Result<Option<Copy>, CopyError> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(CopyError::Threads);
    }
    ask_for_all();
    // The copy replaces standard input by its own.
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).map_err(io::Error::from)?;
    let mut usual = [0; ORDER_USUAL];
    let rest = room_of_the_template(ORDER_MAX)?;
    loop {
        let (length, files) = receive(&socket, &mut usual, rest)?;
        if length == 0 {
            return Ok(None);
        }
        // A copy does not have the memory of `rest`, so a long order is put together before the fork.
        let long = length.checked_sub(usual.len()).map(|more| [&usual, &rest[..more]].concat());
        let order = long.as_deref().unwrap_or_else(|| &usual[..length]);
        if is_copy(&socket, order, &files)? {
            // The copy parses the order: the kernel need not copy pages that the template does not touch.
            return Ok(Some(obey(&socket, order, files)));
        }
    }
}

/// The open files that come with an order, on the stack: see [`ORDER_USUAL`].
type Files = [Option<OwnedFd>; FILES_MAX];

/// Does work once that each copy would do for itself.
fn ask_for_all() {
    // In a virtual machine each CPUID instruction exits to the hypervisor.
    #[cfg(target_arch = "x86_64")]
    let _ = std::arch::is_x86_feature_detected!("avx2");
    // Maps the page with the kernel's clock.
    let _ = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    leave_signal_stack();
    note_signals();
    hand_down_program();
}

fn receive(socket: &OwnedFd, usual: &mut [u8], rest: &mut [u8]) -> io::Result<(usize, Files)> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut beside = RecvAncillaryBuffer::new(&mut room);
    let received = rustix::io::retry_on_intr(|| {
        let mut parts = [IoSliceMut::new(usual), IoSliceMut::new(rest)];
        recvmsg(socket, &mut parts, &mut beside, RecvFlags::CMSG_CLOEXEC)
    })?;
    let rights = beside.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let mut all = rights.flatten();
    Ok((received.bytes, std::array::from_fn(|_| all.next())))
}

/// Creates the copy that an order asks for. Returns whether this process is the copy.
fn is_copy(socket: &OwnedFd, order: &[u8], files: &Files) -> io::Result<bool> {
    let head = Head::read(order).map_err(|_| malformed())?.0;
    // The group is the last file.
    let born = files.iter().flatten().last().filter(|_| head.group == Group::Born);
    match copy_of_this(head.namespaces, born.map(AsFd::as_fd)) {
        Ok(copied) => Ok(copied == Copied::Copy),
        Err(error) => {
            tell(socket, Reply::Failed(Step::Clone as u32, error.raw_os_error().unwrap_or(0)))?;
            Ok(false)
        }
    }
}

/// Applies the order in the copy. If that fails, reports the failure and ends the process.
fn obey(socket: &OwnedFd, order: &[u8], files: Files) -> Copy {
    match settle(order, files).and_then(|copy| tell(socket, Reply::Ready).map(|()| copy).map_err(|_| (0, 0))) {
        Ok(copy) => copy,
        Err((step, errno)) => {
            // The reply may be lost.
            let _ = tell(socket, Reply::Failed(step, errno));
            end_now(127)
        }
    }
}

/// Applies the order in the copy. Errors are the step's number and the errno.
fn settle(order: &[u8], files: Files) -> Result<Copy, (u32, i32)> {
    let unreadable = |errno| (Step::Streams as u32, errno);
    let (spec, line) = complete(order, files).map_err(|_| unreadable(libc::EBADMSG))?;
    settle_copy(Prepared::new(&spec).map_err(|error| unreadable(errno_of(&error)))?)?;
    let argv = match spec.program {
        Program::Argv { argv, .. } | Program::Open { argv, .. } => argv,
        Program::Shell(script) => vec![script],
    };
    Ok(Copy { argv, line: line.and_then(Arc::into_inner) })
}

/// Returns the spec of the order, with the files that came with it, and the connection.
fn complete(bytes: &[u8], files: Files) -> io::Result<(Spec, Option<Arc<OwnedFd>>)> {
    let (head, mut spec) = order::read(bytes).map_err(|_| malformed())?;
    // The program runs already, so it is not looked up.
    if let Program::Argv { file, .. } = &mut spec.program {
        *file = "/".into();
    }
    let mut files = files.into_iter().flatten().map(Arc::new);
    let mut next = || files.next().ok_or_else(malformed);
    spec.stdin = Some(next()?);
    spec.stdout = Output::Fd(next()?);
    spec.stderr = Output::Fd(next()?);
    let line = head.line.then(&mut next).transpose()?;
    if let Some(path) = spec.working_dir.clone().filter(|_| head.directory) {
        spec.directory = Some(Directory { path, fd: next()? });
    }
    spec.isolation.cgroup = match head.group {
        Group::None => None,
        Group::Born => Some(Entry::Born(next()?)),
        Group::Files(count) => Some(Entry::Files((0..count).map(|_| next()).collect::<io::Result<_>>()?)),
    };
    Ok((spec, line))
}

fn malformed() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

fn errno_of(error: &SpawnError) -> i32 {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    source.and_then(io::Error::raw_os_error).unwrap_or(libc::EINVAL)
}

fn tell(socket: &OwnedFd, reply: Reply) -> io::Result<()> {
    let mut nothing = SendAncillaryBuffer::new(&mut []);
    let bytes = reply.to_bytes();
    rustix::io::retry_on_intr(|| sendmsg(socket.as_fd(), &[IoSlice::new(&bytes)], &mut nothing, SendFlags::NOSIGNAL))?;
    Ok(())
}
