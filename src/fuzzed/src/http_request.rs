//! Checks requests to the HTTP server of masters and agents, over a connection.

use std::cell::OnceCell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use wire::Limits;
use wire::auth::basic_credentials;
use wire::http::{Handler, Request, Response, Running, Server, StatusCode};
use wire::libprocess::{Delivery, Message, MessageSink};
use wire::negotiate::{DecodeFailure, accepted_encoding, accepts, decode_call};
use wire::route::Table;

/// Limits of the server, far below those of a master.
const HEAD: usize = 8 << 10;
const BODY: usize = 8 << 10;
/// Longest lifetime of a connection after its client has sent everything.
const TIME_MAX: Duration = Duration::from_secs(20);
/// Maximum size of the response to one request.
const ANSWER_MAX: usize = 4 << 10;

/// A handler that responds as those of masters do: by the path, the credentials and the encoding.
struct Answers(Table<()>);

impl Handler for Answers {
    async fn handle(&self, request: Request) -> Response {
        assert!(request.body.full().len() <= BODY && request.path.starts_with('/'));
        if self.0.find(&request.path).is_none() {
            return Response::text(StatusCode::NOT_FOUND, "");
        }
        let _ = (basic_credentials(request.header("authorization")), accepts(request.header("accept"), "text/html"));
        let decoded = decode_call(&request, |_, body| match body.first() {
            Some(b'{') => Ok(body.len()),
            _ => Err(DecodeFailure::JsonSyntax("no object".to_owned())),
        });
        match decoded.and_then(|_| accepted_encoding(&request)) {
            Ok(encoding) => Response::text(StatusCode::OK, encoding.media_type()),
            Err(refusal) => *refusal,
        }
    }
}

struct NoProcesses;

impl MessageSink for NoProcesses {
    fn deliver(&self, message: Message) -> Delivery {
        assert!(message.body.len() <= BODY);
        Delivery::NoSuchProcess
    }
}

/// A server and the runtime that it shares with its clients.
struct Served {
    runtime: Runtime,
    address: SocketAddr,
    _running: Running,
}

impl Served {
    fn new() -> Served {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let running = runtime.block_on(async {
            let limits = Limits { head: HEAD, body: BODY, ..Limits::default() };
            let server = Server::bind(([127, 0, 0, 1], 0).into(), limits).expect("a port");
            let table = Table::new("master").add("master", "/api/v1", ()).add("files", "/read", ());
            server.serve(Arc::new(Answers(table)), Arc::new(NoProcesses))
        });
        Served { address: running.address(), runtime, _running: running }
    }
}

thread_local! {
    static SERVED: OnceCell<Served> = const { OnceCell::new() };
}

/// Sends the bytes of a connection: the server sends a bounded response to each valid request, and closes the
/// connection soon after its client's end.
pub fn http_request(data: &[u8]) {
    SERVED.with(|served| {
        let served = served.get_or_init(Served::new);
        served.runtime.block_on(async {
            let answers = tokio::time::timeout(TIME_MAX, exchange(served.address, data)).await;
            let answers = answers.expect("the connection is closed in time");
            assert!(answers.is_empty() || answers.starts_with(b"HTTP/1."));
            let requests = data.split(|byte| *byte == b'\n').count();
            assert!(answers.len() <= requests * ANSWER_MAX, "{} bytes for {requests} lines", answers.len());
        });
    });
}

/// Returns everything that the server sends for these bytes.
async fn exchange(address: SocketAddr, data: &[u8]) -> Vec<u8> {
    let mut answers = Vec::new();
    let mut stream = TcpStream::connect(address).await.expect("the server accepts");
    // A client that is rejected early may find the connection closed.
    let _ = stream.write_all(data).await;
    let _ = stream.shutdown().await;
    let _ = stream.read_to_end(&mut answers).await;
    answers
}
