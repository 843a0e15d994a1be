//! A client's connection for threads that wait: plain, or with TLS. It chooses no address and knows no protocol.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::ClientConnection;
use rustls::pki_types::ServerName;

use super::Tls;
use crate::sync::lock;

/// Bytes that are received at once.
const PIECE: usize = 16 << 10;

/// A connection. Clones share it: one thread may read while others write.
///
/// As with [`Socket`](crate::Socket), the end of a TLS connection without a `close_notify` is an end like any other.
#[derive(Clone, Debug)]
pub struct BlockingStream(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    socket: TcpStream,
    secure: Option<Mutex<Secure>>,
}

/// A connection's TLS, and what has been received and not been read.
#[derive(Debug)]
struct Secure {
    connection: ClientConnection,
    received: Vec<u8>,
    /// How much of that has been read.
    read: usize,
}

impl BlockingStream {
    /// Connects without TLS, within this time.
    ///
    /// # Errors
    /// The system's error.
    pub fn connect(address: &SocketAddr, within: Duration) -> io::Result<BlockingStream> {
        let socket = TcpStream::connect_timeout(address, within)?;
        socket.set_nodelay(true)?;
        Ok(BlockingStream(Arc::new(Inner { socket, secure: None })))
    }

    /// Connects with TLS. The server must have a certificate for `host`, unless the settings turn verification off. Each
    /// step takes at most this time.
    ///
    /// # Errors
    /// The system's error, or that of the handshake.
    pub fn connect_with_tls(
        tls: &Tls,
        host: &str,
        address: &SocketAddr,
        within: Duration,
    ) -> io::Result<BlockingStream> {
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let config = tls.client(true).map_err(io::Error::other)?;
        let mut connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
        let mut socket = TcpStream::connect_timeout(address, within)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(within))?;
        socket.set_write_timeout(Some(within))?;
        while connection.is_handshaking() {
            connection.complete_io(&mut socket)?;
        }
        socket.set_read_timeout(None)?;
        socket.set_write_timeout(None)?;
        let secure = Secure { connection, received: Vec::new(), read: 0 };
        Ok(BlockingStream(Arc::new(Inner { socket, secure: Some(Mutex::new(secure)) })))
    }

    /// The longest time that a read waits for bytes; without end if none is given.
    ///
    /// # Errors
    /// The system's error.
    pub fn set_read_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        self.0.socket.set_read_timeout(time)
    }

    /// The longest time that a write waits for room; without end if none is given.
    ///
    /// # Errors
    /// The system's error.
    pub fn set_write_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        self.0.socket.set_write_timeout(time)
    }
}

impl Secure {
    /// Takes bytes that the socket has received; none are its end.
    fn receive(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        loop {
            self.connection.read_tls(&mut bytes)?;
            self.connection.process_new_packets().map_err(io::Error::other)?;
            let mut piece = [0; PIECE];
            loop {
                match self.connection.reader().read(&mut piece) {
                    Ok(0) => break,
                    Ok(length) => self.received.extend_from_slice(&piece[..length]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                    Err(error) => return Err(error),
                }
            }
            if bytes.is_empty() {
                return Ok(());
            }
        }
    }

    /// What has been received and not been read, as far as it fits.
    fn take(&mut self, buffer: &mut [u8]) -> usize {
        let left = self.received.get(self.read..).unwrap_or_default();
        let length = left.len().min(buffer.len());
        buffer[..length].copy_from_slice(&left[..length]);
        self.read += length;
        if self.read == self.received.len() {
            self.received.clear();
            self.read = 0;
        }
        length
    }

    fn send(&mut self, mut socket: &TcpStream) -> io::Result<()> {
        while self.connection.wants_write() {
            self.connection.write_tls(&mut socket)?;
        }
        Ok(())
    }
}

impl Read for &BlockingStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut socket = &self.0.socket;
        let Some(secure) = &self.0.secure else { return socket.read(buffer) };
        let mut piece = [0; PIECE];
        loop {
            let read = lock(secure).take(buffer);
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            // Others write meanwhile.
            let length = socket.read(&mut piece)?;
            let mut secure = lock(secure);
            secure.receive(&piece[..length])?;
            secure.send(socket)?;
            if length == 0 {
                return Ok(secure.take(buffer));
            }
        }
    }
}

impl Write for &BlockingStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut socket = &self.0.socket;
        let Some(secure) = &self.0.secure else { return socket.write(bytes) };
        let mut secure = lock(secure);
        let length = secure.connection.writer().write(bytes)?;
        secure.send(socket)?;
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for BlockingStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }
}

impl Write for BlockingStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
