//! Tests a server whose process has no descriptors left. It is alone in its program, because the limit of open files
//! applies to the process.

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Notify;
use wire::http::{Handler, Request, Response, Server};
use wire::libprocess::NoMessages;
use wire::{Connections, Limits};

const PATIENCE: Duration = Duration::from_secs(180);
/// Number of descriptors that are left for the server's connections.
const LEFT: u64 = 10;
const CLIENTS: usize = 40;

/// A handler that answers `/wait` when it is released, and everything else at once.
#[derive(Default)]
struct Waiting {
    release: Notify,
    /// Number of requests for `/wait` so far.
    begun: AtomicU64,
}

impl Handler for Waiting {
    async fn handle(&self, request: Request) -> Response {
        if request.path == "/wait" {
            self.begun.fetch_add(1, Ordering::Relaxed);
            self.release.notified().await;
        }
        Response::accepted()
    }
}

/// Sends a request. Returns whether it is answered, or the connection closed before.
async fn ask(stream: &mut TcpStream, path: &str) -> bool {
    let _ = stream.write_all(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes()).await;
    is_answered(stream).await
}

async fn is_answered(stream: &mut TcpStream) -> bool {
    let mut begin = [0; 12];
    let read = tokio::time::timeout(PATIENCE, stream.read_exact(&mut begin)).await.expect("an answer or the end");
    read.is_ok() && &begin == b"HTTP/1.1 202"
}

#[tokio::test]
async fn a_server_without_descriptors_closes_idle_connections_and_then_refuses_new_ones() {
    let connections = Connections::new(1 << 20, "this is a test");
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), Limits::default()).unwrap();
    let server = server.with_connections(connections.clone());
    let (address, handler) = (server.address(), Arc::new(Waiting::default()));
    let _running = server.serve(handler.clone(), Arc::new(NoMessages));
    tokio::task::yield_now().await;
    // Clients have their descriptors before the limit is reached.
    let mut sockets: Vec<TcpSocket> = (0..3 * CLIENTS).map(|_| TcpSocket::new_v4().unwrap()).collect();
    let highest = sockets.iter().map(AsRawFd::as_raw_fd).max().unwrap();
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, u64::try_from(highest).unwrap() + 1 + LEFT, hard).unwrap();

    // Idle connections are closed to admit all others.
    let mut idle = Vec::new();
    for socket in sockets.drain(..CLIENTS) {
        let mut stream = socket.connect(address).await.unwrap();
        assert!(ask(&mut stream, "/").await);
        idle.push(stream);
    }
    let counts = connections.counts();
    assert!(counts.displaced > 0 && counts.refused == 0, "{counts:?}");

    // Requests in progress replace the idle connections; then there is nothing left to close.
    let mut waiting = Vec::new();
    for socket in sockets.drain(..CLIENTS) {
        let begun_or_refused = || handler.begun.load(Ordering::Relaxed) + connections.counts().refused;
        let before = begun_or_refused();
        let mut stream = socket.connect(address).await.unwrap();
        let _ = stream.write_all(b"GET /wait HTTP/1.1\r\n\r\n").await;
        let settled = async {
            while begun_or_refused() == before {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(PATIENCE, settled).await.expect("the request is handled or refused");
        waiting.push(stream);
    }
    let (begun, refused) = (handler.begun.load(Ordering::Relaxed), connections.counts().refused);
    assert!(begun > 0 && refused > 0 && begun + refused == CLIENTS as u64, "{begun} begun, {refused} refused");
    handler.release.notify_waiters();
    let mut answered = 0;
    for stream in &mut waiting {
        answered += u64::from(is_answered(stream).await);
    }
    assert_eq!(answered, begun);

    // The connections are idle now, and are closed to admit others.
    let mut stream = sockets.remove(0).connect(address).await.unwrap();
    assert!(ask(&mut stream, "/").await);
}
