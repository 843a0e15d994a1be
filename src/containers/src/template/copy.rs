//! The template's own side: it waits for orders, and each copy goes on from there as somebody else.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendFlags, recvmsg, sendmsg,
};

use super::order::{self, Group};
use super::{FILES_MAX, Reply};
use crate::cgroups::Entry;
use crate::spawn::{Prepared, copy_of_this, settle_copy};
use crate::{Output, Program, SpawnError, Spec, Step};

/// More than the kernel takes in one piece; what is not used costs nothing.
const ORDER_MAX: usize = 512 * 1024;

/// What the calling process has become: a process of its own, with the environment, folder, streams and all else that was
/// ordered.
#[derive(Debug)]
pub struct Copy {
    /// The words that it would have been started with.
    pub argv: Vec<OsString>,
    /// The line to whoever has ordered it, if there is one.
    pub line: Option<OwnedFd>,
}

/// The calling process cannot be a template.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// A copy has only one thread: what others were doing would stay half done for ever.
    #[error("A template must have one thread only")]
    Threads,
    /// Its standard input is not what [`Template::start`](super::Template::start) gives it, or failed.
    #[error("A template's orders cannot be read")]
    Orders(#[from] io::Error),
}

/// Makes the calling process a template until the process at the other end of its standard input is gone: then this returns
/// `None`. In each copy it returns what that has become.
///
/// # Errors
/// If it cannot be a template.
pub fn become_copy() -> Result<Option<Copy>, CopyError> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(CopyError::Threads);
    }
    // Asked once here, and known to all copies: in a virtual machine each question stops the machine.
    #[cfg(target_arch = "x86_64")]
    let _ = std::arch::is_x86_feature_detected!("avx2");
    // Standard input becomes the copy's.
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).map_err(io::Error::from)?;
    // Never given back: that would be work for each copy.
    let buffer = Box::leak(vec![0; ORDER_MAX].into_boxed_slice());
    loop {
        let (length, files) = receive(&socket, buffer)?;
        if length == 0 {
            return Ok(None);
        }
        if let Some(copy) = obey(&socket, &buffer[..length], files)? {
            return Ok(Some(copy));
        }
    }
}

fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut beside = RecvAncillaryBuffer::new(&mut room);
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut beside, RecvFlags::CMSG_CLOEXEC)
    })?;
    let rights = beside.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    Ok((received.bytes, rights.flatten().collect()))
}

/// Makes the copy; in it, what it is.
fn obey(socket: &OwnedFd, bytes: &[u8], files: Vec<OwnedFd>) -> io::Result<Option<Copy>> {
    let (spec, line) = complete(bytes, files)?;
    let prepared = match Prepared::new(&spec) {
        Ok(prepared) => prepared,
        Err(error) => return refuse(socket, &error).map(|()| None),
    };
    match copy_of_this(&prepared) {
        Err(error) => tell(socket, Reply::Failed(Step::Clone as u32, error.raw_os_error().unwrap_or(0)))?,
        Ok(Some(pid)) => tell(socket, Reply::Made(pid))?,
        Ok(None) => {
            if let Err((step, errno)) = settle_copy(prepared) {
                // Whether it is heard or not, there is nothing left to do.
                let _ = tell(socket, Reply::Failed(step, errno));
                std::process::exit(127);
            }
            tell(socket, Reply::Ready)?;
            let Program::Argv { argv, .. } = spec.program else { return Ok(None) };
            return Ok(Some(Copy { argv, line: line.and_then(Arc::into_inner) }));
        }
    }
    Ok(None)
}

/// The order with the files that came beside it, and the line.
fn complete(bytes: &[u8], files: Vec<OwnedFd>) -> io::Result<(Spec, Option<Arc<OwnedFd>>)> {
    let malformed = || io::Error::from(io::ErrorKind::InvalidData);
    let (head, mut spec) = order::read(bytes).map_err(|_| malformed())?;
    let mut files = files.into_iter().map(Arc::new);
    let mut next = || files.next().ok_or_else(malformed);
    spec.stdin = Some(next()?);
    spec.stdout = Output::Fd(next()?);
    spec.stderr = Output::Fd(next()?);
    let line = head.line.then(&mut next).transpose()?;
    spec.isolation.cgroup = match head.group {
        Group::None => None,
        Group::Born => Some(Entry::Born(next()?)),
        Group::Files(count) => Some(Entry::Files((0..count).map(|_| next()).collect::<io::Result<_>>()?)),
    };
    Ok((spec, line))
}

fn refuse(socket: &OwnedFd, error: &SpawnError) -> io::Result<()> {
    let errno = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    let errno = errno.and_then(io::Error::raw_os_error).unwrap_or(libc::EINVAL);
    tell(socket, Reply::Failed(Step::Clone as u32, errno))
}

fn tell(socket: &OwnedFd, reply: Reply) -> io::Result<()> {
    let mut nothing = SendAncillaryBuffer::new(&mut []);
    let bytes = reply.to_bytes();
    rustix::io::retry_on_intr(|| sendmsg(socket.as_fd(), &[IoSlice::new(&bytes)], &mut nothing, SendFlags::NOSIGNAL))?;
    Ok(())
}
