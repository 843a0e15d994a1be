//! Tests the client against the server.

use std::time::Duration;

use bytes::Bytes;
use wire::client::{self, Client, ClientError, Subscription};
use wire::http::{JSON, Method};

use crate::raw::soon;
use crate::server::serve;

#[tokio::test]
async fn calls_over_one_connection() {
    let fixture = serve();
    let mut client = Client::new(&fixture.address.to_string()).unwrap();
    for number in 0..10 {
        let body = Bytes::from(format!("{{\"number\":{number}}}"));
        let reply = client.post("/echo", JSON, JSON, &[], body.clone()).await.unwrap();
        assert_eq!((reply.status.as_u16(), reply.body), (200, body));
    }
    let reply = client.request(Method::GET, "/header", &[("X-Test", "value")], Bytes::new()).await.unwrap();
    assert_eq!(reply.text(), "value");
    let reply = client.get("/nosuch").await.unwrap();
    assert_eq!((reply.status.as_u16(), reply.header("Content-Type")), (404, Some("text/plain; charset=utf-8")));
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_is_replaced() {
    let first = serve();
    let address = first.address;
    let mut client = Client::new(&address.to_string()).unwrap();
    client.get("/accepted").await.unwrap();
    first.running.stop().await;
    assert!(matches!(client.get("/accepted").await, Err(ClientError::Connect { .. })));
    let second = serve();
    let mut client = Client::new(&second.address.to_string()).unwrap();
    let close = client.request(Method::GET, "/accepted", &[("Connection", "close")], Bytes::new()).await.unwrap();
    assert_eq!(close.status.as_u16(), 202);
    assert_eq!(client.get("/accepted").await.unwrap().status.as_u16(), 202);
}

#[tokio::test]
async fn redirects_are_reported() {
    let fixture = serve();
    let reply = client::get(&format!("http://{}/redirect", fixture.address)).await.unwrap();
    assert_eq!(reply.status.as_u16(), 307);
    let (address, path) = reply.redirect().unwrap();
    assert_eq!((address.to_string().as_str(), path.as_str()), ("10.0.0.7:5050", "/there?x=1"));
    let reply = client::get(&format!("{}/accepted", fixture.address)).await.unwrap();
    assert!(reply.redirect().is_none());
}

#[tokio::test]
async fn streams() {
    let mut fixture = serve();
    let client = Client::new(&fixture.address.to_string()).unwrap();
    let subscription = client.subscribe("/stream", JSON, JSON, &[], Bytes::from_static(b"{}")).await.unwrap();
    let Subscription::Stream(mut records) = subscription else { panic!("{subscription:?}") };
    assert_eq!(records.header("Mesos-Stream-Id"), Some("the-id"));
    let handle = soon("the handle", fixture.streams.recv()).await.unwrap();
    for number in 0..1000 {
        handle.send(format!("record {number}").as_bytes()).unwrap();
    }
    for number in 0..1000 {
        assert_eq!(soon("a record", records.next()).await.unwrap().unwrap(), format!("record {number}"));
    }
    handle.finish();
    assert_eq!(soon("the end", records.next()).await.unwrap(), None);

    let refused = client.subscribe("/unavailable", JSON, JSON, &[], Bytes::new()).await.unwrap();
    let Subscription::Refused(reply) = refused else { panic!("{refused:?}") };
    assert_eq!((reply.status.as_u16(), reply.text().as_str()), (503, "No leader elected"));
}

#[tokio::test]
async fn a_dropped_stream_closes_its_connection() {
    let mut fixture = serve();
    let client = Client::new(&fixture.address.to_string()).unwrap();
    let stream = client.subscribe("/stream", JSON, JSON, &[], Bytes::new()).await.unwrap();
    let handle = soon("the handle", fixture.streams.recv()).await.unwrap();
    drop(stream);
    soon("the end", handle.wait_end()).await;
}

#[tokio::test]
async fn limits() {
    let fixture = serve();
    let client = Client::new(&fixture.address.to_string()).unwrap();
    let mut impatient = client.with_timeout(Duration::from_millis(20));
    assert!(matches!(impatient.get("/wait").await, Err(ClientError::Timeout { .. })));
    let mut small = Client::new(&fixture.address.to_string()).unwrap().with_limit(1000);
    assert!(matches!(small.get("/big").await, Err(ClientError::TooLong(1000))));
    assert_eq!(small.get("/size?n=1000").await.unwrap().body.len(), 1000);
}

/// A writer that fails after a number of bytes.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        if self.0 == 0 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        let taken = data.len().min(self.0);
        self.0 -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn downloads() {
    let fixture = serve();
    let mut client = Client::new(&fixture.address.to_string()).unwrap();
    let whole = client.get("/big").await.unwrap().body;
    let mut written = Vec::new();
    let reply = client.download("/big", &mut written).await.unwrap();
    assert_eq!((reply.status.as_u16(), reply.body.len()), (200, 0));
    assert_eq!(written, whole);
    written.clear();
    let reply = client.download("/nosuch", &mut written).await.unwrap();
    assert_eq!((reply.status.as_u16(), written.len(), reply.body.is_empty()), (404, 0, false));
    let error = client.download("/big", &mut Full(10)).await.unwrap_err();
    assert!(matches!(error, ClientError::Sink(why) if why.kind() == std::io::ErrorKind::StorageFull));
    assert_eq!(client.download("/big", &mut written).await.unwrap().status.as_u16(), 200, "on a new connection");
    let mut small = Client::new(&fixture.address.to_string()).unwrap().with_limit(1000);
    assert!(matches!(small.download("/big", &mut Vec::new()).await, Err(ClientError::TooLong(1000))));
}

#[test]
fn names_and_ports_are_no_failures_of_tls() {
    let of = |source| ClientError::Connect { address: "h:1".parse().unwrap(), source };
    // An empty name is not sent to a name server.
    let name = std::net::ToSocketAddrs::to_socket_addrs(&("", 1)).unwrap_err();
    assert!(!of(name).is_of_tls());
    assert!(!of(std::io::ErrorKind::ConnectionRefused.into()).is_of_tls());
    // rustls reports a response that is not of its protocol in this way.
    assert!(of(std::io::Error::new(std::io::ErrorKind::InvalidData, "received corrupt message")).is_of_tls());
}
