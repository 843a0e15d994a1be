//! Tunnels between this process and a master, with TLS or without: the load uses plain connections, and the master
//! those that are measured. Both kinds of tunnels split bytes alike.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Result, ensure};
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional_with_sizes};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use wire::tls::{Role, Settings, Tls};

use super::daemon::binary;

/// Number of bytes that are copied at once: as many as the load writes.
const PIECE: usize = 64 << 10;

/// Certificates of 127.0.0.1, for the master and for this process.
pub struct Certificates(PathBuf);

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Certificates {
    /// Creates the certificates.
    ///
    /// # Errors
    /// `tepui tls init` has failed.
    pub fn make() -> Result<Certificates> {
        let made = Certificates(std::env::temp_dir().join(format!("tepui-bench-tls-{}", std::process::id())));
        let output = Command::new(binary()).args(["tls", "init", "--host=127.0.0.1"]).arg(&made.0).output()?;
        ensure!(output.status.success(), "tepui tls init: {}", String::from_utf8_lossy(&output.stderr));
        Ok(made)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns the flags of a master with these certificates.
    pub fn flags(&self) -> Vec<String> {
        let file = |flag: &str, name: &str| format!("--tls_{flag}={}", self.file(name).display());
        vec![
            file("cert_file", "127.0.0.1.pem"),
            file("key_file", "127.0.0.1-key.pem"),
            file("ca_file", "ca.pem"),
            "--tls_verify_server_cert".to_owned(),
        ]
    }

    fn tls(&self) -> Result<Tls> {
        let (cert_file, key_file) = (Some(self.file("127.0.0.1.pem")), Some(self.file("127.0.0.1-key.pem")));
        let settings =
            Settings { enabled: true, cert_file, key_file, ca_file: Some(self.file("ca.pem")), ..Settings::default() };
        Ok(Tls::load(settings, Role::Server)?)
    }
}

/// Running tunnels; they end when this is dropped.
pub struct Tunnels {
    runtime: Runtime,
    tls: Option<Arc<Tls>>,
}

impl Tunnels {
    /// Creates tunnels, with TLS if there are certificates.
    ///
    /// # Errors
    /// The certificates cannot be read.
    pub fn new(certificates: Option<&Certificates>) -> Result<Tunnels> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let tls = certificates.map(Certificates::tls).transpose()?.map(Arc::new);
        Ok(Tunnels { runtime, tls })
    }

    /// Returns an address at which plain connections reach the master.
    ///
    /// # Errors
    /// No socket.
    pub fn to_master(&self, master: SocketAddrV4) -> Result<SocketAddrV4> {
        let tls = self.tls.clone();
        self.listen(move |stream| {
            let tls = tls.clone();
            async move {
                let address = match &tls {
                    Some(_) => format!("https://{master}"),
                    None => format!("http://{master}"),
                };
                if let Some(tls) = &tls {
                    wire::client::configure((**tls).clone());
                }
                let address = address.parse().map_err(std::io::Error::other)?;
                join(stream, wire::client::connect(&address).await?).await
            }
        })
    }

    /// Returns a port at which the master reaches a port of this process.
    ///
    /// # Errors
    /// No socket.
    pub fn reached_at(&self, port: u16) -> Result<u16> {
        let tls = self.tls.clone();
        let address = self.listen(move |stream| {
            let tls = tls.clone();
            async move {
                let inner = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
                inner.set_nodelay(true)?;
                match tls {
                    Some(tls) => join(inner, tls.accept(stream).await?).await,
                    None => join(inner, stream).await,
                }
            }
        })?;
        Ok(address.port())
    }

    fn listen<F: Future<Output = std::io::Result<()>> + Send + 'static>(
        &self,
        serve: impl Fn(TcpStream) -> F + Send + 'static,
    ) -> Result<SocketAddrV4> {
        let listener = self.runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let port = listener.local_addr()?.port();
        self.runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = stream.set_nodelay(true);
                // A connection that fails is closed on both sides.
                tokio::spawn(serve(stream));
            }
        });
        Ok(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))
    }
}

/// Copies in both directions until both sides have ended.
async fn join(mut one: TcpStream, mut two: impl AsyncRead + AsyncWrite + Unpin) -> std::io::Result<()> {
    copy_bidirectional_with_sizes(&mut one, &mut two, PIECE, PIECE).await.map(drop)
}
