//! Connections of clients, with TLS where the address or the process's settings say so.

use std::io;
use std::sync::{Arc, OnceLock};

use tokio::net::TcpStream;

use super::{Address, Scheme};
use crate::Socket;
use crate::tls::{Role, Settings, Tls, TlsError};

type Configured = Result<Tls, Arc<TlsError>>;

/// The TLS of all clients of this process.
static CONFIGURED: OnceLock<Configured> = OnceLock::new();

/// Gives the clients of this process their TLS. Without this call, or if a client has connected before, they have that
/// of the environment.
pub fn configure(tls: Tls) {
    let _ = CONFIGURED.set(Ok(tls));
}

/// Whether connections to a server have TLS: by its address, else by the settings of this process.
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
    if address.scheme() == Scheme::Http {
        return by(None, address).await;
    }
    by(Some(tls()?), address).await
}

/// The TLS of the clients of this process.
///
/// # Errors
/// The settings of TLS cannot be used.
pub fn tls() -> io::Result<&'static Tls> {
    let from_environment = || -> Configured {
        let settings = Settings::from_environment().map_err(|error| Arc::new(error.into()))?;
        Tls::load(settings, Role::Client).map_err(Arc::new)
    };
    CONFIGURED.get_or_init(from_environment).as_ref().map_err(|error| io::Error::other(error.clone()))
}

/// Connects to a server with the TLS that is given, if its address needs any.
pub(super) async fn by(tls: Option<&Tls>, address: &Address) -> io::Result<Socket> {
    let (host, port) = (address.host(), address.port());
    match (tls, address.scheme()) {
        (Some(tls), Scheme::Https) => tls.connect(host, port, true).await,
        (Some(tls), Scheme::Configured) if tls.settings().enabled => tls.connect(host, port, false).await,
        _ => {
            let stream = TcpStream::connect((host, port)).await?;
            let _ = stream.set_nodelay(true);
            Ok(Socket::Plain(stream))
        }
    }
}
