//! Tests the limit of a server's connections: which ones it closes to admit others, and which ones for a timeout.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpSocket;
use wire::libprocess::Network;
use wire::{ConnectionCounts, Connections, Limits};

use crate::raw::{Raw, soon, until};
use crate::server::{Fixture, serve_with};

const ASK: &str = "GET /accepted HTTP/1.1\r\n\r\n";
const KEEP: &str = "GET /keep HTTP/1.1\r\n\r\n";

fn serve(connections: usize) -> Fixture {
    serve_with(Limits { connections, ..Limits::default() }, false)
}

fn message(to: &str) -> String {
    format!("POST /{to}/n HTTP/1.1\r\nLibprocess-From: slave(1)@127.0.0.1:5051\r\n\r\n")
}

/// Opens a connection, and waits until the server has admitted it.
async fn connect(fixture: &Fixture) -> Raw {
    let before = fixture.connections.counts();
    let raw = Raw::connect(fixture.address).await;
    let admitted = |counts: ConnectionCounts| {
        counts.incoming > before.incoming || counts.displaced > before.displaced || counts.refused > before.refused
    };
    until("the connection is admitted or refused", || admitted(fixture.connections.counts())).await;
    raw
}

/// Opens a connection from an address of this host.
async fn connect_from(source: &str, to: SocketAddr) -> Raw {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{source}:0").parse().unwrap()).unwrap();
    Raw { stream: socket.connect(to).await.unwrap(), buffer: Vec::new() }
}

async fn is_closed(raw: &mut Raw) {
    assert!(raw.rest().await.is_empty(), "the server has sent something");
}

#[tokio::test]
async fn the_connection_that_is_idle_for_longest_is_closed_to_admit_another() {
    const LIMIT: usize = 50;
    let fixture = serve(LIMIT);
    let mut open = Vec::new();
    for _ in 0..LIMIT {
        let mut raw = Raw::connect(fixture.address).await;
        assert_eq!(raw.ask(ASK).await.status(), 202);
        open.push(raw);
    }
    // The first one is no longer the one that has been idle for longest.
    assert_eq!(open[0].ask(ASK).await.status(), 202);
    for closed in 1..=10 {
        let mut raw = Raw::connect(fixture.address).await;
        assert_eq!(raw.ask(ASK).await.status(), 202);
        is_closed(&mut open[closed]).await;
        open.push(raw);
    }
    for (number, raw) in open.iter_mut().enumerate() {
        if !(1..=10).contains(&number) {
            assert_eq!(raw.ask(ASK).await.status(), 202);
        }
    }
    let counts = fixture.connections.counts();
    assert_eq!((counts.limit, counts.incoming, counts.displaced, counts.refused), (LIMIT, LIMIT, 10, 0));
}

#[tokio::test]
async fn connections_without_a_whole_request_are_closed_to_admit_others() {
    for begun in ["", "GET /acc", "POST /master/", "POST /echo HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc"] {
        let fixture = serve(1);
        let mut raw = connect(&fixture).await;
        raw.write(begun).await;
        let mut other = connect(&fixture).await;
        assert_eq!(other.ask(ASK).await.status(), 202, "after {begun:?}");
        is_closed(&mut raw).await;
    }
}

#[tokio::test]
async fn streams_requests_under_way_links_and_kept_connections_are_never_closed_to_admit_others() {
    let mut fixture = serve(5);
    let mut stream = Raw::connect(fixture.address).await;
    stream.write("GET /stream HTTP/1.1\r\n\r\n").await;
    stream.head().await;
    let handle = soon("the stream", fixture.streams.recv()).await.unwrap();
    let mut waiting = Raw::connect(fixture.address).await;
    waiting.write("GET /wait HTTP/1.1\r\n\r\n").await;
    soon("the request", fixture.handler.waiting.notified()).await;
    let mut link = Raw::connect(fixture.address).await;
    assert_eq!(link.ask(message("master")).await.status(), 202);
    let mut kept = Raw::connect(fixture.address).await;
    assert_eq!(kept.ask(KEEP).await.status(), 202);

    // One more connection fits, and is closed to admit the next one.
    for _ in 0..20 {
        let mut other = Raw::connect(fixture.address).await;
        assert_eq!(other.ask(ASK).await.status(), 202);
    }
    handle.send(b"record").unwrap();
    assert_eq!(stream.chunk().await, b"6\nrecord");
    fixture.handler.release.notify_one();
    assert_eq!(waiting.response().await.text(), "waited");
    assert_eq!(link.ask(message("slave(1)")).await.status(), 202);
    assert_eq!(kept.ask(ASK).await.status(), 202);
}

#[tokio::test]
async fn a_message_that_no_process_takes_makes_no_link() {
    for to in ["metrics", "nobody"] {
        let fixture = serve(1);
        let mut raw = Raw::connect(fixture.address).await;
        raw.ask(message(to)).await;
        let mut other = Raw::connect(fixture.address).await;
        assert_eq!(other.ask(ASK).await.status(), 202);
        is_closed(&mut raw).await;
    }
}

#[tokio::test]
async fn a_link_may_begin_after_other_requests() {
    let fixture = serve(1);
    let mut raw = Raw::connect(fixture.address).await;
    assert_eq!(raw.ask(ASK).await.status(), 202);
    assert_eq!(raw.ask(message("master")).await.status(), 202);
    is_closed(&mut Raw::connect(fixture.address).await).await;
    assert_eq!(raw.ask(ASK).await.status(), 202);
}

#[tokio::test]
async fn a_source_of_many_connections_closes_its_own_ones() {
    let fixture = serve(10);
    let mut few = Vec::new();
    for _ in 0..3 {
        let mut raw = connect_from("127.0.0.1", fixture.address).await;
        assert_eq!(raw.ask(ASK).await.status(), 202);
        few.push(raw);
    }
    let mut many = Vec::new();
    for _ in 0..100 {
        let mut raw = connect_from("127.0.0.2", fixture.address).await;
        assert_eq!(raw.ask(ASK).await.status(), 202);
        many.push(raw);
    }
    for raw in &mut few {
        assert_eq!(raw.ask(ASK).await.status(), 202);
    }
    // Another connection from the first address closes one of the second address, too.
    let mut other = connect_from("127.0.0.1", fixture.address).await;
    assert_eq!(other.ask(ASK).await.status(), 202);
    few.push(other);
    for raw in &mut few {
        assert_eq!(raw.ask(ASK).await.status(), 202);
    }
    for raw in &mut many[..94] {
        is_closed(raw).await;
    }
    for raw in &mut many[94..] {
        assert_eq!(raw.ask(ASK).await.status(), 202);
    }
}

#[tokio::test]
async fn connections_are_refused_when_none_is_idle() {
    let mut fixture = serve(2);
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut raw = Raw::connect(fixture.address).await;
        raw.write("GET /stream HTTP/1.1\r\n\r\n").await;
        raw.head().await;
        open.push((raw, soon("the stream", fixture.streams.recv()).await.unwrap()));
    }
    for refused in 1..=20 {
        is_closed(&mut Raw::connect(fixture.address).await).await;
        assert_eq!(fixture.connections.counts().refused, refused);
    }
    drop(open.pop());
    until("the stream's connection is closed", || fixture.connections.counts().incoming < 2).await;
    let mut raw = Raw::connect(fixture.address).await;
    assert_eq!(raw.ask(ASK).await.status(), 202);
}

#[tokio::test]
async fn outgoing_connections_count_and_close_idle_ones() {
    let (other, fixture) = (serve(100), serve(2));
    let (sender, mut exited) = tokio::sync::mpsc::unbounded_channel();
    let network = Network::with_connections(Limits::default(), fixture.connections.clone(), None, move |pid| {
        let _ = sender.send(pid);
    });
    let mut idle = Raw::connect(fixture.address).await;
    assert_eq!(idle.ask(ASK).await.status(), 202);
    let mut kept = Raw::connect(fixture.address).await;
    assert_eq!(kept.ask(KEEP).await.status(), 202);

    network.link(&format!("master@{}", other.address).parse().unwrap());
    is_closed(&mut idle).await;
    until("the link is there", || other.connections.counts().incoming == 1).await;
    let counts = fixture.connections.counts();
    assert_eq!((counts.incoming, counts.outgoing, counts.displaced), (1, 1, 1));
    is_closed(&mut Raw::connect(fixture.address).await).await;

    // There is no idle connection that could be closed for a second link.
    let another = format!("slave(1)@{}", serve(1).address).parse().unwrap();
    network.link(&another);
    assert_eq!(soon("the exited event", exited.recv()).await, Some(another));
    drop(network);
    until("the first link is closed", || fixture.connections.counts().outgoing == 0).await;
}

#[tokio::test]
async fn slow_requests_and_idle_connections_are_closed_in_time() {
    let mut fixture = serve(100);
    // One connection of each kind, in the order in which they end.
    let mut heads = [connect(&fixture).await, connect(&fixture).await];
    heads[0].write("GET /accepted HT").await;
    heads[1].write("POST /master/n HTTP/1.1\r\nLibpro").await;
    let mut bodies = [connect(&fixture).await, connect(&fixture).await];
    bodies[0].write("POST /echo HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc").await;
    bodies[1].write(message("master").replace("\r\n\r\n", "\r\nContent-Length: 9\r\n\r\nabc")).await;
    let mut idle = [connect(&fixture).await, connect(&fixture).await];
    assert_eq!(idle[0].ask(ASK).await.status(), 202);
    assert_eq!(idle[1].ask(message("metrics")).await.status(), 202);
    let mut first = connect(&fixture).await;
    let mut stream = connect(&fixture).await;
    stream.write("GET /stream HTTP/1.1\r\n\r\n").await;
    stream.head().await;
    let _handle = soon("the stream", fixture.streams.recv()).await.unwrap();
    let mut link = connect(&fixture).await;
    assert_eq!(link.ask(message("master")).await.status(), 202);
    let mut link_amid_a_message = connect(&fixture).await;
    link_amid_a_message.write(message("master") + "POST /mas").await;
    assert_eq!(link_amid_a_message.response().await.status(), 202);
    let mut kept = connect(&fixture).await;
    assert_eq!(kept.ask(KEEP).await.status(), 202);

    let limits = Limits::default();
    let timed_out = |fixture: &Fixture| fixture.connections.counts().timed_out;
    // From now on the clock of this test jumps ahead while nothing else happens.
    tokio::time::pause();
    let slack = Duration::from_secs(15);
    tokio::time::sleep(limits.request_head + slack).await;
    assert_eq!(timed_out(&fixture), 2);
    tokio::time::sleep(limits.stalled - limits.request_head).await;
    assert_eq!(timed_out(&fixture), 4);
    tokio::time::sleep(limits.keep_alive - limits.stalled).await;
    assert_eq!(timed_out(&fixture), 6);
    tokio::time::sleep(100 * limits.keep_alive).await;
    assert_eq!(timed_out(&fixture), 6);
    tokio::time::resume();

    for raw in heads.iter_mut().chain(&mut bodies).chain(&mut idle) {
        is_closed(raw).await;
    }
    assert_eq!(first.ask(ASK).await.status(), 202);
    assert_eq!(link.ask(message("master")).await.status(), 202);
    link_amid_a_message.write(&message("master")["POST /mas".len()..]).await;
    assert_eq!(link_amid_a_message.response().await.status(), 202);
    assert_eq!(kept.ask(ASK).await.status(), 202);
    assert_eq!(fixture.connections.counts().incoming, 5);
}

/// Lets the clock of this test jump ahead while nothing else happens.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::sleep(time).await;
    tokio::time::resume();
}

/// A pause that a body may make.
const PAUSE: Duration = Duration::from_secs(40);

#[tokio::test]
async fn a_body_that_keeps_its_rate_is_not_slow() {
    const PARTS: usize = 9;
    let fixture = serve(100);
    let mut raw = connect(&fixture).await;
    let part = "x".repeat((PAUSE.as_secs() * Limits::default().body_rate) as usize + 1000);
    raw.write(format!("POST /echo HTTP/1.1\r\nContent-Length: {}\r\n\r\n", PARTS * part.len())).await;
    for _ in 0..PARTS {
        pass(PAUSE).await;
        raw.write(&part).await;
    }
    assert_eq!(raw.response().await.text(), part.repeat(PARTS));
}

#[tokio::test]
async fn bodies_that_go_on_too_slowly_are_closed() {
    let fixture = serve(100);
    let mut bodies = [connect(&fixture).await, connect(&fixture).await];
    bodies[0].write("POST /echo HTTP/1.1\r\nContent-Length: 9\r\n\r\na").await;
    bodies[1].write(message("master").replace("\r\n\r\n", "\r\nContent-Length: 9\r\n\r\na")).await;
    pass(PAUSE).await;
    assert_eq!(fixture.connections.counts().timed_out, 0);
    for raw in &mut bodies {
        raw.write("b").await;
    }
    pass(PAUSE).await;
    until("both are closed", || fixture.connections.counts().timed_out == 2).await;
    for raw in &mut bodies {
        is_closed(raw).await;
    }
}

#[tokio::test]
async fn a_body_that_counts_closes_also_a_link_or_a_kept_connection() {
    let fixture = serve(100);
    let begun = "x".repeat(20 << 10);
    let mut link = connect(&fixture).await;
    assert_eq!(link.ask(message("master")).await.status(), 202);
    link.write(message("master").replace("\r\n\r\n", "\r\nContent-Length: 90000\r\n\r\n") + &begun).await;
    let mut short = connect(&fixture).await;
    assert_eq!(short.ask(message("master")).await.status(), 202);
    short.write(message("master").replace("\r\n\r\n", "\r\nContent-Length: 9\r\n\r\nabc")).await;
    let mut kept = connect(&fixture).await;
    assert_eq!(kept.ask(KEEP).await.status(), 202);
    kept.write("POST /echo HTTP/1.1\r\nContent-Length: 90000\r\n\r\n".to_owned() + &begun).await;
    pass(10 * Limits::default().stalled).await;
    until("both are closed", || fixture.connections.counts().timed_out == 2).await;
    is_closed(&mut link).await;
    is_closed(&mut kept).await;
    short.write("defghi").await;
    assert_eq!(short.response().await.status(), 202, "its body does not count");
}

#[tokio::test]
async fn a_streamed_body_may_be_slow() {
    let fixture = serve(100);
    let mut raw = connect(&fixture).await;
    raw.write("POST /echo HTTP/1.1\r\nContent-Type: application/recordio\r\nContent-Length: 3\r\n\r\n").await;
    for byte in "abc".bytes() {
        pass(10 * Limits::default().stalled).await;
        raw.write([byte]).await;
    }
    assert_eq!(raw.response().await.text(), "abc");
}

#[test]
fn counts_of_no_connections() {
    let counts = Connections::new(7, "this is a test").counts();
    assert_eq!(counts, ConnectionCounts { limit: 7, ..ConnectionCounts::default() });
}

/// A request whose head is refused.
const REFUSED: &str = "GET /secret HTTP/1.1\r\n\r\n";

#[tokio::test]
async fn answers_to_many_refused_requests_wait_and_others_do_not() {
    const CLIENTS: usize = 40;
    let fixture = serve(2 * CLIENTS);
    let mut refused = Vec::new();
    for _ in 0..CLIENTS {
        let mut raw = connect(&fixture).await;
        raw.write(REFUSED.repeat(10)).await;
        refused.push(raw);
    }
    until("refusals wait", || fixture.connections.counts().delayed >= CLIENTS as u64).await;
    let mut other = connect(&fixture).await;
    assert_eq!(other.ask(ASK).await.status(), 202);
    for raw in &mut refused {
        for _ in 0..10 {
            assert_eq!(raw.response().await.status(), 401);
        }
        assert_eq!(raw.ask(ASK).await.status(), 202, "the connection is used on");
    }
}

#[tokio::test]
async fn connections_whose_refusal_waits_are_closed_to_admit_others() {
    const LIMIT: usize = 40;
    let fixture = serve(LIMIT);
    let mut refused = Vec::new();
    for _ in 0..LIMIT {
        let mut raw = connect(&fixture).await;
        raw.write(REFUSED.repeat(100)).await;
        refused.push(raw);
    }
    until("refusals wait", || fixture.connections.counts().delayed >= LIMIT as u64).await;
    let mut other = Raw::connect(fixture.address).await;
    assert_eq!(other.ask(ASK).await.status(), 202);
    let counts = fixture.connections.counts();
    assert_eq!((counts.displaced, counts.refused), (1, 0));
}

#[tokio::test]
async fn a_server_that_stops_does_not_wait_for_refusals() {
    let fixture = serve(100);
    let mut raw = connect(&fixture).await;
    raw.write(REFUSED.repeat(2000)).await;
    until("a refusal waits", || fixture.connections.counts().delayed > 0).await;
    soon("the server stops", fixture.running.stop()).await;
    let counts = fixture.connections;
    until("the connection is closed", || counts.counts().incoming == 0).await;
}

#[tokio::test]
async fn refusals_that_close_the_connection_wait_as_well() {
    let fixture = serve(1000);
    let body_too_long = "POST /small HTTP/1.1\r\nContent-Length: 5000\r\n\r\nbody";
    let head_too_long = format!("GET / HTTP/1.1\r\nX-Long: {}\r\n\r\n", "x".repeat(200 << 10));
    let requests = [(body_too_long, Some(413)), (&head_too_long, Some(431)), ("POST\r\n\r\n", None)];
    let mut open = Vec::new();
    // The first ones are refused without a delay.
    while fixture.connections.counts().delayed < 30 {
        for (request, status) in requests {
            let mut raw = Raw::connect(fixture.address).await;
            // The connection of a refused client may be closed while it sends.
            let _ = raw.stream.write_all(request.as_bytes()).await;
            open.push((raw, status));
        }
    }
    for (raw, status) in &mut open {
        if let Some(status) = *status {
            let answer = raw.response().await;
            assert_eq!((answer.status(), answer.header("connection")), (status, Some("close")));
            assert!(answer.text().ends_with("bytes"), "{answer:?}");
        }
        is_closed(raw).await;
    }
}
