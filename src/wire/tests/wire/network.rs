//! Tests sent messages, links and exited events: docs/mesos/libprocess.md.

use std::net::SocketAddr;
use std::time::Duration;

use base::Pid;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use wire::Limits;
use wire::libprocess::Network;

use crate::raw::{Raw, soon, until};
use crate::server::serve;

fn network(limits: Limits) -> (Network, mpsc::UnboundedReceiver<Pid>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let network = Network::new(limits, move |pid| {
        let _ = sender.send(pid);
    });
    (network, receiver)
}

fn pid(id: &str, address: SocketAddr) -> Pid {
    format!("{id}@{address}").parse().unwrap()
}

fn me() -> Pid {
    "master@127.0.0.1:5050".parse().unwrap()
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

async fn accept(listener: &TcpListener) -> Raw {
    let (stream, _) = soon("a connection", listener.accept()).await.unwrap();
    Raw { stream, buffer: Vec::new() }
}

#[tokio::test]
async fn exact_bytes_and_a_temporary_connection() {
    let (listener, address) = listen().await;
    let (network, _exited) = network(Limits::default());
    network.send(&me(), &pid("slave(1)", address), "mesos.internal.PingSlaveMessage", b"\x08\x01");
    let mut raw = accept(&listener).await;
    let expected = "POST /slave(1)/mesos.internal.PingSlaveMessage HTTP/1.1\r\n\
                    User-Agent: libprocess/master@127.0.0.1:5050\r\nLibprocess-From: master@127.0.0.1:5050\r\n\
                    Connection: Keep-Alive\r\nHost: \r\nTransfer-Encoding: chunked\r\n\r\n2\r\n\u{8}\u{1}\r\n0\r\n\r\n";
    // Nothing else follows: the connection is closed with its queue empty.
    assert_eq!(String::from_utf8(raw.rest().await).unwrap(), expected);
    until("the connection is forgotten", || network.connections() == 0).await;
}

#[tokio::test]
async fn a_link_sends_nothing_and_carries_everything() {
    let (listener, address) = listen().await;
    let (network, mut exited) = network(Limits::default());
    let (one, two) = (pid("slave(1)", address), pid("executor(1)", address));
    network.link(&one);
    let mut raw = accept(&listener).await;
    network.link(&two);
    network.link(&one);
    for number in 0..3 {
        network.send(&me(), &one, &format!("n{number}"), b"");
        let request = String::from_utf8(raw.take_until(b"\r\n\r\n").await).unwrap();
        assert!(request.starts_with(&format!("POST /slave(1)/n{number} HTTP/1.1\r\n")), "{request}");
        raw.write("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").await;
    }
    assert_eq!(network.connections(), 1);
    drop(raw);
    let mut gone = vec![
        soon("an exited event", exited.recv()).await.unwrap(),
        soon("an exited event", exited.recv()).await.unwrap(),
    ];
    gone.sort();
    assert_eq!(gone, [two, one.clone()]);
    until("the connection is forgotten", || network.connections() == 0).await;
    // The link was removed with its connection, so it is made again.
    network.link(&one);
    drop(accept(&listener).await);
    assert_eq!(soon("an exited event", exited.recv()).await.unwrap(), one);
    assert!(exited.try_recv().is_err());
}

#[tokio::test]
async fn a_link_to_no_process_exits() {
    let (listener, address) = listen().await;
    drop(listener);
    let (network, mut exited) = network(Limits::default());
    network.send(&me(), &pid("x", address), "lost", b"");
    network.link(&pid("slave(1)", address));
    assert_eq!(soon("an exited event", exited.recv()).await.unwrap(), pid("slave(1)", address));
}

#[tokio::test]
async fn unlinked_connections_close_without_event() {
    let (listener, address) = listen().await;
    let (network, mut exited) = network(Limits::default());
    let to = pid("slave(1)", address);
    network.link(&to);
    let mut raw = accept(&listener).await;
    network.unlink(&to);
    assert!(raw.rest().await.is_empty());
    until("the connection is forgotten", || network.connections() == 0).await;
    assert!(exited.try_recv().is_err());
}

#[tokio::test]
async fn relinking_replaces_the_connection() {
    let (listener, address) = listen().await;
    let (network, mut exited) = network(Limits::default());
    let (one, two) = (pid("slave(1)", address), pid("slave(2)", address));
    network.link(&one);
    let mut old = accept(&listener).await;
    network.relink(&two);
    let mut new = accept(&listener).await;
    assert!(old.rest().await.is_empty());
    network.send(&me(), &one, "n", b"");
    assert!(new.take_until(b"\r\n\r\n").await.starts_with(b"POST /slave(1)/n "));
    assert!(exited.try_recv().is_err(), "the replaced connection told its links");
    drop(new);
    let mut gone = vec![
        soon("an exited event", exited.recv()).await.unwrap(),
        soon("an exited event", exited.recv()).await.unwrap(),
    ];
    gone.sort();
    assert_eq!(gone, [one, two]);
}

#[tokio::test]
async fn a_peer_that_does_not_read_is_given_up() {
    let (listener, address) = listen().await;
    let (network, mut exited) = network(Limits { peer: 1 << 20, ..Limits::default() });
    let to = pid("slave(1)", address);
    network.link(&to);
    let _silent = accept(&listener).await;
    let body = vec![0; 100_000];
    for _ in 0..1000 {
        network.send(&me(), &to, "n", &body);
        tokio::task::yield_now().await;
        if !exited.is_empty() {
            break;
        }
    }
    assert_eq!(soon("an exited event", exited.recv()).await.unwrap(), to);
}

#[tokio::test]
async fn two_networks_talk() {
    let mut a = serve();
    let mut b = serve();
    let (to_b, _exited_a) = network(Limits::default());
    let (to_a, mut exited_b) = network(Limits::default());
    let (pid_a, pid_b) = (pid("master", a.address), pid("slave(1)", b.address));
    to_b.link(&pid_b);
    to_a.link(&pid_a);
    for number in 0..2000 {
        to_b.send(&pid_a, &pid_b, "ping", format!("{number}").as_bytes());
    }
    for number in 0..2000 {
        let got = soon("a message", b.messages.recv()).await.unwrap();
        assert_eq!((got.name.as_str(), &got.from, got.body), ("ping", &pid_a, format!("{number}").into()));
        to_a.send(&pid_b, &got.from, "pong", b"");
    }
    for _ in 0..2000 {
        assert_eq!(soon("a message", a.messages.recv()).await.unwrap().from, pid_b);
    }
    assert_eq!((to_a.connections(), to_b.connections()), (1, 1));
    a.running.stop().await;
    assert_eq!(soon("an exited event", exited_b.recv()).await.unwrap(), pid_a);
}

#[tokio::test]
async fn unlinked_messages_all_arrive() {
    let mut fixture = serve();
    let (network, _exited) = network(Limits::default());
    let to = pid("master", fixture.address);
    // Temporary connections open and close in between; no message may be lost with one.
    for number in 0..300 {
        network.send(&me(), &to, "n", format!("{number}").as_bytes());
        if number % 7 == 0 {
            until("the connection is forgotten", || network.connections() == 0).await;
        }
    }
    let mut got = Vec::new();
    for _ in 0..300 {
        let message = soon("a message", fixture.messages.recv()).await.unwrap();
        got.push(String::from_utf8(message.body.to_vec()).unwrap().parse::<u32>().unwrap());
    }
    got.sort_unstable();
    assert_eq!(got, (0..300).collect::<Vec<_>>());
}

#[tokio::test]
async fn sending_works_from_any_thread() {
    let mut fixture = serve();
    let (network, _exited) = network(Limits::default());
    let to = pid("master", fixture.address);
    let clone = network.clone();
    let thread = std::thread::spawn(move || clone.send(&me(), &to, "n", b"x"));
    thread.join().unwrap();
    assert_eq!(soon("a message", fixture.messages.recv()).await.unwrap().body, "x");
}

#[tokio::test]
async fn closing_a_network_reports_no_exits() {
    let (listener, address) = listen().await;
    let (network, mut exited) = network(Limits::default());
    network.link(&pid("slave(1)", address));
    let mut raw = accept(&listener).await;
    network.close();
    assert!(raw.rest().await.is_empty());
    assert_eq!(network.connections(), 0);
    assert!(tokio::time::timeout(Duration::from_millis(20), exited.recv()).await.is_err());
}

#[tokio::test]
async fn the_last_clone_closes_the_connections() {
    let (listener, address) = listen().await;
    let (network, mut exited) = network(Limits::default());
    network.link(&pid("slave(1)", address));
    let mut raw = accept(&listener).await;
    let clone = network.clone();
    drop(network);
    clone.send(&me(), &pid("slave(1)", address), "n", b"");
    raw.take_until(b"\r\n\r\n").await;
    drop(clone);
    assert!(raw.rest().await.is_empty());
    assert!(exited.recv().await.is_none(), "an exited event, though none is requested any more");
}

#[tokio::test]
async fn flushed_is_written() {
    let mut fixture = serve();
    let (network, _exited) = network(Limits::default());
    let to = pid("master", fixture.address);
    network.link(&to);
    let body = vec![b'x'; 10_000_000];
    network.send(&me(), &to, "large", &body);
    assert!(network.flush(crate::raw::PATIENCE).await);
    drop(network);
    assert_eq!(soon("the message", fixture.messages.recv()).await.unwrap().body.len(), body.len());
    let (network, _exited) = crate::network::network(Limits::default());
    assert!(network.flush(Duration::ZERO).await, "nothing to flush takes time");
}
