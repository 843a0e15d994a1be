//! Tests RecordIO streams: docs/mesos/transport.md.

use wire::Limits;
use wire::http::stream::{Record, StreamEnd};

use crate::raw::{Raw, soon};
use crate::server::{Fixture, serve, serve_with};

const SUBSCRIBE: &str = "POST /stream HTTP/1.1\r\nAccept-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}";

async fn open(fixture: &mut Fixture) -> (Raw, wire::http::stream::StreamHandle) {
    let mut raw = Raw::connect(fixture.address).await;
    raw.write(SUBSCRIBE).await;
    let head = raw.head().await;
    assert_eq!(head.status_line, "HTTP/1.1 200 OK");
    assert_eq!(head.header("transfer-encoding"), Some("chunked"));
    assert_eq!(head.header("content-type"), Some("application/json"));
    assert_eq!(head.header("mesos-stream-id"), Some("the-id"));
    assert_eq!((head.header("content-length"), head.header("content-encoding")), (None, None));
    let handle = soon("the handle", fixture.streams.recv()).await.unwrap();
    (raw, handle)
}

#[tokio::test]
async fn one_record_is_one_chunk() {
    let mut fixture = serve();
    let (mut raw, handle) = open(&mut fixture).await;
    handle.send(br#"{"type":"HEARTBEAT"}"#).unwrap();
    assert_eq!(raw.take(29).await, b"17\r\n20\n{\"type\":\"HEARTBEAT\"}\r\n");
    handle.send(b"").unwrap();
    handle.send_record(&Record::new(&[b'x'; 1000])).unwrap();
    assert_eq!(raw.chunk().await, b"0\n");
    assert_eq!(raw.chunk().await.len(), 1005);
    handle.finish();
    assert_eq!(raw.take(5).await, b"0\r\n\r\n");
    assert_eq!(soon("the end", handle.wait_end()).await, StreamEnd::Ended);
    assert_eq!(handle.send(b"x"), Err(StreamEnd::Ended));
    // The connection remains usable.
    assert_eq!(raw.ask("GET /accepted HTTP/1.1\r\n\r\n").await.status(), 202);
}

#[tokio::test]
async fn what_was_sent_before_the_end_arrives() {
    let mut fixture = serve();
    let (mut raw, handle) = open(&mut fixture).await;
    for _ in 0..1000 {
        handle.send(&[b'x'; 500]).unwrap();
    }
    drop(handle);
    for _ in 0..1000 {
        assert_eq!(raw.chunk().await.len(), 504);
    }
    assert_eq!(raw.take(5).await, b"0\r\n\r\n");
}

#[tokio::test]
async fn connection_close_is_honoured_at_the_end() {
    let mut fixture = serve();
    let mut raw = Raw::connect(fixture.address).await;
    raw.write("POST /stream HTTP/1.1\r\nConnection: close\r\n\r\n").await;
    raw.head().await;
    drop(soon("the handle", fixture.streams.recv()).await);
    assert_eq!(raw.rest().await, b"0\r\n\r\n");
}

#[tokio::test]
async fn an_idle_client_that_leaves_is_noticed() {
    let mut fixture = serve();
    let (raw, handle) = open(&mut fixture).await;
    let (sender, receiver) = tokio::sync::oneshot::channel();
    handle.on_end(move |end| sender.send(end).unwrap());
    assert_eq!(handle.ended(), None);
    drop(raw);
    assert_eq!(soon("the callback", receiver).await.unwrap(), StreamEnd::ClientClosed);
    assert_eq!(soon("the end", handle.wait_end()).await, StreamEnd::ClientClosed);
    assert_eq!(handle.send(b"x"), Err(StreamEnd::ClientClosed));
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off() {
    let limit = 1 << 20;
    let mut fixture = serve_with(Limits { stream: limit, ..Limits::default() }, false);
    let (mut raw, handle) = open(&mut fixture).await;
    let record = Record::new(&[b'x'; 100_000]);
    let mut sent = 0;
    let end = loop {
        match handle.send_record(&record) {
            Ok(()) => sent += 1,
            Err(end) => break end,
        }
        assert!(sent < 10_000, "a gigabyte is waiting");
        tokio::task::yield_now().await;
    };
    assert_eq!(end, StreamEnd::TooSlow { limit });
    assert_eq!(end.to_string(), "cut off: more than 1048576 bytes waited for the client to read");
    assert_eq!(handle.queued(), 0);
    let rest = raw.rest().await;
    assert!(!rest.ends_with(b"0\r\n\r\n"), "the stream seems complete");
}

#[tokio::test]
async fn a_single_record_may_exceed_the_limit() {
    let mut fixture = serve_with(Limits { stream: 1000, ..Limits::default() }, false);
    let (mut raw, handle) = open(&mut fixture).await;
    handle.send(&[b'x'; 100_000]).unwrap();
    // Records that follow before it is sent do not cut it off.
    handle.send(&[b'y'; 900]).unwrap();
    assert_eq!(raw.chunk().await.len(), 100_007);
    assert_eq!(raw.chunk().await.len(), 904);
    handle.send(&[b'x'; 100_000]).unwrap();
    handle.send(&[b'y'; 900]).unwrap();
    assert_eq!(handle.send(&[b'y'; 200]), Err(StreamEnd::TooSlow { limit: 1000 }));
}

#[tokio::test]
async fn an_aborted_stream_has_no_end_marker() {
    let mut fixture = serve();
    let (mut raw, handle) = open(&mut fixture).await;
    handle.send(b"x").unwrap();
    assert_eq!(raw.chunk().await, b"1\nx");
    handle.abort();
    assert!(raw.rest().await.is_empty());
}

#[tokio::test]
async fn a_request_behind_a_stream_waits_for_its_end() {
    let mut fixture = serve();
    let (mut raw, handle) = open(&mut fixture).await;
    raw.write("GET /accepted HTTP/1.1\r\n\r\n").await;
    handle.send(b"x").unwrap();
    assert_eq!(raw.chunk().await, b"1\nx");
    handle.finish();
    assert_eq!(raw.take(5).await, b"0\r\n\r\n");
    assert_eq!(raw.response().await.status(), 202);
}

#[tokio::test]
async fn the_end_is_noticed_behind_unread_requests() {
    let mut fixture = serve();
    let (mut raw, handle) = open(&mut fixture).await;
    raw.write("GET /accepted HTTP/1.1\r\n\r\n").await;
    handle.send(b"x").unwrap();
    assert_eq!(raw.chunk().await, b"1\nx");
    drop(raw);
    assert_eq!(soon("the end", handle.wait_end()).await, StreamEnd::ClientClosed);
}

#[tokio::test]
async fn a_subscriber_that_leaves_at_once_is_noticed() {
    let mut fixture = serve();
    for _ in 0..50 {
        let mut raw = Raw::connect(fixture.address).await;
        raw.write(SUBSCRIBE).await;
        drop(raw);
        let handle = soon("the handle", fixture.streams.recv()).await.unwrap();
        assert_eq!(soon("the end", handle.wait_end()).await, StreamEnd::ClientClosed);
    }
}
