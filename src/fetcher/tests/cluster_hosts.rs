//! Tests downloads over TLS: to which hosts the client's certificate is presented.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use fetcher::{AUTHORITY, CERTIFICATE, HOSTS, KEY, Trust, TrustError, fetch_all};
use protos::mesos::command_info::Uri;
use protos::mesos::fetcher::FetcherInfo;
use protos::mesos::fetcher::fetcher_info::Item;
use protos::mesos::fetcher::fetcher_info::item::Action;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

/// A request: its path, and whether its client has presented a certificate.
type Asked = (String, bool);

struct Place {
    directory: tempfile::TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Place {
    fn new() -> Place {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let place = Place { directory: tempfile::tempdir().unwrap(), issuer };
        fs::write(place.file("ca.pem"), place.issuer.pem()).unwrap();
        place.issue("server", vec![SanType::IpAddress([127, 0, 0, 1].into())]);
        place.issue("client", Vec::new());
        place
    }

    fn issue(&self, name: &str, hosts: Vec<SanType>) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.subject_alt_names = hosts;
        fs::write(self.file(&format!("{name}.pem")), params.signed_by(&key, &self.issuer).unwrap().pem()).unwrap();
        fs::write(self.file(&format!("{name}-key.pem")), key.serialize_pem()).unwrap();
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn trust(&self, hosts: &str, key: &str) -> Result<Trust, TrustError> {
        let path = |name: &str| self.file(name).to_string_lossy().into_owned();
        Trust::read(|name| match name {
            HOSTS => Some(hosts.to_owned()),
            AUTHORITY => Some(path("ca.pem")),
            CERTIFICATE => Some(path("client.pem")),
            KEY => Some(path(key)),
            _ => None,
        })
    }

    /// Fetches a URL as the file `got`, and returns its content or the error.
    fn fetch(&self, url: String, trust: &Trust) -> Result<String, String> {
        let uri = Uri { value: url, output_file: Some("got".to_owned()), ..Uri::default() };
        let item = Item { uri, action: Action::BypassCache as i32, cache_filename: None };
        let sandbox_directory = self.directory.path().to_string_lossy().into_owned();
        let info = FetcherInfo { sandbox_directory, items: vec![item], ..FetcherInfo::default() };
        fetch_all(&info, trust).map_err(|error| base::error_chain(&error))?;
        Ok(fs::read_to_string(self.file("got")).unwrap())
    }

    /// Starts a server that requests a client certificate but does not require it. `/near` redirects to `/file`,
    /// `/away` to the other server.
    fn serve_tls(&self, away: SocketAddr) -> (SocketAddr, Receiver<Asked>) {
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.file("ca.pem")).unwrap()).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_client_cert_verifier(verifier.allow_unauthenticated().build().unwrap());
        let chain = vec![CertificateDer::from_pem_file(self.file("server.pem")).unwrap()];
        let key = PrivateKeyDer::from_pem_file(self.file("server-key.pem")).unwrap();
        let config = Arc::new(config.with_single_cert(chain, key).unwrap());
        serve(move |socket| {
            let mut stream = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), socket);
            let path = request(&mut stream)?;
            let shown = stream.conn.peer_certificates().is_some();
            let answer = match path.as_str() {
                "/near" => "302 Found\r\nLocation: file\r\nContent-Length: 0\r\n\r\n".to_owned(),
                "/away" => format!("302 Found\r\nLocation: http://{away}/file\r\nContent-Length: 0\r\n\r\n"),
                _ => "200 OK\r\nContent-Length: 6\r\n\r\nsecret".to_owned(),
            };
            stream.write_all(format!("HTTP/1.1 {answer}").as_bytes()).ok()?;
            stream.conn.send_close_notify();
            let _ = stream.flush();
            Some((path, shown))
        })
    }
}

/// Answers the connections of a port, in order, and reports each request.
fn serve(answer: impl Fn(std::net::TcpStream) -> Option<Asked> + Send + 'static) -> (SocketAddr, Receiver<Asked>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            if let Some(asked) = answer(socket.unwrap()) {
                let _ = tell.lock().unwrap().send(asked);
            }
        }
    });
    (address, told)
}

/// Returns the path of a request, after reading its head; `None` if the handshake fails.
fn request(stream: &mut impl Read) -> Option<String> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
    first.split(' ').nth(1).map(str::to_owned)
}

#[test]
fn only_hosts_of_the_cluster_see_the_certificate() {
    let place = Place::new();
    let (plain, asked_in_plain) = serve(|mut socket| {
        let path = request(&mut socket)?;
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother").ok()?;
        Some((path, false))
    });
    let (address, asked) = place.serve_tls(plain);
    let trust = place.trust("127.0.0.1", "client-key.pem").unwrap();
    let url = |path: &str| format!("https://{address}{path}");
    let shown = |path: &str| (path.to_owned(), true);
    assert_eq!(place.fetch(url("/file"), &trust).as_deref(), Ok("secret"));
    assert_eq!(asked.recv().unwrap(), shown("/file"));
    assert_eq!(place.fetch(url("/near"), &trust).as_deref(), Ok("secret"));
    assert_eq!((asked.recv().unwrap(), asked.recv().unwrap()), (shown("/near"), shown("/file")));
    assert_eq!(place.fetch(url("/away"), &trust).as_deref(), Ok("other"));
    assert_eq!((asked.recv().unwrap(), asked_in_plain.recv().unwrap()), (shown("/away"), ("/file".into(), false)));

    // The task's user may be unable to read the key: then the server decides what it serves without a certificate.
    let without = place.trust("127.0.0.1", "unreadable").unwrap();
    assert_eq!(place.fetch(url("/file"), &without).as_deref(), Ok("secret"));
    assert_eq!(asked.recv().unwrap(), ("/file".to_owned(), false));

    // The same server under a name that is not of the cluster: the authorities of the system do not verify it.
    let other = place.trust("files.example", "client-key.pem").unwrap();
    let refused = place.fetch(url("/file"), &other).unwrap_err();
    assert!(refused.contains("certificate"), "{refused}");
    assert!(asked.try_recv().is_err());

    let mismatch = place.trust("127.0.0.1", "server-key.pem").unwrap_err();
    let mismatch = mismatch.to_string();
    assert!(mismatch.contains("client.pem") && mismatch.contains("server-key.pem"), "{mismatch}");
}
