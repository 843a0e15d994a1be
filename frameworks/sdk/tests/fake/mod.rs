//! A fake master for tests of the driver: it records calls, answers as instructed, and sends the events that it is
//! given.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use prost::Message;
use protos::json::{Dialect, FromJson, ToJson};
use tepui_sdk::v1::FrameworkId;
use tepui_sdk::v1::scheduler::event::{Subscribed, Type};
use tepui_sdk::v1::scheduler::{Call, Event, call};
use tokio::sync::mpsc;
use wire::http::stream::{self, StreamHandle};
use wire::http::{Handler, HeaderName, JSON, PROTOBUF, Request, Response, Running, Server, StatusCode};
use wire::libprocess::NoMessages;

/// Answer of the fake master to SUBSCRIBE.
pub enum Answer {
    Stream,
    Redirect(String),
    Unavailable,
    BadRequest(&'static str),
    Status(u16),
    /// SUBSCRIBE is never answered.
    Nothing,
}

pub struct Fake {
    running: Running,
    state: Arc<State>,
    calls: tokio::sync::Mutex<mpsc::UnboundedReceiver<Call>>,
}

struct State {
    address: SocketAddr,
    answer: Mutex<Answer>,
    refuse_next: Mutex<bool>,
    /// The open event stream, and whether it is in JSON.
    stream: Mutex<Option<(StreamHandle, bool)>>,
    calls: mpsc::UnboundedSender<Call>,
}

/// Returns an event of this type in which nothing else is set.
pub fn event(kind: Type) -> Event {
    Event { r#type: Some(kind as i32), ..Default::default() }
}

fn encoded(event: &Event, json: bool) -> Vec<u8> {
    if json { event.json(Dialect::V1) } else { event.encode_to_vec() }
}

impl Fake {
    pub async fn start() -> Fake {
        let (sender, calls) = mpsc::unbounded_channel();
        let server = Server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), wire::Limits::default()).unwrap();
        let state = Arc::new(State {
            address: server.address(),
            answer: Mutex::new(Answer::Stream),
            refuse_next: Mutex::new(false),
            stream: Mutex::new(None),
            calls: sender,
        });
        let running = server.serve(Arc::new(Answering(state.clone())), Arc::new(NoMessages));
        Fake { running, state, calls: tokio::sync::Mutex::new(calls) }
    }

    pub fn address(&self) -> String {
        self.running.address().to_string()
    }

    /// Waits for the next call and returns it.
    pub async fn call(&self) -> Call {
        self.calls.lock().await.recv().await.unwrap()
    }

    /// Stops the master. Panics if a call arrived that the test did not take.
    pub async fn stop_and_expect_no_call(self) {
        self.running.stop().await;
        assert!(self.calls.lock().await.try_recv().is_err());
    }

    pub fn answer_with(&self, answer: Answer) {
        *self.state.answer.lock().unwrap() = answer;
    }

    pub fn refuse_next_call(&self) {
        *self.state.refuse_next.lock().unwrap() = true;
    }

    /// Sends an event on the open stream.
    pub fn send(&self, event: &Event) {
        let stream = self.state.stream.lock().unwrap();
        let (handle, json) = stream.as_ref().unwrap();
        handle.send(&encoded(event, *json)).unwrap();
    }

    /// Closes the open stream.
    pub fn cut(&self) {
        self.state.stream.lock().unwrap().take().unwrap().0.abort();
    }

    /// Stops the master, and returns its address, which refuses connections from then on.
    pub async fn stop(self) -> String {
        let address = self.address();
        self.running.stop().await;
        address
    }
}

struct Answering(Arc<State>);

impl Handler for Answering {
    async fn handle(&self, request: Request) -> Response {
        if request.path == "/redirect" {
            return self.leader().await;
        }
        let json = request.header("Content-Type") == Some(JSON);
        assert_eq!(request.header("Accept"), request.header("Content-Type"));
        let call = match json {
            true => Call::from_json(request.body.full(), Dialect::V1).unwrap(),
            false => Call::decode(request.body.full()).unwrap(),
        };
        if call.r#type() == call::Type::Subscribe && matches!(*self.0.answer.lock().unwrap(), Answer::Nothing) {
            std::future::pending::<()>().await;
        }
        let response = match call.r#type() {
            call::Type::Subscribe => self.subscribe(json),
            _ => self.other(&request),
        };
        self.0.calls.send(call).unwrap();
        response
    }
}

impl Answering {
    /// Answers a request for the leader. The fake master leads if it answers calls.
    async fn leader(&self) -> Response {
        let to = |address: &str| {
            let (host, port) = address.split_once(':').unwrap();
            Response::redirect(host, port.parse().unwrap(), "")
        };
        let answer = match &*self.0.answer.lock().unwrap() {
            Answer::Nothing => None,
            Answer::Redirect(address) => Some(to(address)),
            Answer::Unavailable => Some(Response::unavailable("No leader elected")),
            Answer::Stream | Answer::BadRequest(_) | Answer::Status(_) => Some(to(&self.0.address.to_string())),
        };
        match answer {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }

    fn subscribe(&self, json: bool) -> Response {
        match &*self.0.answer.lock().unwrap() {
            Answer::Stream => self.open(json),
            Answer::Redirect(to) => {
                let (host, port) = to.split_once(':').unwrap();
                Response::redirect(host, port.parse().unwrap(), "/api/v1/scheduler")
            }
            Answer::Unavailable => Response::unavailable("No leader elected"),
            Answer::BadRequest(why) => Response::bad_request(*why),
            Answer::Status(status) => Response::text(StatusCode::from_u16(*status).unwrap(), "told to"),
            Answer::Nothing => Response::unavailable("unreachable: nothing is answered"),
        }
    }

    fn open(&self, json: bool) -> Response {
        let (handle, response) = stream::open(if json { JSON } else { PROTOBUF }, 1 << 20);
        let subscribed = Subscribed { framework_id: FrameworkId { value: "F".into() }, ..Default::default() };
        let first = Event { subscribed: Some(Box::new(subscribed)), ..event(Type::Subscribed) };
        handle.send(&encoded(&first, json)).unwrap();
        *self.0.stream.lock().unwrap() = Some((handle, json));
        response.with_header(HeaderName::from_static("mesos-stream-id"), "the-stream")
    }

    fn other(&self, request: &Request) -> Response {
        if std::mem::take(&mut *self.0.refuse_next.lock().unwrap()) {
            return Response::text(StatusCode::BAD_REQUEST, "refused by the test");
        }
        match request.header("Mesos-Stream-Id") {
            Some("the-stream") => Response::accepted(),
            _ => Response::bad_request("wrong stream"),
        }
    }
}
