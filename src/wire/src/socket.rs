//! A connection with or without TLS. It opens none and does no handshake.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

/// A connection with or without TLS. With TLS, bytes that were written may be buffered here: they are sent by
/// `poll_flush`, and every writer flushes when it has nothing more to write.
///
/// The end of a TLS connection without a `close_notify` is an end like any other: HTTP itself detects whether something
/// is missing.
#[derive(Debug)]
pub enum Socket {
    /// A connection without TLS.
    Plain(TcpStream),
    /// A connection with TLS, after the handshake.
    Tls(Box<TlsStream<Io>>),
}

impl From<TcpStream> for Socket {
    fn from(stream: TcpStream) -> Socket {
        Socket::Plain(stream)
    }
}

impl AsyncRead for Socket {
    #[inline]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Socket::Tls(stream) => match Pin::new(stream).poll_read(cx, buf) {
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
                polled => polled,
            },
        }
    }
}

impl AsyncWrite for Socket {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Plain(stream) => Pin::new(stream).poll_write(cx, data),
            Socket::Tls(stream) => Pin::new(stream).poll_write(cx, data),
        }
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
            Socket::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            // A TCP socket buffers nothing.
            Socket::Plain(_) => Poll::Ready(Ok(())),
            Socket::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Socket::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// The TCP connection beneath TLS, which moves from the runtime of the handshake to that of its server.
#[derive(Debug)]
pub struct Io(Place);

#[derive(Debug)]
enum Place {
    /// The connection is registered with the runtime that uses it.
    Attached(TcpStream),
    /// The connection is registered with no runtime, because it moves.
    Detached(std::net::TcpStream),
    /// The move of the connection has failed.
    Lost,
}

impl Io {
    pub(crate) fn new(stream: TcpStream) -> Io {
        Io(Place::Attached(stream))
    }

    /// Deregisters the connection from the current runtime.
    pub(crate) fn detach(&mut self) -> io::Result<()> {
        if let Place::Attached(stream) = std::mem::replace(&mut self.0, Place::Lost) {
            self.0 = Place::Detached(stream.into_std()?);
        }
        Ok(())
    }

    /// Registers the connection with the current runtime.
    pub(crate) fn attach(&mut self) -> io::Result<()> {
        if let Place::Detached(stream) = std::mem::replace(&mut self.0, Place::Lost) {
            self.0 = Place::Attached(TcpStream::from_std(stream)?);
        }
        Ok(())
    }

    fn with<T>(&mut self, action: impl FnOnce(Pin<&mut TcpStream>) -> Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match &mut self.0 {
            Place::Attached(stream) => action(Pin::new(stream)),
            Place::Detached(_) | Place::Lost => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }
}

impl AsyncRead for Io {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.get_mut().with(|stream| stream.poll_read(cx, buf))
    }
}

impl AsyncWrite for Io {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().with(|stream| stream.poll_write(cx, data))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().with(|stream| stream.poll_write_vectored(cx, parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().with(|stream| stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().with(|stream| stream.poll_shutdown(cx))
    }
}
