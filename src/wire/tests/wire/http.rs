//! Tests requests and responses: docs/mesos/transport.md.

use std::io::{Read, Write};
use std::sync::atomic::Ordering;
use std::time::Duration;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use tokio::io::AsyncWriteExt;
use wire::Limits;

use crate::raw::{Raw, dialogue, soon, until};
use crate::server::{serve, serve_with};

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn post(path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut request = format!("POST {path} HTTP/1.1\r\n{headers}Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    request.extend_from_slice(body);
    request
}

#[tokio::test]
async fn texts_and_headers() {
    let fixture = serve();
    let mut raw = Raw::connect(fixture.address).await;
    let response = raw.ask("GET /nosuch HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert_eq!(response.status_line, "HTTP/1.1 404 Not Found");
    assert_eq!(response.text(), "404 Not Found.");
    assert_eq!(response.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(response.header("content-length"), Some("14"));
    assert!(response.header("date").unwrap().ends_with(" GMT"));

    let response = raw.ask("POST /accepted HTTP/1.1\r\n\r\n").await;
    assert_eq!(response.status_line, "HTTP/1.1 202 Accepted");
    assert_eq!(response.header("content-length"), Some("0"));
    assert_eq!(response.header("content-type"), None);

    let response = raw.ask("GET /post HTTP/1.1\r\n\r\n").await;
    assert_eq!(response.status_line, "HTTP/1.1 405 Method Not Allowed");
    assert_eq!(response.header("allow"), Some("POST"));

    let response = raw.ask("GET /redirect HTTP/1.1\r\n\r\n").await;
    assert_eq!(response.status_line, "HTTP/1.1 307 Temporary Redirect");
    assert_eq!(response.header("location"), Some("//10.0.0.7:5050/there?x=1"));
    assert_eq!((response.header("content-length"), response.header("content-type")), (Some("0"), None));

    let response = raw.ask("GET /unavailable HTTP/1.1\r\n\r\n").await;
    assert_eq!((response.status(), response.text()), (503, "No leader elected"));
}

#[tokio::test]
async fn bodies() {
    let fixture = serve();
    let mut raw = Raw::connect(fixture.address).await;
    assert_eq!(raw.ask(post("/echo", "", b"hello")).await.body, b"hello");
    let chunked = "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
    assert_eq!(raw.ask(chunked).await.body, b"hello world");
    let recordio = "POST /echo HTTP/1.1\r\nContent-Type: application/recordio\r\nTransfer-Encoding: chunked\r\n\r\n\
                    3\r\n1\na\r\n3\r\n1\nb\r\n0\r\n\r\n";
    assert_eq!(raw.ask(recordio).await.body, b"1\na1\nb");
    assert_eq!(raw.ask("GET /echo HTTP/1.1\r\n\r\n").await.body, b"");
    // A body byte by byte.
    raw.write("POST /echo HTTP/1.1\r\nContent-Length: 5\r\n\r\n").await;
    for byte in b"bytes" {
        raw.write([*byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(raw.response().await.body, b"bytes");
}

#[tokio::test]
async fn the_last_header_counts() {
    let fixture = serve();
    let mut raw = Raw::connect(fixture.address).await;
    let response = raw.ask("GET /header HTTP/1.1\r\nx-test: one\r\nX-TEST: two\r\n\r\n").await;
    assert_eq!(response.body, b"two");
}

#[tokio::test]
async fn paths_and_queries() {
    let fixture = serve();
    let mut raw = Raw::connect(fixture.address).await;
    assert_eq!(raw.ask("GET /query?a=1&a=%2F+x HTTP/1.1\r\n\r\n").await.body, b"/ x");
    assert_eq!(raw.ask("GET /a/../b HTTP/1.1\r\n\r\n").await.text(), "404 Not Found.");
    let response = raw.ask("OPTIONS * HTTP/1.1\r\n\r\n").await;
    assert_eq!((response.status(), response.text()), (400, "400 Bad Request."));
    assert!(dialogue(fixture.address, "GET /query?a=%zz HTTP/1.1\r\n\r\n").await.is_empty());
    assert_eq!(*fixture.handler.seen.lock().unwrap(), ["/query?a=1&a=%2F+x"]);
}

#[tokio::test]
async fn malformed_requests_close_silently() {
    let fixture = serve();
    for request in [
        "GARBAGE\r\n\r\n",
        "GET /accepted\r\n\r\n",
        "GET /accepted HTTP/9.9\r\n\r\n",
        "GET /accepted HTTP/1.1\r\nno colon\r\n\r\n",
        "POST GARBAGE\r\n\r\n",
        "POST /echo HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nTrailer: x\r\n\r\n",
        "POST /echo HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
    ] {
        let answer = dialogue(fixture.address, request).await;
        assert_eq!(String::from_utf8_lossy(&answer), "", "{request:?}");
    }
    // The same after valid requests, which are answered.
    let answer = dialogue(fixture.address, "GET /accepted HTTP/1.1\r\n\r\nGARBAGE\r\n\r\n").await;
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 202 Accepted\r\n") && answer.ends_with("\r\n\r\n"), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
}

#[tokio::test]
async fn no_interim_response() {
    let fixture = serve();
    let mut raw = Raw::connect(fixture.address).await;
    raw.write("POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n").await;
    raw.write("ab").await;
    let response = raw.response().await;
    assert_eq!((response.status_line.as_str(), response.text()), ("HTTP/1.1 200 OK", "ab"));
    assert_eq!(raw.ask("GET /accepted HTTP/1.1\r\n\r\n").await.status(), 202);
}

#[tokio::test]
async fn pipelined_in_order() {
    let fixture = serve();
    let mut raw = Raw::connect(fixture.address).await;
    let mut requests = Vec::new();
    for number in 0..100 {
        requests.extend_from_slice(&post("/echo", "", format!("number {number}").as_bytes()));
    }
    raw.write(requests).await;
    for number in 0..100 {
        assert_eq!(raw.response().await.text(), format!("number {number}"));
    }
}

#[tokio::test]
async fn an_answer_does_not_wait_for_the_next() {
    let fixture = serve();
    let mut raw = Raw::connect(fixture.address).await;
    raw.write("GET /accepted HTTP/1.1\r\n\r\nGET /wait HTTP/1.1\r\n\r\nGET /accepted HTTP/1.1\r\n\r\n").await;
    // The second request is still in progress.
    assert_eq!(raw.response().await.status(), 202);
    fixture.handler.release.notify_one();
    assert_eq!(raw.response().await.text(), "waited");
    assert_eq!(raw.response().await.status(), 202);
}

#[tokio::test]
async fn keep_alive_and_close() {
    let fixture = serve();
    let mut raw = Raw::connect(fixture.address).await;
    for _ in 0..3 {
        assert_eq!(raw.ask("GET /accepted HTTP/1.1\r\n\r\n").await.status(), 202);
    }
    let response = raw.ask("GET /accepted HTTP/1.1\r\nConnection: close\r\n\r\n").await;
    assert_eq!(response.status(), 202);
    assert!(raw.rest().await.is_empty());
}

#[tokio::test]
async fn http_1_0() {
    let fixture = serve();
    let answer = dialogue(fixture.address, "GET /echo HTTP/1.0\r\n\r\n").await;
    assert!(answer.starts_with(b"HTTP/1."), "{}", String::from_utf8_lossy(&answer));
    let mut raw = Raw::connect(fixture.address).await;
    for _ in 0..2 {
        let response = raw.ask("GET /size?n=3 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").await;
        assert_eq!(response.text(), "xxx");
    }
}

#[tokio::test]
async fn head_has_no_body() {
    let fixture = serve();
    let mut raw = Raw::connect(fixture.address).await;
    raw.write("HEAD /size?n=30 HTTP/1.1\r\n\r\nGET /size?n=2 HTTP/1.1\r\n\r\n").await;
    assert_eq!(raw.head().await.header("content-length"), Some("30"));
    assert_eq!(raw.response().await.text(), "xx");
}

#[tokio::test]
async fn a_file_is_sent_with_its_length_and_as_it_is() {
    let fixture = serve();
    let mut raw = Raw::connect(fixture.address).await;
    // Nothing of the first one is read.
    raw.write("HEAD /zeros?n=1000000000000 HTTP/1.1\r\n\r\n").await;
    assert_eq!(raw.head().await.header("content-length"), Some("1000000000000"));
    let response = raw.ask("GET /zeros?n=300000 HTTP/1.1\r\nAccept-Encoding: gzip\r\n\r\n").await;
    assert_eq!((response.header("content-length"), response.header("content-encoding")), (Some("300000"), None));
    assert!(response.body == vec![0; 300_000]);
    let empty = raw.ask("GET /zeros?n=0 HTTP/1.1\r\n\r\n").await;
    assert_eq!((empty.status(), empty.header("content-length")), (200, Some("0")));
    assert_eq!(raw.ask("GET /size?n=2 HTTP/1.1\r\n\r\n").await.text(), "xx");
}

#[tokio::test]
async fn a_file_that_is_shorter_than_its_length_ends_the_connection() {
    let fixture = serve();
    let got = dialogue(fixture.address, "GET /nothing?n=100000 HTTP/1.1\r\n\r\n").await;
    assert!(got.len() < 1000, "only the head may have been sent");
}

#[tokio::test]
async fn gzip_out() {
    let fixture = serve();
    let mut raw = Raw::connect(fixture.address).await;
    for (path, accept, packed) in [
        ("/size?n=1024", "Accept-Encoding: gzip\r\n", true),
        ("/size?n=1024", "Accept-Encoding: deflate, *;q=0.1\r\n", true),
        ("/size?n=1023", "Accept-Encoding: gzip\r\n", false),
        ("/size?n=1024", "Accept-Encoding: gzip;q=0\r\n", false),
        ("/size?n=1024", "Accept-Encoding: identity\r\n", false),
        ("/size?n=1024", "", false),
        ("/big", "Accept-Encoding: gzip\r\n", true),
    ] {
        let response = raw.ask(format!("GET {path} HTTP/1.1\r\n{accept}\r\n")).await;
        assert_eq!(response.header("content-encoding"), packed.then_some("gzip"), "{path} {accept}");
        let mut body = Vec::new();
        if packed {
            assert!(response.body.len() < 10_000);
            GzDecoder::new(&response.body[..]).read_to_end(&mut body).unwrap();
        } else {
            body = response.body;
        }
        assert!(body.len() >= 1023 && body.iter().all(|byte| *byte == b'x'));
    }
}

#[tokio::test]
async fn gzip_in() {
    let fixture = serve();
    let mut raw = Raw::connect(fixture.address).await;
    let plain = vec![b'y'; 300_000];
    assert_eq!(raw.ask(post("/echo", "Content-Encoding: gzip\r\n", &gzip(&plain))).await.body, plain);
    // Another value is not a supported compression: the body is used as it is.
    assert_eq!(raw.ask(post("/echo", "Content-Encoding: GZIP\r\n", b"plain")).await.body, b"plain");
}

#[tokio::test]
async fn limits_are_named() {
    let fixture = serve_with(Limits { head: 8192, body: 1000, ..Limits::default() }, false);
    let text = "The request's body is longer than 1000 bytes";
    let mut raw = Raw::connect(fixture.address).await;
    let response = raw.ask(post("/echo", "", &[b'x'; 1001])).await;
    assert_eq!((response.status(), response.text()), (413, text));
    assert_eq!(response.header("connection"), Some("close"));
    assert!(raw.rest().await.is_empty());

    let mut raw = Raw::connect(fixture.address).await;
    let chunk = format!("190\r\n{}\r\n", "x".repeat(400));
    let response =
        raw.ask(format!("POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}{chunk}{chunk}")).await;
    assert_eq!((response.status(), response.text()), (413, text));

    let mut raw = Raw::connect(fixture.address).await;
    let response = raw.ask(post("/echo", "Content-Encoding: gzip\r\n", &gzip(&[0; 100_000]))).await;
    assert_eq!((response.status(), response.text()), (413, text));

    for method in ["GET", "POST"] {
        let mut raw = Raw::connect(fixture.address).await;
        raw.write(format!("{method} /accepted HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(20_000))).await;
        let response = raw.response().await;
        assert_eq!(response.status_line, "HTTP/1.1 431 Request Header Fields Too Large");
        assert_eq!(response.text(), "The request line and headers are longer than 8192 bytes");
        assert!(raw.rest().await.is_empty());
    }
}

#[tokio::test]
async fn a_request_counts_though_its_client_leaves() {
    let fixture = serve();
    for number in 0..50 {
        let mut raw = Raw::connect(fixture.address).await;
        raw.write(post(&format!("/accepted?{number}"), "", b"{}")).await;
        drop(raw);
    }
    until("every request is handled", || fixture.handler.seen.lock().unwrap().len() == 50).await;
}

#[tokio::test]
async fn a_handler_outlives_its_client() {
    let fixture = serve();
    let mut raw = Raw::connect(fixture.address).await;
    raw.write("GET /wait HTTP/1.1\r\n\r\n").await;
    soon("the request", fixture.handler.waiting.notified()).await;
    // Half-closed: the client sends nothing more, but waits for the response.
    raw.stream.shutdown().await.unwrap();
    fixture.handler.release.notify_one();
    assert_eq!(raw.response().await.text(), "waited");
    assert!(raw.rest().await.is_empty());
}

#[tokio::test]
async fn a_handler_whose_client_is_gone_is_dropped_in_time() {
    let fixture = serve();
    let mut raw = Raw::connect(fixture.address).await;
    raw.write("GET /wait HTTP/1.1\r\n\r\n").await;
    soon("the request", fixture.handler.waiting.notified()).await;
    drop(raw);
    // From now on the clock of this test jumps ahead while nothing else happens.
    tokio::time::pause();
    while !fixture.handler.dropped.load(Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn stopping_answers_what_is_under_way() {
    let fixture = serve();
    let (address, handler) = (fixture.address, fixture.handler.clone());
    let mut idle = Raw::connect(address).await;
    assert_eq!(idle.ask("GET /accepted HTTP/1.1\r\n\r\n").await.status(), 202);
    let mut busy = Raw::connect(address).await;
    busy.write("GET /wait HTTP/1.1\r\n\r\n").await;
    soon("the request", handler.waiting.notified()).await;
    let stop = tokio::spawn(fixture.running.stop());
    assert!(idle.rest().await.is_empty());
    handler.release.notify_one();
    assert_eq!(busy.response().await.text(), "waited");
    assert!(busy.rest().await.is_empty());
    soon("the stop", stop).await.unwrap();
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answer_is_cut_off() {
    let fixture = serve();
    let mut raw = Raw::connect(fixture.address).await;
    let size = 100_000_000;
    raw.write(format!("GET /size?n={size} HTTP/1.1\r\n\r\n")).await;
    until("the request is handled", || !fixture.handler.seen.lock().unwrap().is_empty()).await;
    // Meanwhile the clock of this test jumps ahead while nothing else happens.
    tokio::time::pause();
    tokio::time::sleep(3 * Limits::default().stalled).await;
    tokio::time::resume();
    let got = raw.rest().await.len();
    assert!(got < size, "all of it was sent");
}
