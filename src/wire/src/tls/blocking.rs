//! A client's connection for threads that block: plain, or with TLS. It chooses no address and knows no protocol.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::ClientConnection;
use rustls::pki_types::ServerName;

use super::Tls;
use crate::sync::lock;

/// Number of bytes that are received at once.
const PIECE: usize = 16 << 10;

/// A connection of a client for threads that block. Clones share it: one thread may read while others write.
///
/// As with [`Socket`](crate::Socket), the end of a TLS connection without a `close_notify` is an end like any other.
#[derive(Clone, Debug)]
pub struct BlockingStream(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    socket: TcpStream,
    secure: Option<Secure>,
}

/// TLS of a connection. No thread waits for the socket while it holds the session, so that one can read while another
/// one waits to write.
#[derive(Debug)]
struct Secure {
    session: Mutex<Session>,
    /// Bytes that are sent next, in the order of the session; locked while they are sent.
    sending: Mutex<Vec<u8>>,
}

/// State of TLS, and decrypted bytes that have not been read.
#[derive(Debug)]
struct Session {
    connection: ClientConnection,
    received: Vec<u8>,
    /// Number of these bytes that have been read.
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

    /// Connects with TLS. The server must have a certificate for `host`, unless the settings turn verification off.
    /// Each step takes at most this time.
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
        let mut session = Session { connection, received: Vec::new(), read: 0 };
        // Bytes that arrived with the end of the handshake.
        session.decrypt()?;
        let secure = Some(Secure { session: Mutex::new(session), sending: Mutex::default() });
        Ok(BlockingStream(Arc::new(Inner { socket, secure })))
    }

    /// Sets the longest time that a read waits for bytes; `None`: no limit.
    ///
    /// # Errors
    /// The system's error.
    pub fn set_read_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        self.0.socket.set_read_timeout(time)
    }

    /// Sets the longest time that a write waits for space; `None`: no limit.
    ///
    /// # Errors
    /// The system's error.
    pub fn set_write_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        self.0.socket.set_write_timeout(time)
    }
}

impl Session {
    /// Handles bytes that the socket has received; an empty slice is its end.
    fn receive(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        loop {
            self.connection.read_tls(&mut bytes)?;
            self.connection.process_new_packets().map_err(io::Error::other)?;
            self.decrypt()?;
            if bytes.is_empty() {
                return Ok(());
            }
        }
    }

    /// Stores bytes that the connection has decrypted.
    fn decrypt(&mut self) -> io::Result<()> {
        let mut piece = [0; PIECE];
        loop {
            match self.connection.reader().read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(length) => self.received.extend_from_slice(&piece[..length]),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::UnexpectedEof) => {
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns decrypted bytes that have not been read, as many as fit in the buffer.
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

    /// Encrypts as many bytes as the session accepts, and appends what must be sent. Returns the number of bytes.
    fn encrypt(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<usize> {
        let length = self.connection.writer().write(bytes)?;
        while self.connection.wants_write() {
            self.connection.write_tls(out)?;
        }
        Ok(length)
    }
}

impl Read for &BlockingStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut socket = &self.0.socket;
        let Some(secure) = &self.0.secure else { return socket.read(buffer) };
        let mut piece = [0; PIECE];
        loop {
            let read = lock(&secure.session).take(buffer);
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let length = socket.read(&mut piece)?;
            // A response of the protocol itself, such as that to new keys, is sent with the next write.
            let mut session = lock(&secure.session);
            session.receive(&piece[..length])?;
            if length == 0 {
                return Ok(session.take(buffer));
            }
        }
    }
}

impl Write for &BlockingStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut socket = &self.0.socket;
        let Some(secure) = &self.0.secure else { return socket.write(bytes) };
        let mut sending = lock(&secure.sending);
        let length = lock(&secure.session).encrypt(bytes, &mut sending)?;
        let sent = socket.write_all(&sending);
        sending.clear();
        sent.map(|()| length)
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
