//! Binding, accepting and stopping. What happens on a connection is in `connection`.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinHandle;

use super::connection;
use super::request::last_value;
use super::response::RECORDIO;
use super::{HeaderMap, Request, Response};
use crate::Limits;
use crate::libprocess::MessageSink;

/// What answers requests.
pub trait Handler: Send + Sync + 'static {
    /// Answers one request. The next request of the connection is handled after this answer is sent. A request whose
    /// client has gone away is handled all the same; only if that takes more than ten seconds the future is dropped.
    fn handle(&self, request: Request) -> impl Future<Output = Response> + Send;

    /// Whether the handler wants the body of such a request in parts as they arrive, uncollected and unlimited.
    fn streams_body(&self, path: &str, headers: &HeaderMap) -> bool {
        let _ = path;
        last_value(headers, "content-type") == Some(RECORDIO)
    }
}

/// A bound server that does not serve yet: its address can be told to others first.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    limits: Limits,
}

/// What all connections of a server share.
pub(super) struct Shared<H, S> {
    pub(super) handler: Arc<H>,
    pub(super) sink: Arc<S>,
    pub(super) limits: Limits,
    /// Turns true when the server stops.
    pub(super) stopping: watch::Receiver<bool>,
}

impl Server {
    /// Binds an address; port 0 takes any free one. Call it inside a tokio runtime.
    ///
    /// # Errors
    /// The system's error: the address is in use, or is none of this machine's.
    pub fn bind(address: SocketAddr, limits: Limits) -> io::Result<Server> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        // A registration storm opens thousands of connections at once; the kernel lowers this to somaxconn.
        let listener = socket.listen(16 << 10)?;
        let address = listener.local_addr()?;
        Ok(Server { listener, address, limits })
    }

    /// The bound address, with its real port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves requests by `handler` and messages by `sink`, in tasks of the current runtime.
    pub fn serve<H: Handler, S: MessageSink>(self, handler: Arc<H>, sink: Arc<S>) -> Running {
        let (stop, stopping) = watch::channel(false);
        let grace = self.limits.stop;
        let permits = Arc::new(Semaphore::new(self.limits.connections.min(Semaphore::MAX_PERMITS)));
        let shared = Arc::new(Shared { handler, sink, limits: self.limits, stopping });
        let accepting = tokio::spawn(accept(self.listener, shared, permits.clone()));
        Running { address: self.address, stop, accepting, grace }
    }
}

async fn accept<H: Handler, S: MessageSink>(listener: TcpListener, shared: Arc<Shared<H, S>>, permits: Arc<Semaphore>) {
    let mut stopping = shared.stopping.clone();
    loop {
        let accepted = tokio::select! {
            _ = stopping.changed() => return,
            accepted = accept_one(&listener, &permits) => accepted,
        };
        match accepted {
            Ok((stream, peer, permit)) => {
                let _ = stream.set_nodelay(true);
                let shared = shared.clone();
                tokio::spawn(async move {
                    connection::serve(stream, peer, shared).await;
                    drop(permit);
                });
            }
            Err(error) => {
                // Out of file descriptors, mostly: connections that end meanwhile free some.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn accept_one(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = permits.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, permit))
}

/// A serving server. Dropping it stops it at once, except for answers under way.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    accepting: JoinHandle<()>,
    grace: Duration,
}

impl Running {
    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts no more, closes idle connections and streams, and waits (bounded by `Limits::stop`) for answers under way.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        let _ = self.accepting.await;
        // The connections hold receivers of their own; the channel is closed when the last one is gone.
        let _ = tokio::time::timeout(self.grace, self.stop.closed()).await;
    }
}
