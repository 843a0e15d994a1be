//! TLS handshakes of both sides, and the handling of peers without TLS.
//!
//! Those of servers and of the libprocess network run on the thread of handshakes, those of other clients where they
//! are called.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};

use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use super::{HostnameValidation, Tls, thread};
use crate::socket::{Io, Socket};

/// The first byte of a TLS connection: the type of a record with a handshake.
const HANDSHAKE: u8 = 0x16;

/// The beginning of a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offered {
    /// The first byte of a TLS handshake.
    Tls,
    /// Any other byte.
    Plain,
    /// The end of the connection.
    Nothing,
}

/// Waits for the first byte of a connection, without consuming it.
pub(crate) async fn offered(stream: &TcpStream) -> io::Result<Offered> {
    let mut first = [0];
    Ok(match (stream.peek(&mut first).await?, first) {
        (0, _) => Offered::Nothing,
        (_, [HANDSHAKE]) => Offered::Tls,
        _ => Offered::Plain,
    })
}

impl Tls {
    /// Accepts a connection with the server's side of a handshake, on the thread of handshakes. It has no time limit.
    ///
    /// # Errors
    /// The system's error, or that of the handshake: also for a client without TLS.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<Socket> {
        let (tls, stream) = (self.clone(), stream.into_std()?);
        let accepted = thread::run(async move {
            let config = tls.server().map_err(io::Error::other)?;
            let stream = TcpStream::from_std(stream)?;
            let stream = TlsAcceptor::from(config).accept(Io::new(stream)).await?;
            Moving::of(TlsStream::Server(stream))
        });
        accepted.await?.arrive()
    }

    /// Connects to a libprocess peer, on the thread of handshakes.
    pub(crate) async fn connect_to_peer(&self, address: SocketAddr) -> io::Result<Socket> {
        let tls = self.clone();
        let connected = thread::run(async move {
            let name = ServerName::from(address.ip());
            let mut result = tls.handshake(TcpStream::connect(address).await?, name, false).await;
            if result.as_ref().err().is_some_and(is_other_name)
                && tls.settings().hostname_validation == HostnameValidation::Legacy
                && let Some(name) = name_of(address.ip()).await
            {
                result = tls.handshake(TcpStream::connect(address).await?, name, false).await;
            }
            match result {
                Ok(stream) => Moving::of(stream),
                Err(error) if tls.may_downgrade(&error) => {
                    tracing::debug!(peer = %address, %error, "the peer speaks no TLS: the connection is plain");
                    Moving::plain(TcpStream::connect(address).await?)
                }
                Err(error) => Err(error),
            }
        });
        connected.await?.arrive()
    }

    /// Secures a new connection to a host with the client's side of a handshake, in the calling task. If `is_asked`,
    /// the address has the scheme https: the certificate is verified unless that is turned off.
    pub(crate) async fn secure(&self, stream: TcpStream, host: &str, is_asked: bool) -> io::Result<Socket> {
        let name =
            ServerName::try_from(host.to_owned()).map_err(|error| io::Error::new(ErrorKind::InvalidInput, error))?;
        Ok(Socket::Tls(Box::new(self.handshake(stream, name, is_asked).await?)))
    }

    /// Returns whether a connection without TLS may follow this error of a handshake.
    pub(crate) fn may_downgrade(&self, error: &io::Error) -> bool {
        self.settings().support_downgrade && is_no_tls(error)
    }

    async fn handshake(&self, stream: TcpStream, name: ServerName<'static>, verify: bool) -> io::Result<TlsStream<Io>> {
        let config = self.client(verify).map_err(io::Error::other)?;
        let _ = stream.set_nodelay(true);
        Ok(TlsStream::Client(TlsConnector::from(config).connect(name, Io::new(stream)).await?))
    }
}

/// A connection that moves between two threads, each with its own driver for sockets.
enum Moving {
    Plain(std::net::TcpStream),
    Tls(Box<TlsStream<Io>>),
}

impl Moving {
    fn plain(stream: TcpStream) -> io::Result<Moving> {
        let _ = stream.set_nodelay(true);
        Ok(Moving::Plain(stream.into_std()?))
    }

    fn of(mut stream: TlsStream<Io>) -> io::Result<Moving> {
        stream.get_mut().0.detach()?;
        Ok(Moving::Tls(Box::new(stream)))
    }

    fn arrive(self) -> io::Result<Socket> {
        Ok(match self {
            Moving::Plain(stream) => Socket::Plain(TcpStream::from_std(stream)?),
            Moving::Tls(mut stream) => {
                stream.get_mut().0.attach()?;
                Socket::Tls(stream)
            }
        })
    }
}

/// Returns the library's error of a handshake.
fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

/// Returns whether a certificate was rejected only because it has another name.
fn is_other_name(error: &io::Error) -> bool {
    use CertificateError::{NotValidForName, NotValidForNameContext};
    let refused = |error: &rustls::Error| {
        matches!(error, rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. }))
    };
    tls_error(error).is_some_and(refused)
}

/// Returns whether the peer answered a handshake as a server without TLS does. A rejected certificate does not count.
fn is_no_tls(error: &io::Error) -> bool {
    match tls_error(error) {
        Some(rustls::Error::InvalidMessage(_)) => true,
        Some(rustls::Error::AlertReceived(alert)) => *alert == AlertDescription::UnexpectedMessage,
        Some(_) => false,
        None => matches!(
            error.kind(),
            ErrorKind::UnexpectedEof
                | ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe
        ),
    }
}

/// Returns the name of an address in DNS.
async fn name_of(ip: IpAddr) -> Option<ServerName<'static>> {
    let found = tokio::task::spawn_blocking(move || dns_lookup::lookup_addr(&ip)).await;
    ServerName::try_from(found.ok()?.ok()?).ok()
}
