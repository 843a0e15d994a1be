//! Tests received libprocess messages: docs/mesos/libprocess.md.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::AsyncWriteExt;
use wire::Limits;
use wire::http::{Handler, Request, Response, Server};
use wire::libprocess::{Delivery, Message, MessageSink};

use crate::raw::{Raw, soon};
use crate::server::{serve, serve_with};

const FROM: &str = "Libprocess-From: slave(1)@127.0.0.1:5051\r\n";

fn message(to: &str, name: &str, body: &str) -> String {
    let framing = match body {
        "" => "\r\n".to_owned(),
        body => format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len()),
    };
    format!("POST /{to}/{name} HTTP/1.1\r\n{FROM}Connection: Keep-Alive\r\nHost: \r\n{framing}")
}

#[tokio::test]
async fn delivered_and_answered() {
    let mut fixture = serve();
    let mut raw = Raw::connect(fixture.address).await;
    let response = raw.ask(message("slave%281%29", "mesos.internal.Some%20Message", "body")).await;
    assert_eq!(response.status_line, "HTTP/1.1 202 Accepted");
    assert_eq!((response.header("content-length"), response.header("content-type")), (Some("0"), None));
    assert!(response.header("date").unwrap().ends_with(" GMT"));
    let got = soon("the message", fixture.messages.recv()).await.unwrap();
    assert_eq!((got.to.as_str(), got.name.as_str()), ("slave(1)", "mesos.internal.Some%20Message"));
    assert_eq!((got.from.to_string().as_str(), &got.body[..]), ("slave(1)@127.0.0.1:5051", b"body".as_slice()));
    assert_eq!(got.origin.peer, raw.stream.local_addr().unwrap());

    let response = raw.ask(message("nobody", "mesos.internal.PingSlaveMessage", "")).await;
    assert_eq!((response.status(), response.text()), (404, "404 Not Found."));
    assert_eq!(response.header("content-type"), Some("text/plain; charset=utf-8"));
}

#[tokio::test]
async fn every_framing() {
    let mut fixture = serve();
    let mut raw = Raw::connect(fixture.address).await;
    for request in [
        format!("POST /master/n HTTP/1.1\r\n{FROM}Content-Length: 6\r\n\r\nabcdef"),
        format!("POST /master/n HTTP/1.1\r\n{FROM}Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n4\r\ncdef\r\n0\r\n\r\n"),
        "POST /master/n HTTP/1.1\r\nUser-Agent: libprocess/slave(1)@127.0.0.1:5051\r\nContent-Length: 6\r\n\r\nabcdef"
            .to_owned(),
    ] {
        assert_eq!(raw.ask(&request).await.status(), 202, "{request}");
        let got = soon("the message", fixture.messages.recv()).await.unwrap();
        assert_eq!(got.body, "abcdef");
        assert_eq!(got.from.to_string(), "slave(1)@127.0.0.1:5051");
    }
    // Sent byte by byte, so that every cut occurs.
    for byte in message("master", "n", "slowly").bytes() {
        raw.write([byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(raw.response().await.status(), 202);
    assert_eq!(soon("the message", fixture.messages.recv()).await.unwrap().body, "slowly");
}

#[tokio::test]
async fn order_is_kept() {
    let mut fixture = serve();
    let mut raw = Raw::connect(fixture.address).await;
    for batch in 0..50 {
        let numbers = batch * 100..(batch + 1) * 100;
        let all: String = numbers.clone().map(|number| message("master", "n", &format!("number {number}"))).collect();
        raw.write(all).await;
        for number in numbers {
            assert_eq!(raw.response().await.status(), 202);
            let got = soon("the message", fixture.messages.recv()).await.unwrap();
            assert_eq!(got.body, format!("number {number}"));
        }
    }
}

#[tokio::test]
async fn refused() {
    let fixture = serve();
    let mut raw = Raw::connect(fixture.address).await;
    for (request, status) in [
        ("POST /master/n HTTP/1.1\r\nLibprocess-From: nobody\r\n\r\n", 500),
        ("POST /master/n HTTP/1.1\r\nUser-Agent: libprocess/\r\n\r\n", 500),
        ("POST /%zz/n HTTP/1.1\r\nLibprocess-From: a@1.2.3.4:5\r\n\r\n", 500),
    ] {
        let response = raw.ask(request).await;
        assert_eq!(response.status(), status, "{request}");
        assert!(!response.text().is_empty());
    }
    assert_eq!(raw.ask(message("master", "n", "x")).await.status(), 202);
}

#[tokio::test]
async fn a_message_without_a_name_arrives_as_one() {
    let mut fixture = serve();
    let mut raw = Raw::connect(fixture.address).await;
    for path in ["/master", "/master/"] {
        let request = format!("POST {path} HTTP/1.1\r\nLibprocess-From: a@1.2.3.4:5\r\n\r\n");
        assert_eq!(raw.ask(&request).await.status(), 202, "{request}");
        assert_eq!(soon("the message", fixture.messages.recv()).await.unwrap().name, "");
    }
}

#[tokio::test]
async fn a_foreign_address_is_refused_on_demand() {
    let mut fixture = serve_with(Limits::default(), true);
    let mut raw = Raw::connect(fixture.address).await;
    let own = "POST /master/n HTTP/1.1\r\nLibprocess-From: a@127.0.0.1:4444\r\n\r\n";
    let foreign = own.replace("127.0.0.1", "127.0.0.9");
    assert_eq!(raw.ask(own).await.status(), 202);
    let response = raw.ask(&foreign).await;
    let text = "UPID IP address validation failed: Message from a@127.0.0.9:4444 was sent from IP 127.0.0.1";
    assert_eq!((response.status(), response.text()), (400, text));
    // The same on a connection that has carried ordinary requests.
    assert_eq!(raw.ask("GET /accepted HTTP/1.1\r\n\r\n").await.status(), 202);
    assert_eq!(raw.ask(&foreign).await.text(), text);
    assert_eq!(soon("the message", fixture.messages.recv()).await.unwrap().from.to_string(), "a@127.0.0.1:4444");
    assert!(fixture.messages.try_recv().is_err());
}

#[tokio::test]
async fn mixed_with_requests() {
    let mut fixture = serve();
    let mut raw = Raw::connect(fixture.address).await;
    let get = "GET /size?n=2 HTTP/1.1\r\n\r\n";
    raw.write([&message("master", "a", "1"), get, &message("master", "b", ""), &message("no", "c", "3"), get].concat())
        .await;
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(raw.response().await.status());
    }
    assert_eq!(statuses, [202, 200, 202, 404, 200]);
    assert_eq!(soon("the message", fixture.messages.recv()).await.unwrap().name, "a");
    let second = soon("the message", fixture.messages.recv()).await.unwrap();
    assert_eq!((second.name.as_str(), second.body.len()), ("b", 0));
}

#[tokio::test]
async fn closing_and_old_http() {
    let mut fixture = serve();
    for request in [
        format!("POST /master/n HTTP/1.0\r\n{FROM}\r\n"),
        format!("POST /master/n HTTP/1.1\r\nConnection: close\r\n{FROM}\r\n"),
    ] {
        let mut raw = Raw::connect(fixture.address).await;
        assert_eq!(raw.ask(&request).await.status_line, "HTTP/1.1 202 Accepted");
        assert!(raw.rest().await.is_empty());
        soon("the message", fixture.messages.recv()).await.unwrap();
    }
    let mut raw = Raw::connect(fixture.address).await;
    for _ in 0..2 {
        let request = format!("POST /master/n HTTP/1.0\r\nConnection: Keep-Alive\r\n{FROM}\r\n");
        assert_eq!(raw.ask(request).await.status(), 202);
    }
}

#[tokio::test]
async fn limits() {
    let fixture = serve_with(Limits { body: 100, ..Limits::default() }, false);
    for framing in ["Content-Length: 101\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n65\r\n"] {
        let mut raw = Raw::connect(fixture.address).await;
        let response = raw.ask(format!("POST /master/n HTTP/1.1\r\n{FROM}{framing}xxx")).await;
        assert_eq!((response.status(), response.text()), (413, "The request's body is longer than 100 bytes"));
        assert!(raw.rest().await.is_empty());
    }
    let mut raw = Raw::connect(fixture.address).await;
    raw.write(format!("POST /master/n HTTP/1.1\r\n{FROM}Transfer-Encoding: chunked\r\n\r\nzz\r\n")).await;
    assert!(raw.rest().await.is_empty(), "a malformed body is answered");
}

/// A sink that accepts no messages until it is opened.
#[derive(Default)]
struct Gate {
    open: AtomicBool,
    waiting: std::sync::Mutex<Option<std::task::Waker>>,
    taken: AtomicUsize,
}

impl MessageSink for Gate {
    fn deliver(&self, _: Message) -> Delivery {
        self.taken.fetch_add(1, Ordering::SeqCst);
        Delivery::Accepted
    }

    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        *self.waiting.lock().unwrap() = Some(cx.waker().clone());
        if self.open.load(Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
    }
}

struct Nothing;

impl Handler for Nothing {
    async fn handle(&self, _: Request) -> Response {
        Response::not_found()
    }
}

#[tokio::test]
async fn a_full_sink_holds_its_senders_back() {
    let gate = Arc::new(Gate::default());
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), Limits::default()).unwrap();
    let address = server.address();
    let _running = server.serve(Arc::new(Nothing), gate.clone());
    let mut raw = Raw::connect(address).await;
    let batch = message("master", "n", &"x".repeat(10_000)).repeat(1000);
    // More than the buffers of both sockets hold, so that writing blocks.
    let mut written = 0;
    while let Ok(length) =
        tokio::time::timeout(std::time::Duration::from_millis(200), raw.stream.write(&batch.as_bytes()[written..]))
            .await
    {
        written += length.unwrap();
        assert!(written < batch.len(), "all of it was taken");
    }
    assert_eq!(gate.taken.load(Ordering::SeqCst), 0);
    gate.open.store(true, Ordering::SeqCst);
    gate.waiting.lock().unwrap().take().unwrap().wake();
    raw.write(&batch.as_bytes()[written..]).await;
    for _ in 0..1000 {
        assert_eq!(raw.response().await.status(), 202);
    }
    assert_eq!(gate.taken.load(Ordering::SeqCst), 1000);
}

#[tokio::test]
async fn a_sender_that_never_reads_its_answers_is_cut_off() {
    let fixture = serve();
    let mut raw = Raw::connect(fixture.address).await;
    let batch = message("master", "n", "").repeat(1000);
    let mut batches = 0;
    while soon("the batch", raw.stream.write_all(batch.as_bytes())).await.is_ok() {
        batches += 1;
        assert!(batches < 10_000, "answers pile up without limit");
    }
}
