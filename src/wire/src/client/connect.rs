//! Opens connections of clients, with TLS where the address or the process's settings say so.

use std::io;
use std::sync::{Arc, OnceLock};

use tokio::net::{TcpSocket, TcpStream, lookup_host};

use super::{Address, Scheme};
use crate::Socket;
use crate::tls::{Role, Settings, Tls, TlsError};

type Configured = Result<Tls, Arc<TlsError>>;

/// TLS configuration of all clients of this process.
static CONFIGURED: OnceLock<Configured> = OnceLock::new();

/// Sets the TLS configuration of the clients of this process. Without this call, or if a client has connected before,
/// they use that of the environment.
pub fn configure(tls: Tls) {
    let _ = CONFIGURED.set(Ok(tls));
}

/// Returns whether connections to a server use TLS: by its address, else by the settings of this process.
pub fn is_tls(address: &Address) -> bool {
    match address.scheme() {
        Scheme::Http => false,
        Scheme::Https => true,
        Scheme::Configured => match CONFIGURED.get() {
            Some(configured) => configured.as_ref().is_ok_and(|tls| tls.settings().enabled),
            None => Settings::from_environment().is_ok_and(|settings| settings.enabled),
        },
    }
}

/// Connects to a server.
///
/// # Errors
/// The system's error, that of the handshake, or that the settings of TLS cannot be used.
pub async fn connect(address: &Address) -> io::Result<Socket> {
    connect_buffered(address, None).await
}

/// Connects to a server, with a receive buffer of this many bytes in the kernel; without a number, the kernel chooses.
///
/// # Errors
/// As [`connect`].
pub async fn connect_buffered(address: &Address, receive_buffer: Option<u32>) -> io::Result<Socket> {
    let tls = if address.scheme() == Scheme::Http { None } else { Some(tls()?) };
    by(tls, address, receive_buffer).await
}

/// Returns the TLS configuration of the clients of this process.
///
/// # Errors
/// The TLS settings cannot be used.
pub fn tls() -> io::Result<&'static Tls> {
    let from_environment = || -> Configured {
        let settings = Settings::from_environment().map_err(|error| Arc::new(error.into()))?;
        Tls::load(settings, Role::Client).map_err(Arc::new)
    };
    CONFIGURED.get_or_init(from_environment).as_ref().map_err(|error| io::Error::other(error.clone()))
}

/// Connects to a server with this TLS configuration, if its address needs one.
pub(super) async fn by(tls: Option<&Tls>, address: &Address, receive_buffer: Option<u32>) -> io::Result<Socket> {
    let is_asked = address.scheme() == Scheme::Https;
    let tls = tls.filter(|tls| is_asked || (address.scheme() == Scheme::Configured && tls.settings().enabled));
    let stream = open(address, receive_buffer).await?;
    let Some(tls) = tls else { return Ok(Socket::Plain(stream)) };
    match tls.secure(stream, address.host(), is_asked).await {
        Err(error) if !is_asked && tls.may_downgrade(&error) => Ok(Socket::Plain(open(address, receive_buffer).await?)),
        secured => secured,
    }
}

/// Opens a TCP connection to the first of the host's addresses that accepts one.
async fn open(address: &Address, receive_buffer: Option<u32>) -> io::Result<TcpStream> {
    let place = (address.host(), address.port());
    let Some(bytes) = receive_buffer else {
        let stream = TcpStream::connect(place).await?;
        let _ = stream.set_nodelay(true);
        return Ok(stream);
    };
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for to in lookup_host(place).await? {
        let socket = if to.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // The size is set before the connection is made, because its window is negotiated then.
        socket.set_recv_buffer_size(bytes)?;
        let _ = socket.set_nodelay(true);
        match socket.connect(to).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}
