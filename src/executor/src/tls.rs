//! TLS to the agent, according to the environment: the agent passes the variables `LIBPROCESS_SSL_*` to executors.
//!
//! The agent is on this host, so its address is not checked: with `VERIFY_SERVER_CERT` and `CA_FILE` its certificate
//! must be of that authority. A certificate that cannot be read is omitted: an executor often has another user than its
//! agent.

use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientConnection, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme, StreamOwned,
};

use crate::environment::Lookup;

/// Returns whether connections to the agent need TLS: those to an agent that supports downgrade do not leave the host,
/// and need none.
pub(crate) fn is_needed(lookup: Lookup<'_>) -> bool {
    let is_set = |name| lookup(name).is_some_and(|value| value == "true" || value == "1");
    is_set("LIBPROCESS_SSL_ENABLED") && !is_set("LIBPROCESS_SSL_SUPPORT_DOWNGRADE")
}

/// The TLS state of a connection. It does no I/O.
#[derive(Debug)]
pub(crate) struct Tls(Box<ClientConnection>);

impl Tls {
    /// Creates the client side of a connection to an agent at this address.
    pub(crate) fn new(agent: IpAddr) -> io::Result<Tls> {
        static CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
        let config = CONFIG.get_or_init(|| config(&|name| std::env::var_os(name)).map(Arc::new));
        let config = config.as_ref().map_err(|why| io::Error::other(why.clone()))?;
        let mut connection = ClientConnection::new(config.clone(), agent.into()).map_err(io::Error::other)?;
        // Calls are buffered until the handshake is done.
        connection.set_buffer_limit(None);
        Ok(Tls(Box::new(connection)))
    }

    /// Returns a blocking connection; the handshake is done with its first byte.
    pub(crate) fn over(self, socket: TcpStream) -> StreamOwned<ClientConnection, TcpStream> {
        StreamOwned::new(*self.0, socket)
    }

    /// Encrypts bytes that are to be sent.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.writer().write_all(bytes)
    }

    /// Appends the bytes that the socket must send to `out`.
    pub(crate) fn take(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        while self.0.wants_write() {
            self.0.write_tls(out)?;
        }
        Ok(())
    }

    /// Decrypts bytes that the socket has received, and passes the result to `sink`. Returns `Ok(false)` if the peer
    /// has closed.
    pub(crate) fn receive(&mut self, mut received: &[u8], sink: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        let mut plain = [0; 2048];
        while !received.is_empty() {
            self.0.read_tls(&mut received)?;
            self.0.process_new_packets().map_err(io::Error::other)?;
            loop {
                match self.0.reader().read(&mut plain) {
                    Ok(0) => return Ok(false),
                    Ok(length) => sink(&plain[..length]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(true)
    }
}

fn config(lookup: Lookup<'_>) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let verify = lookup("LIBPROCESS_SSL_VERIFY_SERVER_CERT").is_some_and(|value| value == "true" || value == "1");
    let authority = match lookup("LIBPROCESS_SSL_CA_FILE").filter(|_| verify) {
        Some(file) => {
            let read = CertificateDer::pem_file_iter(&file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let certificates = read.map_err(|error| format!("cannot read '{}': {error}", file.display()))?;
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(certificates);
            let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
            Some(verifier.map_err(|error| format!("cannot verify with '{}': {error}", file.display()))?)
        }
        None => None,
    };
    let verifier = Arc::new(Agent { authority, provider: provider.clone() });
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    let chain = lookup("LIBPROCESS_SSL_CERT_FILE").and_then(|file| {
        let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        read.ok()
    });
    let key = lookup("LIBPROCESS_SSL_KEY_FILE").and_then(|file| PrivateKeyDer::from_pem_file(file).ok());
    match (chain, key) {
        (Some(chain), Some(key)) => builder.with_client_auth_cert(chain, key).map_err(|error| error.to_string()),
        _ => Ok(builder.with_no_client_auth()),
    }
}

/// A verifier that accepts the certificates of one authority under every name, or all certificates without an
/// authority.
#[derive(Debug)]
struct Agent {
    authority: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Agent {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        use CertificateError::{NotValidForName, NotValidForNameContext};
        let Some(authority) = &self.authority else { return Ok(ServerCertVerified::assertion()) };
        match authority.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            // The name is verified last, so all other checks have succeeded.
            Err(Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. })) => {
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
