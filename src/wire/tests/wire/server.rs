//! A server for tests, whose handler and sink record what reached them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, mpsc};
use wire::http::stream::{self, StreamHandle};
use wire::http::{Body, BodyRule, Handler, Method, RECORDIO, Request, Response, Running, Server, StatusCode};
use wire::libprocess::{Delivery, Message, MessageSink};
use wire::tls::Tls;
use wire::{Connections, Limits};

/// A running server, and what its handler and sink have recorded.
pub(crate) struct Fixture {
    pub(crate) address: SocketAddr,
    pub(crate) running: Running,
    pub(crate) handler: Arc<Probe>,
    pub(crate) messages: mpsc::UnboundedReceiver<Message>,
    /// Handles of streams that were opened.
    pub(crate) streams: mpsc::UnboundedReceiver<StreamHandle>,
    pub(crate) connections: Connections,
}

pub(crate) struct Probe {
    streams: mpsc::UnboundedSender<StreamHandle>,
    limit: usize,
    /// Notification that releases a request for `/wait`.
    pub(crate) release: Notify,
    /// Whether a request for `/wait` was dropped before it was answered.
    pub(crate) dropped: Arc<AtomicBool>,
    pub(crate) waiting: Notify,
    /// Paths of the requests.
    pub(crate) seen: Mutex<Vec<String>>,
}

pub(crate) struct Inbox {
    messages: mpsc::UnboundedSender<Message>,
    match_address: bool,
}

impl MessageSink for Inbox {
    fn deliver(&self, message: Message) -> Delivery {
        match message.to.as_str() {
            "master" | "slave(1)" => {}
            "metrics" => return Delivery::Ignored,
            _ => return Delivery::NoSuchProcess,
        }
        let _ = self.messages.send(message);
        Delivery::Accepted
    }

    fn require_peer_address_match(&self) -> bool {
        self.match_address
    }
}

pub(crate) fn serve() -> Fixture {
    serve_with(Limits::default(), false)
}

pub(crate) fn serve_with(limits: Limits, match_address: bool) -> Fixture {
    serve_tls(limits, match_address, None)
}

pub(crate) fn serve_tls(limits: Limits, match_address: bool, tls: Option<Tls>) -> Fixture {
    let (stream_sender, streams) = mpsc::unbounded_channel();
    let (message_sender, messages) = mpsc::unbounded_channel();
    let handler = Arc::new(Probe {
        streams: stream_sender,
        limit: limits.stream,
        release: Notify::new(),
        dropped: Arc::default(),
        waiting: Notify::new(),
        seen: Mutex::default(),
    });
    let connections = Connections::new(limits.connections, "this is a test");
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), limits).unwrap().with_connections(connections.clone());
    let server = server.with_tls(tls);
    let address = server.address();
    let sink = Arc::new(Inbox { messages: message_sender, match_address });
    let running = server.serve(handler.clone(), sink);
    Fixture { address, running, handler, messages, streams, connections }
}

struct DropFlag(Option<Arc<AtomicBool>>);

impl Drop for DropFlag {
    fn drop(&mut self) {
        if let Some(flag) = &self.0 {
            flag.store(true, Ordering::SeqCst);
        }
    }
}

impl Handler for Probe {
    fn admit(&self, request: &mut Request) -> Result<BodyRule, Box<Response>> {
        match request.path.as_str() {
            "/secret" if request.header("authorization").is_none() => Err(Box::new(Response::unauthorized("Basic"))),
            "/small" => Ok(BodyRule::Whole { limit: 1000 }),
            _ if request.header("content-type") == Some(RECORDIO) => Ok(BodyRule::Stream),
            _ => Ok(BodyRule::Whole { limit: usize::MAX }),
        }
    }

    async fn handle(&self, request: Request) -> Response {
        self.seen.lock().unwrap().push(request.path_and_query());
        match request.path.as_str() {
            "/secret" | "/small" => Response::ok_json("read"),
            "/echo" => match request.body {
                Body::Full(body) => Response::ok_json(body),
                Body::Stream(mut parts) => {
                    let mut all = Vec::new();
                    while let Some(part) = parts.next().await {
                        match part {
                            Ok(part) => all.extend_from_slice(&part),
                            Err(error) => return Response::bad_request(error.to_string()),
                        }
                    }
                    Response::ok_json(all)
                }
            },
            "/header" => Response::ok_json(request.header("X-Test").unwrap_or("none").to_owned()),
            "/query" => Response::ok_json(request.query.get("a").unwrap_or("none").to_owned()),
            "/big" => Response::ok_json(vec![b'x'; 1 << 20]),
            "/size" => {
                let size = request.query.get("n").and_then(|n| n.parse().ok()).unwrap_or(0);
                Response::ok_json(vec![b'x'; size])
            }
            "/zeros" | "/nothing" => {
                let device = if request.path == "/zeros" { "/dev/zero" } else { "/dev/null" };
                let length = request.query.get("n").and_then(|n| n.parse().ok()).unwrap_or(0);
                Response::ok_file("application/octet-stream", std::fs::File::open(device).unwrap(), length)
            }
            "/accepted" => Response::accepted(),
            "/keep" => Response::accepted().keep_connection(),
            "/post" if request.method != Method::POST => {
                Response::method_not_allowed(&["POST"], request.method.as_str())
            }
            "/unavailable" => Response::unavailable("No leader elected"),
            "/redirect" => Response::redirect("10.0.0.7", 5050, "/there?x=1"),
            "/stream" => {
                let (handle, response) = stream::open("application/json", self.limit);
                let _ = self.streams.send(handle);
                response.with_header("mesos-stream-id".parse().unwrap(), "the-id")
            }
            "/wait" => {
                let mut flag = DropFlag(Some(self.dropped.clone()));
                self.waiting.notify_one();
                self.release.notified().await;
                flag.0 = None;
                Response::ok_json("waited")
            }
            _ => Response::error(StatusCode::NOT_FOUND),
        }
    }
}
