//! The HTTP server: binds, accepts connections and stops. `connection.rs` serves each connection.

use std::fs::File;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use super::collect::Bodies;
use super::response::RECORDIO;
use super::{Request, Response, connection, transport};
use crate::libprocess::MessageSink;
use crate::tls::Tls;
use crate::{Connections, Limits, Socket};

/// Pause of a listener that cannot accept a connection.
const PAUSE: Duration = Duration::from_millis(50);

/// A handler of HTTP requests.
pub trait Handler: Send + Sync + 'static {
    /// Checks a request by its head, before its body is read, and returns how the body is read. Sets the principal of a
    /// request that has one.
    ///
    /// # Errors
    /// The response to a request that is refused whatever its body is.
    fn admit(&self, request: &mut Request) -> Result<BodyRule, Box<Response>> {
        Ok(match request.header("content-type") {
            Some(RECORDIO) => BodyRule::Stream,
            _ => BodyRule::Whole { limit: usize::MAX },
        })
    }

    /// Handles one request, and returns its response. The next request of the connection is handled after this response
    /// is sent.
    ///
    /// A request whose client has disconnected is handled anyway; only if that takes more than ten seconds the future
    /// is dropped.
    fn handle(&self, request: Request) -> impl Future<Output = Response> + Send;
}

/// How the body of a request is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyRule {
    /// The body is read as a whole, and decompressed.
    Whole {
        /// Maximum length in bytes; [`Limits::body`] applies as well.
        limit: usize,
    },
    /// The body is read in parts as they arrive, without a limit.
    Stream,
}

/// A server that is bound but does not serve yet, so that its address can be published first.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    limits: Limits,
    connections: Connections,
    tls: Option<Tls>,
}

/// State that all connections of a server share.
pub(super) struct Shared<H, S> {
    pub(super) handler: Arc<H>,
    pub(super) sink: Arc<S>,
    pub(super) limits: Limits,
    pub(super) bodies: Bodies,
    pub(super) connections: Connections,
    pub(super) tls: Option<Tls>,
    /// Becomes true when the server stops.
    pub(super) stopping: watch::Receiver<bool>,
}

impl Server {
    /// Binds an address; port 0 selects a free one. Needs a tokio runtime.
    ///
    /// # Errors
    /// The system's error: the address is in use, or is not one of this machine.
    pub fn bind(address: SocketAddr, limits: Limits) -> io::Result<Server> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        keep_alive(&socket)?;
        // Accepted connections inherit both sizes.
        if let Some(bytes) = limits.send_buffer {
            socket.set_send_buffer_size(bytes)?;
        }
        if let Some(bytes) = limits.unsent {
            SockRef::from(&socket).set_tcp_notsent_lowat(bytes)?;
        }
        socket.bind(address)?;
        // Thousands of agents may connect at once to register; the kernel lowers the number to somaxconn.
        let listener = socket.listen(16 << 10)?;
        let address = listener.local_addr()?;
        let connections = Connections::new(limits.connections, "raise the server's limit of connections");
        Ok(Server { listener, address, limits, connections, tls: None })
    }

    /// Sets the table in which the server's connections count, together with others of this process.
    #[must_use]
    pub fn with_connections(self, connections: Connections) -> Server {
        Server { connections, ..self }
    }

    /// Accepts TLS on the server's port, if `tls` is set. Plain connections are accepted too if
    /// [`support_downgrade`](crate::tls::Settings::support_downgrade) is set, and answered with an error otherwise.
    #[must_use]
    pub fn with_tls(self, tls: Option<Tls>) -> Server {
        Server { tls, ..self }
    }

    /// Returns the bound address, with its real port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves requests by `handler` and messages by `sink`, in tasks of the current runtime.
    pub fn serve<H: Handler, S: MessageSink>(self, handler: Arc<H>, sink: Arc<S>) -> Running {
        let (stop, stopping) = watch::channel(false);
        let (grace, address, listener) = (self.limits.stop, self.address, self.listener);
        let bodies = Bodies::new(self.limits.bodies);
        let (limits, connections, tls) = (self.limits, self.connections, self.tls);
        let shared = Arc::new(Shared { handler, sink, limits, bodies, connections, tls, stopping });
        let accepting = tokio::spawn(accept(listener, shared));
        Running { address, stop, accepting, grace }
    }
}

/// Enables TCP keep-alive, which accepted sockets inherit: the kernel then closes connections to hosts that have
/// disappeared without closing them. Until then, a process that returns at the address of such a host cannot send
/// messages for it (docs/mesos/libprocess.md).
fn keep_alive(socket: &TcpSocket) -> io::Result<()> {
    socket.set_keepalive(true)?;
    setsockopt(socket, sockopt::TcpKeepIdle, &30)?;
    setsockopt(socket, sockopt::TcpKeepInterval, &10)?;
    setsockopt(socket, sockopt::TcpKeepCount, &3)?;
    Ok(())
}

async fn accept<H: Handler, S: MessageSink>(listener: TcpListener, shared: Arc<Shared<H, S>>) {
    let mut stopping = shared.stopping.clone();
    let mut check = tokio::time::interval(shared.limits.check_interval());
    check.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut spare = Spare::open();
    loop {
        let accepted = tokio::select! {
            _ = stopping.changed() => return,
            _ = check.tick() => {
                shared.connections.close_timed_out();
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => take(stream, peer, &shared).await,
            Err(error) if is_out_of_descriptors(&error) => spare.take_one(&listener, &shared, &error).await,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Serves a connection if it is admitted, and closes it otherwise.
async fn take<H: Handler, S: MessageSink>(stream: TcpStream, peer: SocketAddr, shared: &Arc<Shared<H, S>>) {
    if let Some(slot) = shared.connections.admit(peer.ip()) {
        let _ = stream.set_nodelay(true);
        match &shared.tls {
            Some(_) => tokio::spawn(transport::serve(stream, peer, slot, shared.clone())),
            None => tokio::spawn(connection::serve(Socket::Plain(stream), peer, slot, shared.clone())),
        };
    }
    // A connection that was closed to admit this one is still open. Its task must run before the next one is admitted.
    if shared.connections.is_closing() {
        tokio::task::yield_now().await;
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    [Errno::EMFILE, Errno::ENFILE].iter().any(|errno| error.raw_os_error() == Some(*errno as i32))
}

/// A descriptor in reserve. When no other is left, a new connection takes its place, to be served instead of an idle
/// one or to be closed. Otherwise it would wait in the kernel's queue, and the listener would report it without end.
struct Spare(Option<File>);

impl Spare {
    fn open() -> Spare {
        Spare(File::open("/dev/null").ok())
    }

    /// Accepts a connection if one waits: the system reports missing descriptors even if none does.
    async fn take_one<H: Handler, S: MessageSink>(
        &mut self,
        listener: &TcpListener,
        shared: &Arc<Shared<H, S>>,
        error: &io::Error,
    ) {
        self.0 = None;
        let accepted = poll_fn(|cx| Poll::Ready(listener.poll_accept(cx))).await;
        let admitted = match accepted {
            Poll::Pending => true,
            Poll::Ready(Ok((stream, peer))) => {
                let admitted = shared.connections.displace();
                if admitted {
                    take(stream, peer, shared).await;
                } else {
                    let why = format!("the system has no descriptor for another one ({error})");
                    shared.connections.refused(&format!("from {}", peer.ip()), &why);
                }
                admitted
            }
            // The spare descriptor is in use already.
            Poll::Ready(Err(_)) => shared.connections.displace(),
        };
        tokio::task::yield_now().await;
        *self = Spare::open();
        if !admitted {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// A running server. Dropping it stops it at once, except for responses in progress.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    accepting: JoinHandle<()>,
    grace: Duration,
}

impl Running {
    /// Returns the bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the server: accepts no more connections, closes idle ones and streams, and waits for responses in
    /// progress, at most for [`Limits::stop`].
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        let _ = self.accepting.await;
        // The connections hold receivers of their own; the channel is closed when the last one is dropped.
        let _ = tokio::time::timeout(self.grace, self.stop.closed()).await;
    }
}
