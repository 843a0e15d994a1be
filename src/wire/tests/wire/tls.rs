//! Tests TLS beside plain connections: handshakes, certificates, downgrade, reload, and clients that break the rules.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::Pid;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use wire::client::{Client, ClientError, Scheme, Subscription};
use wire::libprocess::Network;
use wire::tls::{BlockingStream, Role, Settings, Tls};
use wire::{Connections, Limits};

use crate::raw::{Raw, soon, until};
use crate::server::{Fixture, serve, serve_tls};

/// A certificate authority, and its directory.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: PathBuf,
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl Authority {
    fn new(name: &str) -> Authority {
        let directory = std::env::temp_dir().join(format!("wire-tls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(directory.join("ca.pem"), issuer.pem()).unwrap();
        Authority { issuer, directory }
    }

    /// Writes a certificate and its key.
    fn issue(&self, name: &str, host: SanType) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.subject_alt_names = vec![host];
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.path(name), certificate.pem() + &key.serialize_pem()).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.pem"))
    }

    fn settings(&self, name: &str) -> Settings {
        let file = self.path(name);
        Settings {
            enabled: true,
            cert_file: Some(file.clone()),
            key_file: Some(file),
            ca_file: Some(self.path("ca")),
            verify_server_cert: Some(true),
            ..Settings::default()
        }
    }

    fn server(&self, name: &str) -> Tls {
        Tls::load(self.settings(name), Role::Server).unwrap()
    }
}

fn local() -> SanType {
    SanType::IpAddress([127, 0, 0, 1].into())
}

/// Creates an authority with the certificate `server` of 127.0.0.1.
fn authority(name: &str) -> Authority {
    let authority = Authority::new(name);
    authority.issue("server", local());
    authority
}

fn fixture(tls: Tls) -> Fixture {
    serve_tls(Limits::default(), false, Some(tls))
}

fn trusting(file: PathBuf) -> Tls {
    Tls::load(Settings { ca_file: Some(file), ..Settings::default() }, Role::Client).unwrap()
}

fn client(address: SocketAddr, tls: Tls) -> Client {
    Client::new(&format!("https://{address}")).unwrap().with_tls(tls)
}

/// Returns the error of a failed connection, with its causes.
fn why(error: &ClientError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

#[tokio::test]
async fn requests_bodies_and_streams_over_tls() {
    let authority = authority("requests");
    let mut fixture = fixture(authority.server("server"));
    let mut client = client(fixture.address, trusting(authority.path("ca")));
    for _ in 0..3 {
        assert_eq!(client.get("/echo").await.unwrap().status, 200);
    }
    // Longer than all buffers of a connection, in both directions.
    let body: bytes::Bytes = (0..8_u32 << 20).map(|n| n.to_le_bytes()[0] ^ n.to_le_bytes()[1]).collect();
    let reply = client.post("/echo", "application/octet-stream", "*/*", &[], body.clone()).await.unwrap();
    assert!(reply.body == body, "{} bytes", reply.body.len());
    let Subscription::Stream(mut records) =
        client.subscribe("/stream", "application/json", "application/json", &[], bytes::Bytes::new()).await.unwrap()
    else {
        panic!("no stream");
    };
    let stream = soon("a stream", fixture.streams.recv()).await.unwrap();
    for length in [1, 100, 3 << 20] {
        stream.send(&vec![b'x'; length]).unwrap();
        assert_eq!(soon("a record", records.next()).await.unwrap().unwrap().len(), length);
    }
    drop(records);
    soon("the end of the stream", stream.wait_end()).await;
}

#[tokio::test]
async fn messages_and_links_over_tls() {
    let authority = authority("messages");
    let mut fixture = fixture(authority.server("server"));
    let (sender, mut exited) = mpsc::unbounded_channel();
    let connections = Connections::new(100, "this is a test");
    let network =
        Network::with_connections(Limits::default(), connections, Some(authority.server("server")), move |pid: Pid| {
            let _ = sender.send(pid);
        });
    let me: Pid = "slave(1)@127.0.0.1:5051".parse().unwrap();
    let master: Pid = format!("master@{}", fixture.address).parse().unwrap();
    network.send(&me, &master, "once", b"1");
    assert_eq!(soon("a message", fixture.messages.recv()).await.unwrap().name, "once");
    until("the connection is closed", || network.connections() == 0).await;
    network.link(&master);
    for number in 0..200_u32 {
        network.send(&me, &master, "many", &vec![b'x'; (number as usize) << 9]);
    }
    for number in 0..200_usize {
        let message = soon("a message", fixture.messages.recv()).await.unwrap();
        assert_eq!((message.name.as_str(), message.body.len()), ("many", number << 9));
    }
    assert!(network.flush(Duration::from_secs(10)).await);
    fixture.running.stop().await;
    assert_eq!(soon("an exited event", exited.recv()).await.unwrap(), master);
}

#[tokio::test]
async fn plain_clients_need_downgrade() {
    let authority = authority("downgrade");
    let strict = fixture(authority.server("server"));
    let mut raw = Raw::connect(strict.address).await;
    raw.write("GET /echo HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let answer = String::from_utf8(raw.rest().await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 Bad Request") && answer.ends_with("use https://"), "{answer}");

    let lenient = Settings { support_downgrade: true, ..authority.settings("server") };
    let both = fixture(Tls::load(lenient.clone(), Role::Server).unwrap());
    let mut plain = Client::new(&format!("http://{}", both.address)).unwrap();
    assert_eq!(plain.get("/echo").await.unwrap().status, 200);
    let mut tls = client(both.address, trusting(authority.path("ca")));
    assert_eq!(tls.get("/echo").await.unwrap().status, 200);

    // The other direction: a server without TLS.
    let mut without = serve();
    let asked = client(without.address, Tls::load(lenient.clone(), Role::Client).unwrap()).get("/echo").await;
    assert!(asked.is_err(), "https is never plain");
    let mut configured = Client::new(&without.address.to_string()).unwrap();
    assert_eq!(configured.address().scheme(), Scheme::Configured);
    configured = configured.with_tls(Tls::load(lenient.clone(), Role::Client).unwrap());
    assert_eq!(configured.get("/echo").await.unwrap().status, 200);
    let tls = Some(Tls::load(lenient, Role::Server).unwrap());
    let network = Network::with_connections(Limits::default(), Connections::new(9, ""), tls, |_| ());
    let me: Pid = "slave(1)@127.0.0.1:5051".parse().unwrap();
    let master: Pid = format!("master@{}", without.address).parse().unwrap();
    network.send(&me, &master, "plain", b"1");
    assert_eq!(soon("a message", without.messages.recv()).await.unwrap().name, "plain");
}

#[tokio::test]
async fn a_network_without_downgrade_sends_nothing_in_plain() {
    let authority = authority("no-downgrade");
    let mut without = serve();
    let (sender, mut exited) = mpsc::unbounded_channel();
    let tls = Some(authority.server("server"));
    let network = Network::with_connections(Limits::default(), Connections::new(9, ""), tls, move |pid: Pid| {
        let _ = sender.send(pid);
    });
    let master: Pid = format!("master@{}", without.address).parse().unwrap();
    network.link(&master);
    network.send(&"slave(1)@127.0.0.1:5051".parse().unwrap(), &master, "secret", b"1");
    assert_eq!(soon("an exited event", exited.recv()).await.unwrap(), master);
    assert!(without.messages.try_recv().is_err());
}

#[tokio::test]
async fn certificates_are_verified() {
    let (authority, other) = (authority("verified"), self::authority("other"));
    authority.issue("elsewhere", SanType::IpAddress([10, 0, 0, 1].into()));
    let right = fixture(authority.server("server"));
    let error = client(right.address, trusting(other.path("ca"))).get("/echo").await.unwrap_err();
    assert!(why(&error).contains("UnknownIssuer"), "{}", why(&error));
    let wrong = fixture(authority.server("elsewhere"));
    let error = client(wrong.address, trusting(authority.path("ca"))).get("/echo").await.unwrap_err();
    assert!(why(&error).contains("not valid for name"), "{}", why(&error));
    // This is Mesos's default for its own connections.
    let off = Settings { verify_server_cert: Some(false), ..Settings::default() };
    let off = Tls::load(off, Role::Client).unwrap();
    assert_eq!(client(wrong.address, off).get("/echo").await.unwrap().status, 200);
}

#[tokio::test]
async fn client_certificates_are_required() {
    let (authority, other) = (authority("required"), self::authority("foreign"));
    let settings = Settings { require_client_cert: true, ..authority.settings("server") };
    let fixture = fixture(Tls::load(settings.clone(), Role::Server).unwrap());
    let with = Tls::load(settings.clone(), Role::Client).unwrap();
    assert_eq!(client(fixture.address, with).get("/echo").await.unwrap().status, 200);
    assert!(client(fixture.address, trusting(authority.path("ca"))).get("/echo").await.is_err());
    let foreign = Settings { cert_file: Some(other.path("server")), key_file: Some(other.path("server")), ..settings };
    assert!(client(fixture.address, Tls::load(foreign, Role::Client).unwrap()).get("/echo").await.is_err());
    assert_eq!(fixture.handler.seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn changed_files_are_used_and_broken_ones_are_not() {
    let authority = authority("reload");
    let settings = Settings { reload_interval: Duration::ZERO, ..authority.settings("server") };
    let fixture = fixture(Tls::load(settings, Role::Server).unwrap());
    let ca = authority.path("ca");
    let answers = |ca: PathBuf| async move { client(fixture.address, trusting(ca)).get("/echo").await.is_ok() };
    assert!(answers(ca.clone()).await);
    std::fs::write(authority.path("server"), "no certificate").unwrap();
    assert!(answers(ca.clone()).await, "the former certificate stays");
    // Another authority has issued it, so that a client notices the change.
    let other = self::authority("reload-other");
    std::fs::copy(other.path("server"), authority.path("server")).unwrap();
    assert!(answers(other.path("ca")).await, "the new certificate is used");
    assert!(!answers(ca).await);
}

#[tokio::test]
async fn a_half_handshake_ends_and_does_not_block_others() {
    let authority = authority("half");
    let limits = Limits { request_head: Duration::from_millis(300), ..Limits::default() };
    let fixture = serve_tls(limits, false, Some(authority.server("server")));
    let mut half = Raw::connect(fixture.address).await;
    // The beginning of a ClientHello.
    half.write([0x16, 3, 1, 2, 0, 1, 0, 1]).await;
    let mut silent = Raw::connect(fixture.address).await;
    assert_eq!(client(fixture.address, trusting(authority.path("ca"))).get("/echo").await.unwrap().status, 200);
    assert!(half.rest().await.is_empty());
    until("it is counted", || fixture.connections.counts().timed_out == 1).await;
    // The client sends no byte: like a plain connection without a request, it has no limit.
    assert!(tokio::time::timeout(Duration::from_millis(500), silent.stream.read_u8()).await.is_err());
}

#[tokio::test]
async fn many_half_handshakes_are_displaced() {
    let authority = authority("flood");
    let limits = Limits { connections: 20, ..Limits::default() };
    let fixture = serve_tls(limits, false, Some(authority.server("server")));
    let mut open = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(fixture.address).await.unwrap();
        let _ = stream.write_all(&[0x16, 3, 1, 2, 0, 1, 0, 1]).await;
        open.push(stream);
    }
    assert_eq!(client(fixture.address, trusting(authority.path("ca"))).get("/echo").await.unwrap().status, 200);
    until("others are closed", || fixture.connections.counts().incoming <= 20).await;
    drop(open);
    until("all are gone", || fixture.connections.counts().incoming <= 1).await;
}

#[tokio::test]
async fn garbage_and_a_missing_close_notify_end_the_connection() {
    let authority = authority("garbage");
    let fixture = fixture(authority.server("server"));
    let mut garbage = Raw::connect(fixture.address).await;
    garbage.write([&[0x16, 3, 1, 0, 5][..], b"hello, this is no TLS"].concat()).await;
    garbage.rest().await;

    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority.issuer.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    for garbled in [false, true] {
        let stream = TcpStream::connect(fixture.address).await.unwrap();
        let name = rustls::pki_types::ServerName::from(fixture.address.ip());
        let mut tls = connector.connect(name, stream).await.unwrap();
        tls.write_all(b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        assert!(tls.read(&mut [0; 1024]).await.unwrap() > 0);
        if garbled {
            tls.get_mut().0.write_all(b"garbage after the handshake").await.unwrap();
            let mut rest = Vec::new();
            let _ = soon("the end", tls.get_mut().0.read_to_end(&mut rest)).await;
        } else {
            // The TCP connection ends without the alert.
            drop(tls.into_inner());
        }
        until("the connection is gone", || fixture.connections.counts().incoming == 0).await;
    }
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_cut_off() {
    let authority = authority("stalled");
    let limits = Limits { stalled: Duration::from_millis(300), ..Limits::default() };
    let fixture = serve_tls(limits, false, Some(authority.server("server")));
    let client = client(fixture.address, trusting(authority.path("ca")));
    // The body is not read until the records are requested.
    let path = format!("/size?n={}", 32 << 20);
    let held = client.subscribe(&path, "a/b", "*/*", &[], bytes::Bytes::new()).await.unwrap();
    until("it is cut off", || fixture.connections.counts().incoming == 0).await;
    drop(held);
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let authority = authority("files");
    let text = |settings: Settings| match Tls::load(settings, Role::Server) {
        Ok(_) => panic!("loaded"),
        Err(error) => error.to_string(),
    };
    let missing = Settings { key_file: Some(Path::new("/nowhere/key.pem").into()), ..authority.settings("server") };
    assert_eq!(text(missing), "cannot read '/nowhere/key.pem'");
    let no_key = Settings { key_file: Some(authority.path("ca")), ..authority.settings("server") };
    assert!(text(no_key).ends_with("ca.pem' has no private key in PEM"));
    authority.issue("other", local());
    let mixed = Settings { key_file: Some(authority.path("other")), ..authority.settings("server") };
    assert_eq!(text(mixed), "cannot use the certificate and the key");
}

/// Returns bytes in a pattern that shows lost or repeated parts.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

#[tokio::test]
async fn threads_that_wait_read_and_write_at_the_same_time() {
    const LENGTH: usize = 3 << 20;
    let authority = authority("blocking");
    let tls = authority.server("server");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let (mut reader, mut writer) = tokio::io::split(tls.accept(stream).await.unwrap());
        let copied = tokio::io::copy(&mut reader, &mut writer).await.unwrap();
        writer.flush().await.unwrap();
        copied
    });
    let trusting = trusting(authority.path("ca"));
    let client = move || {
        let stream =
            BlockingStream::connect_with_tls(&trusting, "127.0.0.1", &address, Duration::from_secs(20)).unwrap();
        let mut writing = stream.clone();
        let writer = std::thread::spawn(move || std::io::Write::write_all(&mut writing, &pattern(LENGTH)).unwrap());
        let mut received = vec![0; LENGTH];
        std::io::Read::read_exact(&mut &stream, &mut received).unwrap();
        writer.join().unwrap();
        assert!(received == pattern(LENGTH));
    };
    tokio::task::spawn_blocking(client).await.unwrap();
    assert_eq!(server.await.unwrap(), LENGTH as u64);
}

#[tokio::test]
async fn threads_that_wait_verify_the_server_too() {
    let (authority, other) = (authority("blocking-trust"), Authority::new("blocking-other"));
    let fixture = fixture(authority.server("server"));
    let address = fixture.address;
    let refused = move |ca: PathBuf, host: &'static str| {
        let tls = trusting(ca);
        tokio::task::spawn_blocking(move || {
            BlockingStream::connect_with_tls(&tls, host, &address, Duration::from_secs(20)).unwrap_err().to_string()
        })
    };
    let foreign = refused(other.path("ca"), "127.0.0.1").await.unwrap();
    assert!(foreign.contains("invalid peer certificate"), "{foreign}");
    let misnamed = refused(authority.path("ca"), "master.example").await.unwrap();
    assert!(misnamed.contains("not valid for name"), "{misnamed}");
}
