//! Tests the handling of a request before its body is read, and the limit of all bodies together.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use wire::Limits;

use crate::raw::{Raw, soon};
use crate::server::{serve, serve_with};

fn head(path: &str, length: usize, more: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n{more}\r\n")
}

#[tokio::test]
async fn refusals_are_answered_before_the_body_is_read() {
    let fixture = serve();
    let mut raw = Raw::connect(fixture.address).await;
    // The body is never sent.
    let response = raw.ask(head("/secret", 50 << 20, "")).await;
    assert_eq!((response.status(), response.header("connection")), (401, Some("close")));
    assert!(fixture.handler.seen.lock().unwrap().is_empty());
    // A short body is read, and its connection remains usable.
    let mut raw = Raw::connect(fixture.address).await;
    let response = raw.ask(head("/secret", 5, "") + "12345").await;
    assert_eq!((response.status(), response.header("connection")), (401, None));
    let response = raw.ask(head("/secret", 5, "Authorization: x\r\n") + "12345").await;
    assert_eq!((response.status(), response.text()), (200, "read"));
}

#[tokio::test]
async fn each_route_has_its_limit() {
    let fixture = serve();
    let mut raw = Raw::connect(fixture.address).await;
    assert_eq!(raw.ask(head("/small", 1000, "") + &"x".repeat(1000)).await.status(), 200);
    let response = raw.ask(head("/small", 1001, "")).await;
    assert_eq!((response.status(), response.text()), (413, "The request's body is longer than 1000 bytes"));
}

#[tokio::test]
async fn all_bodies_together_are_limited() {
    let fixture = serve_with(Limits { bodies: 256 << 10, ..Limits::default() }, false);
    // Short enough to be sent at once: a refused body is read for only two seconds.
    let part = "x".repeat(64 << 10);
    // One address may use half of the budget: two incomplete bodies use it up.
    let mut slow = Vec::new();
    for _ in 0..2 {
        let mut raw = Raw::connect(fixture.address).await;
        raw.write(head("/echo", 128 << 10, "") + &part).await;
        slow.push(raw);
    }
    let mut raw = Raw::connect(fixture.address).await;
    let busy = soon("the budget is used up", async {
        loop {
            let response = raw.ask(head("/echo", part.len(), "") + &part).await;
            if response.status() != 200 {
                return response;
            }
        }
    });
    let response = busy.await;
    assert_eq!(response.status(), 503);
    assert!(response.text().contains("too large together"), "{}", response.text());
    let mut raw = Raw::connect(fixture.address).await;
    assert_eq!(raw.ask(head("/echo", 1000, "") + &"x".repeat(1000)).await.status(), 200, "short ones are not counted");
    drop(slow);
    soon("their bytes are given back", async {
        let mut status = 503;
        while status != 200 {
            let mut raw = Raw::connect(fixture.address).await;
            status = raw.ask(head("/echo", part.len(), "") + &part).await.status();
        }
    })
    .await;
}

#[tokio::test]
async fn messages_count_as_well() {
    let fixture = serve_with(Limits { bodies: 1 << 20, ..Limits::default() }, false);
    let message = |length: usize| {
        format!("POST /master/x HTTP/1.1\r\nLibprocess-From: a@127.0.0.1:1\r\nContent-Length: {length}\r\n\r\n")
    };
    let mut raw = Raw::connect(fixture.address).await;
    raw.write(message(1 << 20) + &"x".repeat(600 << 10)).await;
    let response = raw.response().await;
    assert_eq!(response.status(), 503);
}

#[tokio::test]
async fn bombs_are_not_unpacked() {
    let fixture = serve();
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    let zeros = vec![0; 1 << 20];
    (0..60).for_each(|_| packed.write_all(&zeros).unwrap());
    let packed = packed.finish().unwrap();
    assert!(packed.len() < 64 << 10);
    let mut raw = Raw::connect(fixture.address).await;
    raw.write(head("/echo", packed.len(), "Content-Encoding: gzip\r\n")).await;
    raw.write(&packed).await;
    let response = raw.response().await;
    assert_eq!((response.status(), response.text()), (413, "The request's body is compressed too many times"));
}
