//! Connects a framework with its own workers, with TLS where the framework's environment turns it on. It sends nothing
//! itself.
//!
//! The address that workers receive states whether the framework takes TLS: `tls://host:port`, or `host:port`. A
//! framework with TLS refuses plain connections, whether or not its API supports downgrade. Workers verify its
//! certificate by their own environment (`LIBPROCESS_SSL_CA_FILE`), which for tasks is that of their agent.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use tokio::net::TcpStream;
use wire::Socket;
use wire::tls::Tls;

pub use wire::tls::BlockingStream;

/// Prefix of the address of a framework with TLS.
const SCHEME: &str = "tls://";

/// Accepts the connections of workers.
#[derive(Clone, Debug)]
pub struct Acceptor(Option<Tls>);

impl Acceptor {
    /// Creates an acceptor that takes TLS if the environment turns it on.
    ///
    /// # Errors
    /// The TLS settings are invalid.
    pub fn from_environment() -> io::Result<Acceptor> {
        super::api::tls().map(Acceptor).map_err(io::Error::other)
    }

    /// Returns the address in the form that workers pass to [`connect`].
    pub fn address(&self, address: SocketAddr) -> String {
        let scheme = if self.0.is_some() { SCHEME } else { "" };
        format!("{scheme}{address}")
    }

    /// Accepts the connection of a worker, and does the handshake if it has TLS. It has no time limit.
    ///
    /// # Errors
    /// The TLS handshake failed, or an error of the system.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<Socket> {
        stream.set_nodelay(true)?;
        match &self.0 {
            Some(tls) => tls.accept(stream).await,
            None => Ok(stream.into()),
        }
    }
}

/// Connects a worker to its framework, at one of the addresses of its host name. Each step takes at most `within`.
///
/// # Errors
/// The system's error for the last address, or that of the handshake.
pub fn connect(framework: &str, within: Duration) -> io::Result<BlockingStream> {
    let (tls, place) = match framework.strip_prefix(SCHEME) {
        Some(place) => (Some(wire::client::tls()?), place),
        None => (None, framework),
    };
    let host = place.rsplit_once(':').map_or(place, |(host, _)| host);
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let mut failure = io::Error::other("the name has no address");
    for address in place.to_socket_addrs()? {
        let connected = match tls {
            Some(tls) => BlockingStream::connect_with_tls(tls, host, &address, within),
            None => BlockingStream::connect(&address, within),
        };
        match connected {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}
