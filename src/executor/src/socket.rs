//! A non-blocking connection to the agent: TCP, with or without TLS, or unix.
//!
//! It transfers bytes; `link.rs` and `exchange.rs` interpret them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

use crate::environment::Endpoint;
use crate::tls::Tls;

/// Maximum number of bytes of one read. Events have a few hundred bytes to a few thousand; each page of the buffer that
/// a new process touches costs as much as another read.
const READ_BYTES: usize = 2 * 1024;

/// A stream socket and the bytes that are not written to it yet.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
    connecting: bool,
    out: Vec<u8>,
    tls: Option<Tls>,
}

impl Socket {
    /// Starts to connect.
    pub(crate) fn open(endpoint: &Endpoint) -> io::Result<Socket> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (fd, connected) = match endpoint {
            Endpoint::Tcp(address) | Endpoint::Tls(address) => {
                let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
                let fd = net::socket_with(family, SocketType::STREAM, flags, None)?;
                // Calls are small and written as a whole: waiting for more data would only delay them.
                sockopt::set_tcp_nodelay(&fd, true)?;
                let connected = net::connect(&fd, address);
                (fd, connected)
            }
            Endpoint::Unix(path) => {
                let fd = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
                let connected = net::connect(&fd, &net::SocketAddrUnix::new(path.as_path())?);
                (fd, connected)
            }
        };
        let connecting = match connected {
            Ok(()) => false,
            Err(rustix::io::Errno::INPROGRESS) => true,
            Err(errno) => return Err(errno.into()),
        };
        let tls = match endpoint {
            Endpoint::Tls(address) => Some(Tls::new(address.ip())?),
            Endpoint::Tcp(_) | Endpoint::Unix(_) => None,
        };
        Ok(Socket { fd, connecting, out: Vec::new(), tls })
    }

    /// Returns a socket for an existing non-blocking connection.
    pub(crate) fn connected(fd: OwnedFd) -> Socket {
        Socket { fd, connecting: false, out: Vec::new(), tls: None }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Returns the events to wait for.
    pub(crate) fn interest(&self) -> PollFlags {
        if self.connecting || !self.out.is_empty() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN }
    }

    /// Sends `bytes` now, or as soon as the socket is writable.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) => tls.write(bytes)?,
            None => self.out.extend_from_slice(bytes),
        }
        self.flush()
    }

    /// Handles the result of a wait: continues to send, and passes received bytes to `sink`. Returns `Ok(false)` if the
    /// peer has closed.
    pub(crate) fn ready(&mut self, found: PollFlags, sink: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        if self.connecting && found.intersects(PollFlags::OUT | PollFlags::ERR | PollFlags::HUP) {
            sockopt::socket_error(&self.fd)??;
            self.connecting = false;
        }
        if found.contains(PollFlags::OUT) {
            self.flush()?;
        }
        if self.connecting || !found.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            return Ok(true);
        }
        let mut buffer = [0; READ_BYTES];
        loop {
            match net::recv(&self.fd, &mut buffer, RecvFlags::empty()) {
                Ok((0, _)) => return Ok(false),
                Ok((length, _)) => {
                    match &mut self.tls {
                        Some(tls) => {
                            let is_open = tls.receive(&buffer[..length], sink)?;
                            // The TLS handshake may have to send something.
                            self.flush()?;
                            if !is_open {
                                return Ok(false);
                            }
                        }
                        None => sink(&buffer[..length]),
                    }
                    // A short read has emptied the socket; if not, the next wait returns at once.
                    if length < buffer.len() {
                        return Ok(true);
                    }
                }
                Err(rustix::io::Errno::AGAIN) => return Ok(true),
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.connecting {
            return Ok(());
        }
        if let Some(tls) = &mut self.tls {
            tls.take(&mut self.out)?;
        }
        let mut sent = 0;
        while sent < self.out.len() {
            match net::send(&self.fd, &self.out[sent..], SendFlags::NOSIGNAL) {
                Ok(length) => sent += length,
                Err(rustix::io::Errno::AGAIN) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        self.out.drain(..sent);
        Ok(())
    }
}
